// SPDX-License-Identifier: Apache-2.0
//! What is wanted of a machine's GPUs, resolved to single GPUs.

use std::collections::BTreeMap;

use geometry::Layout;
use serde::{Deserialize, Serialize};
use units::ProfileName;

use crate::refusal::Warning;

/// What is wanted of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuWish {
    /// MIG off.
    Off,
    /// MIG on, whatever instances there are (`--mode-only`).
    On,
    /// MIG on with exactly so many slices of each profile, wherever they fit; empty: none.
    Slices(BTreeMap<ProfileName, u32>),
    /// MIG on with exactly this placed layout.
    Exact(Layout),
}

/// What is wanted of a machine: GPUs that are not in it stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// By GPU index.
    pub gpus: BTreeMap<u32, GpuWish>,
    /// What was noticed while it was resolved.
    pub warnings: Vec<Warning>,
}

/// What a plan may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Whether GPUs may be reset. Without it a mode change that needs a reset stays pending.
    pub reset: bool,
    /// Whether instances may be destroyed although something uses them. The driver refuses that
    /// itself; only an agent that has fenced and ended the holders sets it.
    pub ignore_holders: bool,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            reset: true,
            ignore_holders: false,
        }
    }
}
