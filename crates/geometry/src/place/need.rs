// SPDX-License-Identifier: Apache-2.0
//! What is wanted, by GPU instance profile of the board.

use std::collections::BTreeMap;

use units::ProfileName;

use super::PlaceError;
use crate::board::{Board, Profile};

/// Slices wanted in GPU instances of one profile.
pub(super) struct Need<'b> {
    pub profile: &'b Profile,
    /// Compute slices and how many such compute instances, largest first; no count is 0.
    pub slices: Vec<(u8, u64)>,
}

impl Need<'_> {
    /// Whether every slice is a whole GPU instance, so that there is nothing to choose inside.
    pub(super) fn is_whole(&self) -> bool {
        let whole = self.profile.slices;
        self.slices.iter().all(|(slices, _)| *slices == whole)
    }

    /// How many slices.
    pub(super) fn count(&self) -> u64 {
        self.slices.iter().map(|(_, count)| count).sum()
    }

    /// No fewer GPU instances could hold them.
    pub(super) fn least_instances(&self) -> u64 {
        let compute = self.slices.iter().map(|(slices, n)| u64::from(*slices) * n);
        compute
            .sum::<u64>()
            .div_ceil(u64::from(self.profile.slices.max(1)))
    }
}

/// Finds the profile of each name: one need for each profile, in the board's order.
pub(super) fn resolve<'b>(
    board: &'b Board,
    wanted: &BTreeMap<ProfileName, u32>,
) -> Result<Vec<Need<'b>>, PlaceError> {
    let mut needs: BTreeMap<&ProfileName, (&Profile, BTreeMap<u8, u64>)> = BTreeMap::new();
    for (name, count) in wanted.iter().filter(|(_, count)| **count > 0) {
        check_known(board)?;
        let compute = name.compute_slices();
        let profile = board
            .find(name)
            .filter(|profile| profile.compute_of(compute).is_some())
            .ok_or_else(|| not_offered(board, name))?;
        let (_, slices) = needs
            .entry(&profile.name)
            .or_insert_with(|| (profile, BTreeMap::new()));
        *slices.entry(compute).or_insert(0) += u64::from(*count);
    }
    let needs = needs.into_values().map(|(profile, slices)| Need {
        profile,
        slices: slices.into_iter().rev().collect(),
    });
    Ok(needs.collect())
}

/// Refuses a board whose placements nobody knows.
pub(super) fn check_known(board: &Board) -> Result<(), PlaceError> {
    let reason = match &board.unknown {
        Some(reason) => reason,
        None if board.has_mig() => return Ok(()),
        None => "it has no MIG",
    };
    Err(PlaceError::BoardUnknown {
        board: board.key.clone(),
        reason: reason.to_owned(),
    })
}

/// The error for a name that no profile of the board has.
pub(super) fn not_offered(board: &Board, name: &ProfileName) -> PlaceError {
    PlaceError::NotOffered {
        board: board.key.clone(),
        profile: name.clone(),
        nearest: nearest(board, name).map(Box::new),
        offered: board.profiles.iter().map(|p| p.name.clone()).collect(),
    }
}

/// The offered name that is most like this one; its compute part is kept if that is offered too,
/// else the closest one is taken.
fn nearest(board: &Board, name: &ProfileName) -> Option<ProfileName> {
    let unlike = |profile: &&Profile| {
        let other_slices = profile.slices != name.gpu_slices();
        let other_attributes = !other_slices && profile.name.attributes() != name.attributes();
        let apart = profile.name.memory_gb().abs_diff(name.memory_gb());
        (other_slices, other_attributes, apart)
    };
    let profile = board.profiles.iter().min_by_key(unlike)?;
    if !name.is_partial() {
        return Some(profile.name.clone());
    }
    let compute = profile.compute.iter().map(|compute| compute.slices);
    let closest = compute.min_by_key(|slices| slices.abs_diff(name.compute_slices()))?;
    profile.name.with_compute(closest)
}
