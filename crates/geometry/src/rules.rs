// SPDX-License-Identifier: Apache-2.0
//! What may stand beside what on one GPU.
//!
//! An instance sits at one of its profile's starts, shares no unit with another, and takes engines
//! from a common budget; of each profile there is a maximum. The sum of compute slices is no rule
//! of its own: on every board with known placements the starts imply it (checked by enumeration).

use std::fmt;

use units::Placement;

use crate::board::{Board, Engines, Profile};

/// Why an instance cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Conflict {
    /// The profile has no such place.
    Place,
    /// Another instance takes one of the units.
    Overlap,
    /// The maximum of the profile is reached.
    Count,
    /// Too few engines of this kind are left.
    Engine(&'static str),
}

impl Conflict {
    /// The reason in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Place => "the profile has no such place",
            Self::Overlap => "another instance takes part of that place",
            Self::Count => "the board takes no more of that profile",
            Self::Engine(_) => "other instances take the media engines that it needs",
        }
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why `profile` cannot stand at `placement` beside `others`, which are legal; `None` if it can.
pub fn conflict<'a>(
    board: &Board,
    others: impl Iterator<Item = (&'a Profile, Placement)> + Clone,
    profile: &Profile,
    placement: Placement,
) -> Option<Conflict> {
    if !profile.placements.contains(&placement) {
        return Some(Conflict::Place);
    }
    if others.clone().any(|(_, place)| place.overlaps(placement)) {
        return Some(Conflict::Overlap);
    }
    let same = |(other, _): &(&Profile, Placement)| other.driver_id == profile.driver_id;
    if others.clone().filter(same).count() >= usize::from(profile.max_instances) {
        return Some(Conflict::Count);
    }
    let used = others.fold(Usage::default(), |used, (other, _)| used.plus(other, 1));
    let over = used.plus(profile, 1).over(Usage::budget(board));
    over.map(Conflict::Engine)
}

/// Engines in use, of the kinds that are never shared: decoders, encoders, JPEG, OFA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage([u16; 4]);

impl Usage {
    const NAMES: [&str; 4] = ["decoders", "encoders", "jpeg", "ofa"];

    pub(crate) fn of(engines: Engines) -> Self {
        let Engines {
            copy: _,
            decoders,
            encoders,
            jpeg,
            ofa,
        } = engines;
        Self([decoders, encoders, jpeg, ofa].map(u16::from))
    }

    /// What instances share on a board: what it says, but never so little that one of its own
    /// profiles could not be created at all (a driver may report more than the catalogue).
    pub(crate) fn budget(board: &Board) -> Self {
        Self::of(board.engines).max(Self::of(Engines::budget(&board.profiles)))
    }

    /// With so many more instances of the profile.
    pub(crate) fn plus(self, profile: &Profile, count: u16) -> Self {
        let more = Self::of(profile.engines);
        Self(std::array::from_fn(|at| {
            self.0[at].saturating_add(more.0[at].saturating_mul(count))
        }))
    }

    /// The larger of the two, kind by kind.
    pub(crate) fn max(self, other: Self) -> Self {
        Self(std::array::from_fn(|at| self.0[at].max(other.0[at])))
    }

    /// The first kind of which more is used than `budget` has.
    pub(crate) fn over(self, budget: Self) -> Option<&'static str> {
        let at = (0..4).find(|at| self.0[*at] > budget.0[*at])?;
        Some(Self::NAMES[at])
    }
}
