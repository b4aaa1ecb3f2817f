// SPDX-License-Identifier: Apache-2.0
//! Whether a condition holds on a GPU as it was read.

use geometry::ComputeSpec;
use geometry::inventory::{Gpu, GpuInstance};
use units::Placement;

use crate::step::Condition;

impl Condition {
    /// Whether the condition holds on `gpu`. A GPU without MIG counts as one whose mode is off.
    pub fn holds(&self, gpu: &Gpu) -> bool {
        let mode = gpu.mode.unwrap_or(units::Mode::Off);
        match self {
            Self::ModeRequested { on } => mode.will_be_on() == *on,
            Self::ModeInForce { on } => mode.is_on() == *on,
            Self::NothingPending => !mode.is_pending(),
            Self::Idle => !gpu.is_busy(),
            Self::NoInstances => gpu.instances.is_empty(),
            Self::InstancePresent {
                placement,
                driver_id,
            } => has_instance(gpu, *placement, *driver_id),
            Self::InstanceAbsent {
                placement,
                driver_id,
            } => !has_instance(gpu, *placement, *driver_id),
            Self::UnitsFree { placement } => {
                let mut instances = gpu.instances.iter();
                instances.all(|instance| !instance.placement.overlaps(*placement))
            }
            Self::InstanceEmpty { placement } => {
                at(gpu, *placement).is_some_and(|instance| instance.compute.is_empty())
            }
            Self::ComputePresent { instance, compute } => has_compute(gpu, *instance, compute),
            Self::ComputeAbsent { instance, compute } => !has_compute(gpu, *instance, compute),
        }
    }
}

fn at(gpu: &Gpu, placement: Placement) -> Option<&GpuInstance> {
    let mut instances = gpu.instances.iter();
    instances.find(|instance| instance.placement == placement)
}

fn has_instance(gpu: &Gpu, placement: Placement, driver_id: u32) -> bool {
    at(gpu, placement).is_some_and(|instance| instance.driver_id == driver_id)
}

fn has_compute(gpu: &Gpu, instance: Placement, wanted: &ComputeSpec) -> bool {
    at(gpu, instance).is_some_and(|instance| {
        let mut compute = instance.compute.iter();
        // The name too: it tells the profile of the GPU instance, which may be another one now.
        compute.any(|compute| compute.profile == wanted.profile && compute.spec().is_like(wanted))
    })
}
