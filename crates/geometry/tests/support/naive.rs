// SPDX-License-Identifier: Apache-2.0
//! Geometry a second time, as plainly as possible: what is legal, and the best layout by trying
//! every one.

use std::collections::BTreeMap;

use geometry::place::{Placed, Present};
use geometry::{Board, ComputeSpec, InstanceSpec, Profile};
use units::{Placement, ProfileName};

pub type Slices = BTreeMap<ProfileName, u32>;

fn apart(places: &[Placement]) -> bool {
    let units = places
        .iter()
        .flat_map(|place| place.start..place.start + place.size);
    let units: Vec<u8> = units.collect();
    (1..units.len()).all(|at| !units[..at].contains(&units[at]))
}

/// Whether these GPU instances may be on one GPU.
pub fn legal(board: &Board, set: &[(&Profile, Placement)]) -> bool {
    let sum = |of: fn(&Profile) -> u8| set.iter().map(|(p, _)| u32::from(of(p))).sum::<u32>();
    let places: Vec<Placement> = set.iter().map(|(_, place)| *place).collect();
    let few = |profile: &Profile| {
        let same = set.iter().filter(|(p, _)| p.driver_id == profile.driver_id);
        same.count() <= usize::from(profile.max_instances)
    };
    set.iter()
        .all(|(p, place)| p.placements.contains(place) && few(p))
        && apart(&places)
        && sum(|p| p.slices) <= u32::from(board.compute_slices)
        && sum(|p| p.engines.decoders) <= u32::from(board.engines.decoders)
        && sum(|p| p.engines.encoders) <= u32::from(board.engines.encoders)
        && sum(|p| p.engines.jpeg) <= u32::from(board.engines.jpeg)
        && sum(|p| p.engines.ofa) <= u32::from(board.engines.ofa)
}

/// Whether these compute instances (slices and place) may be in one GPU instance.
fn legal_inside(profile: &Profile, inside: &[(u8, Placement)]) -> bool {
    let places: Vec<Placement> = inside.iter().map(|(_, place)| *place).collect();
    let fine = |(slices, place): &(u8, Placement)| {
        let compute = profile.compute_of(*slices).unwrap();
        let same = inside.iter().filter(|(other, _)| other == slices).count();
        compute.placements.contains(place) && same <= usize::from(compute.max_instances)
    };
    !inside.is_empty() && apart(&places) && inside.iter().all(fine)
}

/// The layout that an answer leads to.
pub fn outcome(present: &[Present], placed: &Placed) -> Vec<InstanceSpec> {
    let stays = placed.keep.iter().map(|kept| {
        let mut spec = present[kept.present].spec.clone();
        let all = std::mem::take(&mut spec.compute).into_iter().enumerate();
        let stay = all.filter(|(at, _)| !kept.destroy_compute.contains(at));
        spec.compute = stay.map(|(_, compute)| compute).collect();
        spec.compute.extend(kept.create_compute.iter().cloned());
        spec.compute.sort_by_key(|compute| compute.placement);
        spec
    });
    let mut specs: Vec<InstanceSpec> = stays.chain(placed.create.iter().cloned()).collect();
    specs.sort();
    specs
}

/// Whether a layout is legal in every part.
pub fn legal_layout(board: &Board, layout: &[InstanceSpec]) -> bool {
    let member = |spec: &InstanceSpec| (board.profile(spec.driver_id).unwrap(), spec.placement);
    let set: Vec<(&Profile, Placement)> = layout.iter().map(member).collect();
    let inside = |spec: &InstanceSpec| {
        let part = |c: &ComputeSpec| (c.profile.compute_slices(), c.placement.unwrap());
        let parts: Vec<(u8, Placement)> = spec.compute.iter().map(part).collect();
        legal_inside(board.profile(spec.driver_id).unwrap(), &parts)
    };
    legal(board, &set) && layout.iter().all(inside)
}

/// Every legal set of GPU instances, the empty one too.
pub fn all_sets(board: &Board) -> Vec<Vec<(&Profile, Placement)>> {
    let mut sets = vec![Vec::new()];
    for profile in &board.profiles {
        for place in &profile.placements {
            let longer = sets
                .iter()
                .map(|set| [set.as_slice(), &[(profile, *place)]].concat());
            let longer: Vec<_> = longer.filter(|set| legal(board, set)).collect();
            sets.extend(longer);
        }
    }
    sets
}

