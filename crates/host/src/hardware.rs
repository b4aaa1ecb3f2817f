// SPDX-License-Identifier: Apache-2.0
//! One GPU as the executor sees it: what is there, what an action makes of it, what holds.

use std::fmt;
use std::sync::{PoisonError, RwLock};

use geometry::inventory::GpuInstance;
use geometry::{ComputeSpec, InstanceSpec, Layout, ModeChange};
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
    /// Whether the two are the same: driver ids and places decide, names differ between drivers.
    /// A place of a compute instance that is not known equals any.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let (mut ours, mut theirs) = (self.sorted(), other.sorted());
        self.mode == other.mode
            && ours.len() == theirs.len()
            && ours.iter_mut().zip(&mut theirs).all(|(a, b)| {
                (a.placement, a.driver_id) == (b.placement, b.driver_id)
                    && same_compute(&mut a.compute, &mut b.compute)
            })
    }

    fn sorted(&self) -> Vec<InstanceSpec> {
        let mut instances = self.layout.instances.clone();
        instances.sort_by_key(|instance| (instance.placement, instance.driver_id));
        instances
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
                    if let Some(at) = found.compute.iter().position(|c| is_like(c, compute)) {
                        found.compute.remove(at);
                    }
                }
            }
        }
        next
    }

    fn instance(&self, placement: Placement) -> Option<&InstanceSpec> {
        let mut all = self.layout.instances.iter();
        all.find(|instance| instance.placement == placement)
    }

    fn has(&self, placement: Placement, driver_id: u32) -> bool {
        self.instance(placement)
            .is_some_and(|instance| instance.driver_id == driver_id)
    }

    fn has_compute(&self, placement: Placement, compute: &ComputeSpec) -> bool {
        self.instance(placement)
            .is_some_and(|instance| instance.compute.iter().any(|c| is_like(c, compute)))
    }

    /// Whether a condition holds; `None` for the one that this cannot tell, [`Condition::Idle`].
    pub(crate) fn holds(&self, condition: &Condition) -> Option<bool> {
        Some(match condition {
            Condition::ModeRequested { on } => self.mode.will_be_on() == *on,
            Condition::ModeInForce { on } => self.mode == Mode::from_states(*on, *on),
            Condition::NothingPending => !self.mode.is_pending(),
            Condition::Idle => return None,
            Condition::NoInstances => self.layout.instances.is_empty(),
            Condition::InstancePresent {
                placement,
                driver_id,
            } => self.has(*placement, *driver_id),
            Condition::InstanceAbsent {
                placement,
                driver_id,
            } => !self.has(*placement, *driver_id),
            Condition::UnitsFree { placement } => {
                let mut all = self.layout.instances.iter();
                !all.any(|instance| instance.placement.overlaps(*placement))
            }
            Condition::InstanceEmpty { placement } => self
                .instance(*placement)
                .is_some_and(|instance| instance.compute.is_empty()),
            Condition::ComputePresent { instance, compute } => self.has_compute(*instance, compute),
            Condition::ComputeAbsent { instance, compute } => !self.has_compute(*instance, compute),
        })
    }

    /// Whether there is nothing left for an action to do.
    pub(crate) fn has_done(&self, action: &Action) -> bool {
        match action {
            Action::SetMode { on } => self.mode.will_be_on() == *on,
            Action::Reset => !self.mode.is_pending(),
            Action::CreateGpuInstance {
                placement,
                driver_id,
                ..
            } => self.has(*placement, *driver_id),
            Action::DestroyGpuInstance {
                placement,
                driver_id,
                ..
            } => !self.has(*placement, *driver_id),
            Action::CreateCompute { instance, compute } => self.has_compute(*instance, compute),
            Action::DestroyCompute { instance, compute } => !self.has_compute(*instance, compute),
        }
    }
}

/// The same compute instance, as far as is known.
fn is_like(a: &ComputeSpec, b: &ComputeSpec) -> bool {
    let known = |spec: &ComputeSpec| spec.placement.is_some();
    a.driver_id == b.driver_id && (a.placement == b.placement || !known(a) || !known(b))
}

fn same_compute(a: &mut [ComputeSpec], b: &mut [ComputeSpec]) -> bool {
    let placed = a.iter().chain(b.iter()).all(|c| c.placement.is_some());
    let key = |c: &ComputeSpec| (c.placement.filter(|_| placed), c.driver_id);
    a.sort_by_key(key);
    b.sort_by_key(key);
    a.iter().map(key).eq(b.iter().map(key))
}

/// A GPU as it was read, with the driver's ids.
pub(crate) struct Seen {
    pub(crate) state: GpuState,
    instances: Vec<GpuInstance>,
}

