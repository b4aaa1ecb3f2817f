// SPDX-License-Identifier: Apache-2.0
//! Slices and replicas: spread over GPUs, or packed onto few.

use std::collections::BTreeMap;

use config::deviceplugin::AllocationPolicy;

use crate::resource::{Device, Resource};

/// How many devices of a GPU, or of a slice, are allocated, those picked here included.
type Allocated<'a> = BTreeMap<&'a str, i64>;

/// Picks `missing` of the free devices (at least as many) one after the other: first a GPU by how
/// much of it is allocated, then a slice of it by the same, then the first replica.
pub(super) fn choose<'a>(
    resource: &'a Resource,
    free: &[&'a Device],
    missing: usize,
    policy: AllocationPolicy,
) -> Vec<&'a Device> {
    let (mut gpus, mut parts) = (Allocated::new(), Allocated::new());
    let mut picks = Allocated::new();
    let mut count = |device: &'a Device, change: i64| {
        *gpus.entry(device.hardware.gpu.as_str()).or_default() += change;
        *parts.entry(device.hardware.uuid()).or_default() += change;
    };
    resource.devices.iter().for_each(|device| count(device, 1));
    free.iter().for_each(|device| count(device, -1));
    let mut left = free.to_vec();
    let mut picked = Vec::new();
    while picked.len() < missing {
        let of = |groups: &Allocated<'_>, key: &str| groups.get(key).copied().unwrap_or(0);
        let rank = |device: &&Device| {
            let (gpu, index) = (device.hardware.gpu.as_str(), device.hardware.gpu_index);
            let (on_gpu, on_part) = (of(&gpus, gpu), of(&parts, device.hardware.uuid()));
            match policy {
                AllocationPolicy::Distributed => (on_gpu, of(&picks, gpu), index, on_part),
                AllocationPolicy::Packed => (-on_gpu, 0, index, -on_part),
            }
        };
        let best = (0..left.len()).min_by_key(|place| rank(&left[*place]));
        let Some(place) = best else {
            break;
        };
        let device = left.remove(place);
        for (groups, key) in [
            (&mut gpus, device.hardware.gpu.as_str()),
            (&mut parts, device.hardware.uuid()),
            (&mut picks, device.hardware.gpu.as_str()),
        ] {
            *groups.entry(key).or_default() += 1;
        }
        picked.push(device);
    }
    picked
}
