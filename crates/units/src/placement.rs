// SPDX-License-Identifier: Apache-2.0
//! Where an instance sits.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Start and size of an instance, in the placement units of its board (8 on an A100 or H100, 4 on
/// an A30, 12 on an RTX PRO 6000), or of a compute instance, in compute slices of its GPU instance.
///
/// Units are memory slices as `nvidia-smi mig -lgipp` prints them; they are not compute slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Placement {
    /// First unit taken.
    pub start: u8,
    /// Number of units taken, at least 1.
    pub size: u8,
}

impl Placement {
    /// The placement that takes `size` units from `start` on.
    pub const fn new(start: u8, size: u8) -> Self {
        Self { start, size }
    }

    /// The units taken, as a bit mask: bit n is unit n. Units beyond 63 are not represented;
    /// boards have at most 12.
    pub fn mask(self) -> u64 {
        (self.start..self.start.saturating_add(self.size))
            .filter(|unit| *unit < 64)
            .fold(0, |mask, unit| mask | 1 << unit)
    }

    /// Whether the two share a unit.
    pub fn overlaps(self, other: Self) -> bool {
        let end = |p: Self| u16::from(p.start) + u16::from(p.size);
        u16::from(self.start) < end(other) && u16::from(other.start) < end(self)
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.start, self.size)
    }
}
