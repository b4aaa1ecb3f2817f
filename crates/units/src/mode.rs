// SPDX-License-Identifier: Apache-2.0
//! MIG mode of a GPU.

use std::fmt;

use serde::{Deserialize, Serialize};

/// MIG mode of a GPU that has one: what is in force and what a reset would bring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// MIG is off.
    Off,
    /// MIG is on: the GPU can hold instances.
    On,
    /// MIG is off and will be on after a reset of the GPU.
    PendingOn,
    /// MIG is on and will be off after a reset of the GPU.
    PendingOff,
}

impl Mode {
    /// The mode with these current and pending states.
    pub const fn from_states(current_on: bool, pending_on: bool) -> Self {
        match (current_on, pending_on) {
            (false, false) => Self::Off,
            (true, true) => Self::On,
            (false, true) => Self::PendingOn,
            (true, false) => Self::PendingOff,
        }
    }

    /// Whether MIG is in force now.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On | Self::PendingOff)
    }

    /// Whether MIG is in force after the next reset.
    pub const fn will_be_on(self) -> bool {
        matches!(self, Self::On | Self::PendingOn)
    }

    /// Whether a reset of the GPU would change the mode.
    pub const fn is_pending(self) -> bool {
        matches!(self, Self::PendingOn | Self::PendingOff)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::PendingOn => "pending on",
            Self::PendingOff => "pending off",
        })
    }
}
