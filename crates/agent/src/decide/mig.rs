// SPDX-License-Identifier: Apache-2.0
//! What is to be done about the layout.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use geometry::inventory::{Gpu, Inventory};
use plan::{Action, GpuPlan, Plan, Policy, Refusal, Wish};
use publish::Node;
use snapshot::CapHandle;
use units::{Code, GpuUuid, MigUuid};

use super::desired::MigWanted;

/// What is to be done about the layout.
#[derive(Clone, Debug)]
pub enum MigDecision {
    /// Nothing is wanted: it stays as it is.
    Leave,
    /// It is as wanted.
    Applied {
        /// Name of the MIG config.
        name: String,
    },
    /// It is not possible. Nothing is touched.
    Refused {
        /// Name of the MIG config.
        name: String,
        /// Why.
        refusal: Refusal,
    },
    /// It is to be changed.
    Change(Box<MigChange>),
}

/// A change of the layout.
#[derive(Clone, Debug)]
pub struct MigChange {
    /// Name of the MIG config.
    pub name: String,
    /// What it means of single GPUs.
    pub wish: Wish,
    /// The way there.
    pub plan: Plan,
    /// What goes.
    pub goes: Goes,
    /// The same wish on the same hardware has the same number.
    pub fingerprint: u64,
}

/// Devices that a change takes away.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Goes {
    /// Slices that are destroyed.
    pub slices: BTreeSet<MigUuid>,
    /// GPUs that cannot be used as a whole meanwhile.
    pub gpus: BTreeSet<GpuUuid>,
    /// GPU instances that are destroyed, by GPU and the driver's id.
    pub instances: BTreeSet<(GpuUuid, u32)>,
}

/// A device that a container has, by the kubelet's account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocation {
    /// `NAMESPACE/NAME` of the pod.
    pub pod: String,
    /// Full resource name.
    pub resource: String,
    /// Id of the device.
    pub id: String,
}

/// Decides about the layout from hardware and wish. Who holds a device by its process is seen
/// here; who has it allocated is judged by [`Goes::hurts`] once the devices are fenced. `known` is
/// what was last heard of that: it gives processes the names of their pods.
pub fn decide(
    wanted: Option<&MigWanted>,
    inventory: &Inventory,
    known: &[Allocation],
) -> MigDecision {
    let Some(wanted) = wanted else {
        return MigDecision::Leave;
    };
    let name = wanted.name.clone();
    let entries = match &wanted.entries {
        Ok(entries) => entries,
        Err(refusal) => {
            let refusal = refusal.clone();
            return MigDecision::Refused { name, refusal };
        }
    };
    let wish = match plan::resolve(entries, inventory) {
        Ok(wish) => wish,
        Err(refusal) => return MigDecision::Refused { name, refusal },
    };
    match plan::plan(inventory, &wish, &Policy::default()) {
        Err(refusal) => MigDecision::Refused {
            name,
            refusal: with_pods(refusal, &wish, inventory, known),
        },
        Ok(plan) if plan.is_empty() => MigDecision::Applied { name },
        Ok(plan) => MigDecision::Change(Box::new(MigChange {
            goes: Goes::of(&plan, inventory),
            fingerprint: fingerprint(&wish, inventory),
            name,
            wish,
            plan,
        })),
    }
}

/// The refusal with the pods that have what would go.
fn with_pods(
    refusal: Refusal,
    wish: &Wish,
    inventory: &Inventory,
    known: &[Allocation],
) -> Refusal {
    let forced = Policy {
        ignore_holders: true,
        ..Policy::default()
    };
    let goes = plan::plan(inventory, wish, &forced).map(|plan| Goes::of(&plan, inventory));
    let pods = goes.map(|goes| goes.pods(known)).unwrap_or_default();
    if refusal.code != Code::InUse || pods.is_empty() {
        return refusal;
    }
    let message = format!("{}; pods: {}", refusal.message, pods.join("; "));
    Refusal { message, ..refusal }
}

fn fingerprint(wish: &Wish, inventory: &Inventory) -> u64 {
    let mut hasher = DefaultHasher::new();
    format!("{:?}", wish.gpus).hash(&mut hasher);
    for gpu in &inventory.gpus {
        format!("{} {:?} {:?}", gpu.uuid, gpu.mode, gpu.layout()).hash(&mut hasher);
    }
    hasher.finish()
}