/// Every legal filling of a GPU instance.
fn all_insides(profile: &Profile) -> Vec<Vec<(u8, Placement)>> {
    let mut insides = vec![Vec::new()];
    for compute in &profile.compute {
        for place in &compute.placements {
            let one = [(compute.slices, *place)];
            let longer = insides
                .iter()
                .map(|inside: &Vec<_>| [inside.as_slice(), &one].concat());
            let longer: Vec<_> = longer
                .filter(|inside| legal_inside(profile, inside))
                .collect();
            insides.extend(longer);
        }
    }
    insides.retain(|inside| !inside.is_empty());
    insides
}

/// Slices in use that stay, slices that stay, minus GPU instances created, minus GPU instances,
/// minus profiles without a free place, minus places taken.
pub type Score = [i64; 6];

pub fn score(board: &Board, present: &[Present], layout: &[InstanceSpec]) -> Score {
    let mut score = [0; 6];
    for spec in layout {
        score[3] -= 1;
        let there = present
            .iter()
            .find(|p| p.spec.placement == spec.placement && p.spec.driver_id == spec.driver_id);
        let Some(there) = there else {
            score[2] -= 1;
            continue;
        };
        for (compute, busy) in there.spec.compute.iter().zip(&there.busy) {
            if spec.compute.contains(compute) {
                score[0] += i64::from(*busy);
                score[1] += 1;
            }
        }
    }
    let free = |place: &&Placement| !layout.iter().any(|spec| spec.placement.overlaps(**place));
    for profile in &board.profiles {
        let free = profile.placements.iter().filter(free).count();
        score[4] -= i64::from(free == 0);
        score[5] -= (profile.placements.len() - free) as i64;
    }
    score
}

/// The best score of all layouts that have exactly these slices; `None` if there is none.
pub fn best(
    board: &Board,
    sets: &[Vec<(&Profile, Placement)>],
    present: &[Present],
    wanted: &Slices,
) -> Option<Score> {
    let mut best = None;
    for set in sets {
        let holds = |name: &ProfileName| set.iter().any(|(p, _)| p.name == name.gpu_instance());
        let needed =
            |(p, _): &(&Profile, Placement)| wanted.keys().any(|n| n.gpu_instance() == p.name);
        if !wanted.keys().all(holds) || !set.iter().all(needed) {
            continue;
        }
        fill(set, &mut Vec::new(), wanted, &mut |layout| {
            best = best.max(Some(score(board, present, layout)));
        });
    }
    best
}

/// Calls `found` for every filling of the set that has exactly the slices `left`.
fn fill(
    set: &[(&Profile, Placement)],
    layout: &mut Vec<InstanceSpec>,
    left: &Slices,
    found: &mut dyn FnMut(&[InstanceSpec]),
) {
    let Some(((profile, place), rest)) = set.split_first() else {
        if left.is_empty() {
            found(layout);
        }
        return;
    };
    'inside: for inside in all_insides(profile) {
        let mut left = left.clone();
        for (slices, _) in &inside {
            let name = profile.name.with_compute(*slices).unwrap();
            match left.get_mut(&name) {
                None => continue 'inside,
                Some(1) => drop(left.remove(&name)),
                Some(count) => *count -= 1,
            }
        }
        layout.push(instance(profile, *place, &inside));
        fill(rest, layout, &left, found);
        layout.pop();
    }
}

/// A GPU instance with compute instances of these slices at these places.
pub fn instance(
    profile: &Profile,
    placement: Placement,
    inside: &[(u8, Placement)],
) -> InstanceSpec {
    let mut compute: Vec<ComputeSpec> = inside
        .iter()
        .map(|(slices, place)| ComputeSpec {
            profile: profile.name.with_compute(*slices).unwrap(),
            driver_id: profile.compute_of(*slices).unwrap().driver_id,
            placement: Some(*place),
        })
        .collect();
    compute.sort_by_key(|compute| compute.placement);
    InstanceSpec {
        placement,
        profile: profile.name.clone(),
        driver_id: profile.driver_id,
        compute,
    }
}
