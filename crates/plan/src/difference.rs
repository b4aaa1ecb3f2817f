// SPDX-License-Identifier: Apache-2.0
//! How hardware differs from a wish, without a plan: what `host assert` tells.

use std::collections::BTreeMap;

use geometry::Layout;
use geometry::inventory::{Gpu, Inventory};
use serde::Serialize;
use units::{Mode, ProfileName};

use crate::refusal::gpu_name;
use crate::text::layout_text;
use crate::wish::{GpuWish, Wish};

/// One GPU that is not as wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// NVML index.
    pub gpu: u32,
    /// What is there and what is wanted, in a sentence.
    pub message: String,
}

/// Where the hardware is not as wanted, by GPU index. Placements matter only where the wish names
/// them; a mode that is pending is not in force.
pub fn difference(inventory: &Inventory, wish: &Wish) -> Vec<Difference> {
    wish.gpus
        .iter()
        .filter_map(|(index, wanted)| {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
            let message = match gpu {
                None => Some(format!("there is no GPU {index} on this machine")),
                Some(gpu) => gpu_difference(gpu, wanted)
                    .map(|difference| format!("{}: {difference}", gpu_name(gpu))),
            };
            message.map(|message| Difference {
                gpu: *index,
                message,
            })
        })
        .collect()
}

fn gpu_difference(gpu: &Gpu, wanted: &GpuWish) -> Option<String> {
    let on = *wanted != GpuWish::Off;
    let wanted_mode = Mode::from_states(on, on);
    match gpu.mode {
        None if on => return Some("it has no MIG, wanted is MIG on".into()),
        Some(mode) if mode != wanted_mode => {
            return Some(format!("MIG is {mode}, wanted is {wanted_mode}"));
        }
        _ => {}
    }
    let (there, wanted) = match wanted {
        GpuWish::Off | GpuWish::On => return None,
        GpuWish::Slices(counts) => {
            let wanted = canonical(gpu, counts);
            let there = canonical(gpu, &gpu.layout().slices());
            (there != wanted).then(|| (layout_text(&there), layout_text(&wanted)))?
        }
        GpuWish::Exact(wanted) => {
            let there = gpu.layout();
            (!there.is_like(wanted)).then(|| (placed(&there), placed(wanted)))?
        }
    };
    Some(format!("it has {there}, wanted is {wanted}"))
}

/// Counts under the names that the board has for the profiles, without those of 0.
fn canonical(gpu: &Gpu, counts: &BTreeMap<ProfileName, u32>) -> BTreeMap<ProfileName, u32> {
    let mut sums = BTreeMap::new();
    for (name, count) in counts.iter().filter(|(_, count)| **count > 0) {
        let profile = gpu.board.find(name);
        let known = profile.and_then(|profile| profile.name.with_compute(name.compute_slices()));
        let sum = sums
            .entry(known.unwrap_or_else(|| name.clone()))
            .or_insert(0_u32);
        *sum = sum.saturating_add(*count);
    }
    sums
}

/// `2x1g.10gb (1g.10gb at 4:1, 1g.10gb at 5:1)`.
fn placed(layout: &Layout) -> String {
    let instances = layout.instances.iter();
    let instances =
        instances.map(|instance| format!("{} at {}", instance.profile, instance.placement));
    let instances: Vec<String> = instances.collect();
    match instances.as_slice() {
        [] => layout.to_string(),
        instances => format!("{layout} ({})", instances.join(", ")),
    }
}