impl Goes {
    /// What a plan takes away.
    pub fn of(plan: &Plan, inventory: &Inventory) -> Self {
        let mut goes = Self::default();
        for plan in plan.gpus.iter().filter(|gpu| !gpu.steps.is_empty()) {
            let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == plan.uuid);
            if let Some(gpu) = gpu {
                goes.add(plan, gpu);
            }
        }
        goes
    }

    /// Everything, as when the node is rebooted.
    pub fn all(inventory: &Inventory) -> Self {
        let instances = inventory.gpus.iter().flat_map(|gpu| &gpu.instances);
        let compute = instances.flat_map(|instance| &instance.compute);
        Self {
            slices: compute.filter_map(|it| it.uuid.clone()).collect(),
            gpus: inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect(),
            instances: BTreeSet::new(),
        }
    }

    fn add(&mut self, plan: &GpuPlan, gpu: &Gpu) {
        let whole = plan.mode_before != plan.mode_after || plan.resets();
        let mut destroys = whole;
        for instance in &gpu.instances {
            let goes = plan.steps.iter().any(|step| {
                matches!(&step.action, Action::DestroyGpuInstance { placement, .. }
                    if *placement == instance.placement)
            });
            if goes {
                self.instances.insert((gpu.uuid.clone(), instance.id));
            }
            for compute in &instance.compute {
                let goes = plan.steps.iter().any(|step| match &step.action {
                    Action::DestroyCompute {
                        instance: place,
                        compute: spec,
                    } => *place == instance.placement && compute.spec().is_like(spec),
                    _ => false,
                });
                destroys |= goes;
                if goes || whole {
                    self.slices.extend(compute.uuid.clone());
                }
            }
        }
        if destroys {
            self.gpus.insert(gpu.uuid.clone());
        }
    }

    /// The UUIDs of all devices that go.
    pub fn uuids(&self) -> impl Iterator<Item = &str> {
        let slices = self.slices.iter().map(MigUuid::as_str);
        slices.chain(self.gpus.iter().map(GpuUuid::as_str))
    }

    /// The pods that have one of these devices, each as `POD has ID (RESOURCE)`.
    fn pods(&self, allocations: &[Allocation]) -> Vec<String> {
        let goes: BTreeSet<&str> = self.uuids().collect();
        let mut pods: Vec<String> = allocations
            .iter()
            .filter(|it| goes.contains(publish::device_uuid(&it.id)))
            .map(|it| format!("{} has {} ({})", it.pod, it.id, it.resource))
            .collect();
        pods.dedup();
        pods
    }

    /// Minor numbers of the capability devices of the slices that go.
    pub fn minors(&self, node: &Node) -> BTreeSet<u32> {
        let facts = self.slices.iter().filter_map(|uuid| node.slices.get(uuid));
        let minors = facts.filter_map(|facts| facts.cap_minors);
        minors
            .flat_map(|(instance, compute)| [instance, compute])
            .collect()
    }

    /// The refusal that names the pods that have one of these devices, if there are any.
    pub fn hurts(&self, allocations: &[Allocation]) -> Option<Refusal> {
        let pods = self.pods(allocations);
        if pods.is_empty() {
            return None;
        }
        let message = format!(
            "the change would take devices from running pods: {}; end these pods, or allow it by \
             the annotation {}=true on the node",
            pods.join("; "),
            kubeapi::names::MAY_DISRUPT,
        );
        Some(Refusal::new(Code::InUse, message))
    }
}

/// The refusal that names the processes that have capability devices of slices open that go.
pub fn opened(handles: &BTreeSet<CapHandle>) -> Option<Refusal> {
    let processes = handles.iter();
    let processes = processes.map(|it| format!("process {} ({})", it.pid, it.name));
    let processes: BTreeSet<String> = processes.collect();
    if processes.is_empty() {
        return None;
    }
    let message = format!(
        "a slice that would go is open in {}; end what has it open",
        Vec::from_iter(processes).join(", ")
    );
    Some(Refusal::new(Code::InUse, message))
}
