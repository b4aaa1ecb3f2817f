// SPDX-License-Identifier: Apache-2.0
//! Layouts: what is on a GPU or shall be, independent of any driver's numbering.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use units::{Placement, ProfileName};

/// A compute instance: its profile and, once placed, where it sits in its GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ComputeSpec {
    /// Profile with compute part: `1c.3g.40gb`, or `3g.40gb` for the full size.
    pub profile: ProfileName,
    /// Driver id of the compute profile.
    pub driver_id: u32,
    /// Place in compute slices of the GPU instance; `None` where the driver does not tell.
    pub placement: Option<Placement>,
}

impl ComputeSpec {
    /// Whether the two are the same, as far as is known: driver id and, where both are known,
    /// place. Names do not count, they differ between drivers.
    pub fn is_like(&self, other: &Self) -> bool {
        self.driver_id == other.driver_id
            && (self.placement == other.placement
                || self.placement.is_none()
                || other.placement.is_none())
    }
}

/// A placed GPU instance with its compute instances.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct InstanceSpec {
    /// Place in the board's placement units.
    pub placement: Placement,
    /// Profile of the GPU instance.
    pub profile: ProfileName,
    /// Driver id of the profile.
    pub driver_id: u32,
    /// Compute instances, by rising place. Empty for an orphan.
    pub compute: Vec<ComputeSpec>,
}

/// A placed layout: GPU instances by rising start. What journal, history and checkpoints record.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Layout {
    /// The instances, by rising start.
    pub instances: Vec<InstanceSpec>,
}

impl Layout {
    /// Whether the two are the same, as far as is known: driver ids and places decide, names
    /// differ between drivers. A place of a compute instance that is not known equals any.
    pub fn is_like(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.instances.clone(), other.instances.clone());
        let key = |instance: &InstanceSpec| (instance.placement, instance.driver_id);
        ours.sort_by_key(key);
        theirs.sort_by_key(key);
        ours.len() == theirs.len()
            && ours
                .iter_mut()
                .zip(&mut theirs)
                .all(|(a, b)| key(a) == key(b) && are_like(&mut a.compute, &mut b.compute))
    }

    /// How many slices (compute instances) of each profile it has.
    pub fn slices(&self) -> BTreeMap<ProfileName, u32> {
        let mut counts = BTreeMap::new();
        for compute in self.instances.iter().flat_map(|instance| &instance.compute) {
            *counts.entry(compute.profile.clone()).or_insert(0) += 1;
        }
        counts
    }
}

fn are_like(a: &mut [ComputeSpec], b: &mut [ComputeSpec]) -> bool {
    let placed = a.iter().chain(b.iter()).all(|c| c.placement.is_some());
    let key = |c: &ComputeSpec| (c.placement.filter(|_| placed), c.driver_id);
    a.sort_by_key(key);
    b.sort_by_key(key);
    a.iter().map(key).eq(b.iter().map(key))
}

/// `2x1g.10gb,1x3g.40gb`, or `empty`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slices = self.slices();
        if slices.is_empty() {
            return f.write_str("empty");
        }
        let parts: Vec<String> = slices
            .iter()
            .map(|(profile, count)| format!("{count}x{profile}"))
            .collect();
        f.write_str(&parts.join(","))
    }
}
