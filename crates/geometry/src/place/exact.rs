// SPDX-License-Identifier: Apache-2.0
//! A recorded layout, put back exactly where it was.

use std::cmp::Reverse;

use units::Placement;

use super::inside;
use super::need::{check_known, not_offered};
use super::{Kept, PlaceError, Placed, Present};
use crate::board::{Board, Profile};
use crate::layout::{ComputeSpec, InstanceSpec, Layout};
use crate::rules::conflict;

/// Keeps what is at its place already, and creates the rest exactly there.
pub(super) fn place(
    board: &Board,
    present: &[Present],
    layout: &Layout,
) -> Result<Placed, PlaceError> {
    let mut wanted: Vec<&InstanceSpec> = layout.instances.iter().collect();
    wanted.sort();
    let mut placed = Placed::default();
    let mut legal: Vec<(&Profile, Placement)> = Vec::new();
    for spec in wanted {
        check_known(board)?;
        let profile = profile_of(board, spec)?;
        let mut spec = as_named(profile, spec);
        let there = present.iter().position(|p| is_same(&p.spec, &spec));
        // What is there is possible, whatever the table says; but two cannot share a place.
        let reason = conflict(board, legal.iter().copied(), profile, spec.placement)
            .filter(|_| there.is_none() || legal.iter().any(|(_, p)| p.overlaps(spec.placement)));
        if let Some(reason) = reason {
            return Err(PlaceError::Illegal {
                board: board.key.clone(),
                profile: spec.profile.clone(),
                placement: spec.placement,
                reason: reason.as_str(),
            });
        }
        legal.push((profile, spec.placement));
        match there {
            Some(at) => placed
                .keep
                .push(keep(board, profile, at, &present[at], &spec)?),
            None => {
                spec.compute = seated(board, profile, &[], spec.compute)?;
                placed.create.push(spec);
            }
        }
    }
    Ok(placed.in_order(present))
}

/// The profile that the record means: its driver id and its name must agree.
fn profile_of<'b>(board: &'b Board, spec: &InstanceSpec) -> Result<&'b Profile, PlaceError> {
    board
        .find(&spec.profile)
        .filter(|profile| profile.driver_id == spec.driver_id)
        .ok_or_else(|| not_offered(board, &spec.profile))
}

/// The recorded instance under the names that the board has now: another driver may have had
/// others.
fn as_named(profile: &Profile, spec: &InstanceSpec) -> InstanceSpec {
    let compute = spec.compute.iter().map(|compute| {
        let slices = compute.profile.compute_slices();
        let name = profile.name.with_compute(slices);
        ComputeSpec {
            profile: name.unwrap_or_else(|| compute.profile.clone()),
            ..compute.clone()
        }
    });
    InstanceSpec {
        profile: profile.name.clone(),
        compute: compute.collect(),
        ..spec.clone()
    }
}

fn is_same(one: &InstanceSpec, other: &InstanceSpec) -> bool {
    one.placement == other.placement && one.driver_id == other.driver_id
}

fn keep(
    board: &Board,
    profile: &Profile,
    at: usize,
    present: &Present,
    spec: &InstanceSpec,
) -> Result<Kept, PlaceError> {
    let mut destroy: Vec<usize> = (0..present.spec.compute.len()).collect();
    let mut create: Vec<ComputeSpec> = Vec::new();
    // Known places first, so that an unknown one does not take what another is sure of.
    let mut wanted: Vec<&ComputeSpec> = spec.compute.iter().collect();
    wanted.sort_by_key(|compute| compute.placement.is_none());
    for compute in wanted {
        let fits = |exact: bool| {
            destroy.iter().position(|at| {
                let there = &present.spec.compute[*at];
                let (one, other) = (there.placement, compute.placement);
                let same_size = there.profile.compute_slices() == compute.profile.compute_slices();
                same_size && (one == other || !exact && (one.is_none() || other.is_none()))
            })
        };
        match fits(true).or_else(|| fits(false)) {
            Some(at) => drop(destroy.remove(at)),
            None => create.push(compute.clone()),
        }
    }
    let stay: Vec<&ComputeSpec> = (0..present.spec.compute.len())
        .filter(|at| !destroy.contains(at))
        .map(|at| &present.spec.compute[at])
        .collect();
    Ok(Kept {
        present: at,
        create_compute: seated(board, profile, &stay, create)?,
        destroy_compute: destroy,
    })
}

/// Those that come, by place. One without a place, as checkpoints have them, takes the lowest that
/// is free, the largest first; where the driver hides the places of those that stay, it chooses.
fn seated(
    board: &Board,
    profile: &Profile,
    stay: &[&ComputeSpec],
    mut create: Vec<ComputeSpec>,
) -> Result<Vec<ComputeSpec>, PlaceError> {
    check_compute(board, profile, stay, &create)?;
    let others = stay.iter().copied().chain(&create);
    let taken = others.filter_map(|compute| compute.placement);
    let taken = taken.fold(0, |mask, place| mask | place.mask());
    let mut open: Vec<&mut ComputeSpec> = create.iter_mut().collect();
    open.retain(|compute| compute.placement.is_none());
    open.sort_by_key(|compute| Reverse(compute.profile.compute_slices()));
    let sizes: Vec<u8> = open.iter().map(|c| c.profile.compute_slices()).collect();
    let mut found = Vec::new();
    if stay.iter().all(|compute| compute.placement.is_some()) {
        if !inside::seat(profile, &sizes, taken, &mut found) {
            return Err(PlaceError::Illegal {
                board: board.key.clone(),
                profile: open[0].profile.clone(),
                placement: Placement::new(0, sizes[0]),
                reason: "no such place is free in the GPU instance",
            });
        }
        for (compute, (_, place)) in open.iter_mut().zip(found) {
            compute.placement = place;
        }
    }
    create.sort_by_key(|compute| (compute.placement, compute.driver_id));
    Ok(create)
}

/// Whether these compute instances can be created beside those that stay.
fn check_compute(
    board: &Board,
    profile: &Profile,
    stay: &[&ComputeSpec],
    create: &[ComputeSpec],
) -> Result<(), PlaceError> {
    for (at, compute) in create.iter().enumerate() {
        let size = compute.profile.compute_slices();
        let of_that_kind = |p: &&crate::board::ComputeProfile| {
            p.slices == size && p.driver_id == compute.driver_id
        };
        let known = profile.compute.iter().find(of_that_kind);
        let known = known.ok_or_else(|| not_offered(board, &compute.profile))?;
        let others = || stay.iter().copied().chain(&create[..at]);
        let sizes = others().map(|other| u16::from(other.profile.compute_slices()));
        let same = |other: &&ComputeSpec| other.profile.compute_slices() == size;
        let overlaps = compute.placement.is_some_and(|place| {
            others().any(|other| other.placement.is_some_and(|other| other.overlaps(place)))
        });
        let no_place = compute
            .placement
            .is_some_and(|place| !known.placements.contains(&place));
        let reason = if no_place {
            "the profile has no such place"
        } else if overlaps {
            "another compute instance takes part of that place"
        } else if sizes.sum::<u16>() + u16::from(size) > u16::from(profile.slices)
            || others().filter(same).count() >= usize::from(known.max_instances)
        {
            "the GPU instance takes no more of that profile"
        } else {
            continue;
        };
        return Err(PlaceError::Illegal {
            board: board.key.clone(),
            profile: compute.profile.clone(),
            placement: compute.placement.unwrap_or(Placement::new(0, size)),
            reason,
        });
    }
    Ok(())
}
