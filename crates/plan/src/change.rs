// SPDX-License-Identifier: Apache-2.0
//! What changes on one GPU's instances, who is hurt by it, and its steps.

use std::collections::BTreeSet;

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Holder};
use geometry::place::Placed;
use geometry::{ComputeSpec, InstanceSpec, Layout};
use units::Placement;

use crate::step::{Action, Condition, Step};

/// A GPU instance that is there and stays, with what changes inside it.
struct Kept<'a> {
    instance: &'a GpuInstance,
    goes: Vec<&'a ComputeInstance>,
    comes: Vec<ComputeSpec>,
}

/// The difference between what is on a GPU and what shall be.
pub(crate) struct Change<'a> {
    gpu: &'a Gpu,
    keep: Vec<Kept<'a>>,
    destroy: Vec<&'a GpuInstance>,
    create: Vec<InstanceSpec>,
}

/// A slice that goes although something uses it.
pub(crate) struct Hurt<'a> {
    /// Place of its GPU instance.
    pub(crate) place: Placement,
    /// The slice.
    pub(crate) slice: &'a ComputeInstance,
}

impl<'a> Change<'a> {
    /// Everything stays.
    pub(crate) fn none(gpu: &'a Gpu) -> Self {
        let keep = gpu.instances.iter().map(|instance| Kept {
            instance,
            goes: Vec::new(),
            comes: Vec::new(),
        });
        Self {
            gpu,
            keep: keep.collect(),
            destroy: Vec::new(),
            create: Vec::new(),
        }
    }

    /// Everything goes.
    pub(crate) fn clear(gpu: &'a Gpu) -> Self {
        Self {
            gpu,
            keep: Vec::new(),
            destroy: gpu.instances.iter().collect(),
            create: Vec::new(),
        }
    }

    /// What the placement says.
    pub(crate) fn placed(gpu: &'a Gpu, placed: Placed) -> Self {
        let there = |index: &usize| gpu.instances.get(*index);
        let keep = placed.keep.into_iter().filter_map(|kept| {
            let instance = there(&kept.present)?;
            let compute = instance.compute_in_order();
            let goes = kept.destroy_compute.iter();
            Some(Kept {
                instance,
                goes: goes
                    .filter_map(|index| compute.get(*index).copied())
                    .collect(),
                comes: kept.create_compute,
            })
        });
        Self {
            gpu,
            keep: keep.collect(),
            destroy: placed.destroy.iter().filter_map(there).collect(),
            create: placed.create,
        }
    }

    /// GPU instances that stay, as they will be.
    pub(crate) fn kept(&self) -> Vec<InstanceSpec> {
        self.keep.iter().map(Kept::after).collect()
    }

    /// GPU instances that go.
    pub(crate) fn destroyed(&self) -> Vec<InstanceSpec> {
        self.destroy
            .iter()
            .map(|instance| instance.spec())
            .collect()
    }

    /// GPU instances that come.
    pub(crate) fn created(&self) -> &[InstanceSpec] {
        &self.create
    }

    /// The layout after it.
    pub(crate) fn after(&self) -> Layout {
        let mut instances = self.kept();
        instances.extend_from_slice(&self.create);
        instances.sort();
        Layout { instances }
    }

    /// Compute instances that go, with the place of their GPU instance.
    fn slices_that_go(&self) -> impl Iterator<Item = (Placement, &'a ComputeInstance)> {
        let inside = self.keep.iter().flat_map(|kept| {
            let goes = kept.goes.iter();
            goes.map(|compute| (kept.instance.placement, *compute))
        });
        let whole = self.destroy.iter().flat_map(|instance| {
            let goes = instance.compute_in_order().into_iter();
            goes.map(|compute| (instance.placement, compute))
        });
        inside.chain(whole)
    }