/// The driver and the reset tool, with the promise that no driver call is under way during a
/// reset: the tool must close the process's handles on the driver.
pub(crate) struct Hands<'a> {
    driver: &'a dyn Driver,
    reset: &'a dyn Reset,
    gate: RwLock<()>,
}

impl<'a> Hands<'a> {
    pub(crate) fn new(driver: &'a dyn Driver, reset: &'a dyn Reset) -> Self {
        Self {
            driver,
            reset,
            gate: RwLock::new(()),
        }
    }

    /// Runs something that calls the driver.
    fn driver<T>(
        &self,
        call: impl FnOnce(&dyn Driver) -> Result<T, gpu::Error>,
    ) -> Result<T, gpu::Error> {
        let _open = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        call(self.driver)
    }

    /// What is on the GPU now.
    pub(crate) fn look(&self, gpu: &GpuUuid) -> Result<Seen, Cause> {
        let (mode, instances) =
            self.driver(|driver| Ok((driver.mode(gpu)?, driver.instances(gpu)?)))?;
        let Some(mode) = mode else {
            let message = format!("{gpu} has no MIG mode");
            return Err(Cause::new(Code::MigUnsupported, message));
        };
        let mut specs: Vec<InstanceSpec> = instances.iter().map(GpuInstance::spec).collect();
        specs.sort();
        let layout = Layout { instances: specs };
        Ok(Seen {
            state: GpuState { mode, layout },
            instances,
        })
    }

    /// Who uses the GPU, if anybody does.
    pub(crate) fn holder(&self, gpu: &GpuUuid) -> Result<Option<String>, Cause> {
        let read = self.driver(|driver| driver.gpu(gpu))?;
        let compute = read.instances.iter().flat_map(|i| &i.compute);
        let mut holders = read.holders.iter().chain(compute.flat_map(|c| &c.holders));
        Ok(holders
            .next()
            .map(|holder| format!("process {} {}", holder.pid, holder.name).trim().to_owned()))
    }

    /// Does it, and does not look whether it worked.
    pub(crate) fn act(&self, gpu: &GpuUuid, seen: &Seen, action: &Action) -> Result<(), Cause> {
        match action {
            Action::SetMode { on } => self.driver(|driver| driver.set_mode(gpu, *on))?,
            Action::Reset if !seen.state.mode.is_pending() => {}
            Action::Reset => {
                let _closed = self.gate.write().unwrap_or_else(PoisonError::into_inner);
                self.reset.reset(std::slice::from_ref(gpu))?;
            }
            Action::CreateGpuInstance {
                placement,
                driver_id,
                ..
            } => {
                self.driver(|driver| driver.create_gpu_instance(gpu, *driver_id, *placement))?;
            }
            Action::DestroyGpuInstance { placement, .. } => {
                let id = seen.instance(gpu, *placement)?.id;
                self.driver(|driver| driver.destroy_gpu_instance(gpu, id))?;
            }
            Action::CreateCompute { instance, compute } => {
                let id = seen.instance(gpu, *instance)?.id;
                self.driver(|driver| {
                    driver.create_compute_instance(gpu, id, compute.driver_id, compute.placement)
                })?;
            }
            Action::DestroyCompute { instance, compute } => {
                let (id, compute) = seen.compute(gpu, *instance, compute)?;
                self.driver(|driver| driver.destroy_compute_instance(gpu, id, compute))?;
            }
        }
        Ok(())
    }
}

impl Seen {
    fn instance(&self, gpu: &GpuUuid, placement: Placement) -> Result<&GpuInstance, Cause> {
        let mut all = self.instances.iter();
        all.find(|instance| instance.placement == placement)
            .ok_or_else(|| gone(gpu, &format!("GPU instance at {placement}")))
    }

    /// Ids of a compute instance and its GPU instance.
    fn compute(
        &self,
        gpu: &GpuUuid,
        placement: Placement,
        wanted: &ComputeSpec,
    ) -> Result<(u32, u32), Cause> {
        let instance = self.instance(gpu, placement)?;
        let mut all = instance.compute.iter();
        let found = all.find(|compute| {
            compute.driver_id == wanted.driver_id
                && (wanted.placement.is_none() || compute.placement == wanted.placement)
        });
        let what = || format!("compute instance {} at {placement}", wanted.profile);
        let found = found.ok_or_else(|| gone(gpu, &what()))?;
        Ok((instance.id, found.id))
    }
}

fn gone(gpu: &GpuUuid, what: &str) -> Cause {
    let message = format!("{what} on {gpu} is not there any more: something else changes this GPU");
    Cause::new(Code::ForeignChange, message)
}
