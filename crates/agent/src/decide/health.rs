// SPDX-License-Identifier: Apache-2.0
//! Faults of GPUs over time: they come with an event and go when the GPU has proven itself.
//!
//! ```text
//!            XID that acts                       quiet for QUIET, and it answers
//! healthy ─────────────────> faulty ────────────────────────────────────────────> healthy
//!    └── it is lost ──────────> │ <── again                                          ^
//!                               └──── it was lost or reset, and answers for STEADY ──┘
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use geometry::inventory::Inventory;
use publish::Fault;
use units::GpuUuid;

/// How long a GPU that reported a fault must be quiet before it counts as healthy again.
pub const QUIET: Duration = Duration::from_secs(300);
/// How long a GPU that was away must answer before it counts as healthy again, so that one that
/// comes and goes is not offered each time.
pub const STEADY: Duration = Duration::from_secs(10);

/// The faults of a node. Times are those since some start.
#[derive(Clone, Debug, Default)]
pub struct Health {
    faults: BTreeMap<Fault, Since>,
    /// GPUs that were seen, by index: a lost one has no UUID any more.
    known: BTreeMap<u32, GpuUuid>,
}

#[derive(Clone, Copy, Debug)]
struct Since {
    last: Duration,
    wait: Duration,
}

impl Health {
    /// A GPU or part of it reported a fault.
    pub fn report(&mut self, now: Duration, fault: Fault) {
        let since = Since {
            last: now,
            wait: QUIET,
        };
        self.faults.insert(fault, since);
    }

    /// The node was read. What is gone is faulty; what has answered long enough is not any more.
    pub fn seen(&mut self, now: Duration, inventory: &Inventory) {
        let there: BTreeSet<&GpuUuid> = inventory.gpus.iter().map(|gpu| &gpu.uuid).collect();
        for gpu in &inventory.gpus {
            self.known.insert(gpu.index, gpu.uuid.clone());
        }
        for index in &inventory.lost {
            if let Some(gpu) = self.known.get(index).cloned() {
                self.away(now, gpu);
            }
        }
        self.faults.retain(|fault, since| {
            let is_over = there.contains(&fault.gpu) && now >= since.last + since.wait;
            !is_over && !is_of_nothing(fault, inventory)
        });
    }

    /// These GPU instances were destroyed, by the driver's ids: what they reported is over, though
    /// others may have their ids by now.
    pub fn destroyed(&mut self, instances: &BTreeSet<(GpuUuid, u32)>) {
        self.faults.retain(|fault, _| {
            let instance = fault.gpu_instance.map(|id| (fault.gpu.clone(), id));
            !instance.is_some_and(|instance| instances.contains(&instance))
        });
    }

    /// These GPUs were reset: what they reported before is over once they answer.
    pub fn reset(&mut self, now: Duration, gpus: &[GpuUuid]) {
        for (fault, since) in &mut self.faults {
            if gpus.contains(&fault.gpu) {
                *since = Since {
                    last: now,
                    wait: STEADY,
                };
            }
        }
    }

    fn away(&mut self, now: Duration, gpu: GpuUuid) {
        let since = Since {
            last: now,
            wait: STEADY,
        };
        for (fault, known) in &mut self.faults {
            if fault.gpu == gpu {
                *known = since;
            }
        }
        let fault = Fault {
            gpu,
            gpu_instance: None,
            compute_instance: None,
            what: "it fell off the bus".to_owned(),
        };
        self.faults.insert(fault, since);
    }

    /// The faults now.
    pub fn faults(&self) -> Vec<Fault> {
        self.faults.keys().cloned().collect()
    }

    /// When the first fault may be over, if the GPU answers; `None`: there is none.
    pub fn next(&self) -> Option<Duration> {
        self.faults
            .values()
            .map(|since| since.last + since.wait)
            .min()
    }
}

/// Whether a fault is of a GPU instance that somebody has destroyed.
fn is_of_nothing(fault: &Fault, inventory: &Inventory) -> bool {
    let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == fault.gpu);
    match (gpu, fault.gpu_instance) {
        (Some(gpu), Some(id)) => gpu.instances.iter().all(|instance| instance.id != id),
        _ => false,
    }
}