    /// Slices that go although something uses them.
    pub(crate) fn hurt(&self) -> Vec<Hurt<'a>> {
        self.slices_that_go()
            .filter(|(_, slice)| !slice.holders.is_empty())
            .map(|(place, slice)| Hurt { place, slice })
            .collect()
    }

    /// A slice that goes and could not be put back where it was, since the driver hides its place.
    pub(crate) fn of_unknown_place(&self) -> Option<&'a ComputeInstance> {
        self.slices_that_go()
            .map(|(_, slice)| slice)
            .find(|slice| slice.placement.is_none() && slice.profile.is_partial())
    }

    /// Everybody who is hurt: of the whole GPU if `whole`, else of what goes.
    pub(crate) fn holders(&self, whole: bool) -> Vec<Holder> {
        let mut holders: BTreeSet<&Holder> = self
            .slices_that_go()
            .flat_map(|(_, slice)| &slice.holders)
            .collect();
        if whole {
            let slices = self.gpu.instances.iter().flat_map(|i| &i.compute);
            holders.extend(slices.flat_map(|slice| &slice.holders));
            holders.extend(&self.gpu.holders);
        }
        holders.into_iter().cloned().collect()
    }

    /// The steps: what goes first, slices before instances; then what comes, by rising start.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let slices = self
            .slices_that_go()
            .map(|(place, slice)| destroy_compute(place, &slice.spec()));
        let instances = self
            .destroy
            .iter()
            .map(|instance| destroy_instance(instance));
        let mut steps: Vec<Step> = slices.chain(instances).collect();
        let mut comes: Vec<(Placement, Vec<Step>)> = Vec::new();
        for kept in &self.keep {
            let instance = kept.instance;
            let slices = create_slices(instance.placement, instance.driver_id, &kept.comes);
            comes.push((instance.placement, slices));
        }
        for instance in &self.create {
            let mut steps = vec![create_instance(instance)];
            let slices = create_slices(instance.placement, instance.driver_id, &instance.compute);
            steps.extend(slices);
            comes.push((instance.placement, steps));
        }
        comes.sort_by_key(|(placement, _)| *placement);
        steps.extend(comes.into_iter().flat_map(|(_, steps)| steps));
        steps
    }
}

impl Kept<'_> {
    fn after(&self) -> InstanceSpec {
        let mut spec = self.instance.spec();
        for compute in &self.goes {
            let gone = compute.spec();
            if let Some(at) = spec.compute.iter().position(|there| *there == gone) {
                spec.compute.remove(at);
            }
        }
        spec.compute.extend_from_slice(&self.comes);
        spec.compute
            .sort_by_key(|compute| (compute.placement, compute.driver_id));
        spec
    }
}

fn destroy_compute(instance: Placement, compute: &ComputeSpec) -> Step {
    let compute = compute.clone();
    Step {
        action: Action::DestroyCompute {
            instance,
            compute: compute.clone(),
        },
        requires: vec![Condition::ComputePresent {
            instance,
            compute: compute.clone(),
        }],
        check: Condition::ComputeAbsent {
            instance,
            compute: compute.clone(),
        },
        undo: vec![Action::CreateCompute { instance, compute }],
    }
}

fn destroy_instance(instance: &GpuInstance) -> Step {
    let (placement, driver_id) = (instance.placement, instance.driver_id);
    let profile = instance.profile.clone();
    Step {
        action: Action::DestroyGpuInstance {
            placement,
            profile: profile.clone(),
            driver_id,
        },
        requires: vec![
            Condition::InstancePresent {
                placement,
                driver_id,
            },
            Condition::InstanceEmpty { placement },
        ],
        check: Condition::InstanceAbsent {
            placement,
            driver_id,
        },
        undo: vec![Action::CreateGpuInstance {
            placement,
            profile,
            driver_id,
        }],
    }
}

fn create_instance(instance: &InstanceSpec) -> Step {
    let (placement, driver_id) = (instance.placement, instance.driver_id);
    let profile = instance.profile.clone();
    Step {
        action: Action::CreateGpuInstance {
            placement,
            profile: profile.clone(),
            driver_id,
        },
        requires: vec![
            Condition::ModeInForce { on: true },
            Condition::UnitsFree { placement },
        ],
        check: Condition::InstancePresent {
            placement,
            driver_id,
        },
        undo: vec![Action::DestroyGpuInstance {
            placement,
            profile,
            driver_id,
        }],
    }
}

fn create_slices(instance: Placement, driver_id: u32, compute: &[ComputeSpec]) -> Vec<Step> {
    let step = |compute: &ComputeSpec| Step {
        action: Action::CreateCompute {
            instance,
            compute: compute.clone(),
        },
        requires: vec![
            Condition::InstancePresent {
                placement: instance,
                driver_id,
            },
            Condition::ComputeAbsent {
                instance,
                compute: compute.clone(),
            },
        ],
        check: Condition::ComputePresent {
            instance,
            compute: compute.clone(),
        },
        undo: vec![Action::DestroyCompute {
            instance,
            compute: compute.clone(),
        }],
    };
    compute.iter().map(step).collect()
}
