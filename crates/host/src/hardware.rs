// SPDX-License-Identifier: Apache-2.0
//! One GPU as the executor sees it: what is there, what an action makes of it, what holds.

use std::fmt;

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use geometry::{InstanceSpec, Layout, ModeChange};
use gpu::{Instances, MigMode, ReadGpus, Reset};
use plan::{Action, Condition};
use serde::{Deserialize, Serialize};
use units::{Code, GpuUuid, Mode, Placement};

use crate::error::Cause;

/// Everything that a change needs of a driver but the reset.
pub trait Driver: ReadGpus + Instances + MigMode {}

impl<T: ReadGpus + Instances + MigMode + ?Sized> Driver for T {}

/// Mode and placed layout of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuState {
    /// MIG mode.
    pub mode: Mode,
    /// What is on it.
    pub layout: Layout,
}

/// `on, 7x1g.10gb`; without instances only the mode.
impl fmt::Display for GpuState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MIG {}", self.mode)?;
        for (at, instance) in self.layout.instances.iter().enumerate() {
            let sign = if at == 0 { ": " } else { ", " };
            write!(f, "{sign}{} at {}", instance.profile, instance.placement)?;
            let full = [&instance.profile];
            let compute = instance.compute.iter().map(|compute| &compute.profile);
            if !compute.clone().eq(full) {
                let names: Vec<String> = compute.map(ToString::to_string).collect();
                write!(f, " ({})", names.join(" "))?;
            }
        }
        Ok(())
    }
}

impl GpuState {
    /// That of a GPU as it was read. One without MIG counts as one whose mode is off.
    pub fn of(gpu: &Gpu) -> Self {
        Self {
            mode: gpu.mode.unwrap_or(Mode::Off),
            layout: gpu.layout(),
        }
    }

    /// Whether the two are the same, as far as is known: see [`Layout::is_like`].
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.mode == other.mode && self.layout.is_like(&other.layout)
    }

    /// What an action makes of it, on a board whose mode changes so.
    pub(crate) fn after(&self, action: &Action, change: ModeChange) -> Self {
        let mut next = self.clone();
        let instances = &mut next.layout.instances;
        match action {
            Action::SetMode { on } => {
                let current = match change {
                    ModeChange::Immediate => *on,
                    ModeChange::NeedsReset => self.mode.is_on(),
                };
                next.mode = Mode::from_states(current, *on);
            }
            Action::Reset if self.mode.is_pending() => {
                let on = self.mode.will_be_on();
                next.mode = Mode::from_states(on, on);
                instances.clear();
            }
            Action::Reset => {}
            Action::CreateGpuInstance {
                placement,
                profile,
                driver_id,
            } => {
                instances.push(InstanceSpec {
                    placement: *placement,
                    profile: profile.clone(),
                    driver_id: *driver_id,
                    compute: Vec::new(),
                });
                instances.sort();
            }
            Action::DestroyGpuInstance {
                placement,
                driver_id,
                ..
            } => instances
                .retain(|found| (found.placement, found.driver_id) != (*placement, *driver_id)),
            Action::CreateCompute { instance, compute } => {
                for found in instances.iter_mut().filter(|i| i.placement == *instance) {
                    found.compute.push(compute.clone());
                    found.compute.sort_by_key(|c| (c.placement, c.driver_id));
                }
            }
            Action::DestroyCompute { instance, compute } => {
                for found in instances.iter_mut().filter(|i| i.placement == *instance) {
                    if let Some(at) = found.compute.iter().position(|c| c.is_like(compute)) {
                        found.compute.remove(at);
                    }
                }
            }
        }
        next
    }
}

/// What holds when there is nothing left for an action to do.
pub(crate) fn effect(action: &Action) -> Condition {
    match action.clone() {
        Action::SetMode { on } => Condition::ModeRequested { on },
        Action::Reset => Condition::NothingPending,
        Action::CreateGpuInstance {
            placement,
            driver_id,
            ..
        } => Condition::InstancePresent {
            placement,
            driver_id,
        },
        Action::DestroyGpuInstance {
            placement,
            driver_id,
            ..
        } => Condition::InstanceAbsent {
            placement,
            driver_id,
        },
        Action::CreateCompute { instance, compute } => {
            Condition::ComputePresent { instance, compute }
        }
        Action::DestroyCompute { instance, compute } => {
            Condition::ComputeAbsent { instance, compute }
        }
    }
}

/// The driver and the reset tool.
pub(crate) struct Hands<'a> {
    driver: &'a dyn Driver,
    reset: &'a dyn Reset,
}

impl<'a> Hands<'a> {
    pub(crate) fn new(driver: &'a dyn Driver, reset: &'a dyn Reset) -> Self {
        Self { driver, reset }
    }

    /// Everything about every GPU.
    pub(crate) fn inventory(&self) -> Result<Inventory, gpu::Error> {
        self.driver.inventory()
    }

    /// Everything about one GPU, holders too.
    pub(crate) fn gpu(&self, gpu: &GpuUuid) -> Result<Gpu, gpu::Error> {
        self.driver.gpu(gpu)
    }

    /// Reads mode and instances of a GPU again.
    pub(crate) fn look(&self, gpu: &mut Gpu) -> Result<GpuState, gpu::Error> {
        let uuid = &gpu.uuid;
        (gpu.mode, gpu.instances) = (self.driver.mode(uuid)?, self.driver.instances(uuid)?);
        Ok(GpuState::of(gpu))
    }

    /// Does it, and does not look whether it worked. `gpu` is as last looked at.
    pub(crate) fn act(&self, gpu: &Gpu, action: &Action) -> Result<(), Cause> {
        let (driver, uuid) = (self.driver, &gpu.uuid);
        match action {
            Action::SetMode { on } => driver.set_mode(uuid, *on)?,
            Action::Reset if !gpu.mode.is_some_and(Mode::is_pending) => {}
            Action::Reset => self.reset.reset(std::slice::from_ref(uuid))?,
            Action::CreateGpuInstance {
                placement,
                driver_id,
                ..
            } => {
                driver.create_gpu_instance(uuid, *driver_id, *placement)?;
            }
            Action::DestroyGpuInstance { placement, .. } => {
                let id = instance(gpu, *placement)?.id;
                driver.destroy_gpu_instance(uuid, id)?;
            }
            Action::CreateCompute {
                instance: place,
                compute,
            } => {
                let id = instance(gpu, *place)?.id;
                let (profile, place) = (compute.driver_id, compute.placement);
                driver.create_compute_instance(uuid, id, profile, place)?;
            }
            Action::DestroyCompute {
                instance: place,
                compute,
            } => {
                let instance = instance(gpu, *place)?;
                let mut all = instance.compute.iter();
                let found = all.find(|found| found.spec().is_like(compute));
                let what = || format!("compute instance {} at {place}", compute.profile);
                let found = found.ok_or_else(|| gone(gpu, &what()))?;
                driver.destroy_compute_instance(uuid, instance.id, found.id)?;
            }
        }
        Ok(())
    }
}

fn instance(gpu: &Gpu, placement: Placement) -> Result<&GpuInstance, Cause> {
    let mut all = gpu.instances.iter();
    all.find(|instance| instance.placement == placement)
        .ok_or_else(|| gone(gpu, &format!("the GPU instance at {placement}")))
}

/// Someone else has taken it away.
fn gone(gpu: &Gpu, what: &str) -> Cause {
    let index = gpu.index;
    let message = format!("GPU {index}: {what} is not there any more: something else changes it");
    Cause::new(Code::ForeignChange, message)
}
