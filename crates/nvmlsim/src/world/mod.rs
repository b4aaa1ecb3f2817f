// SPDX-License-Identifier: Apache-2.0
//! The simulated machine: its state as plain data, and what operations do to it.
//!
//! Nothing here reads a clock, a file or the environment. Whether an instance is legal is judged
//! by the few lines of [`legal`], never by the planner's placement code, so that each checks the
//! other.

mod create;
mod instances;
mod legal;
mod mode;
mod spec;
#[cfg(test)]
mod tests;

pub use create::{Options, driver_version};
pub use spec::{Spec, SpecError};

use std::collections::BTreeMap;
use std::sync::OnceLock;

use geometry::Board;
use serde::{Deserialize, Serialize};
use units::{GpuUuid, MigUuid, Mode, Placement};

use crate::code::{Answer, GPU_IS_LOST, INVALID_ARGUMENT, NOT_FOUND};
use crate::fault::Rule;

/// Version of the state's form; another one is refused.
pub const FORMAT: u32 = 1;

/// A simulated machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    /// [`FORMAT`].
    pub slicewright_world: u32,
    /// What identities are derived from.
    pub seed: u64,
    /// Rises with every write.
    pub generation: u64,
    /// How often the machine was started, from 1.
    pub boot: u32,
    /// Driver version, `580.95.05`.
    pub driver_version: String,
    /// CUDA version that the driver supports, major and minor.
    pub cuda_version: (u16, u16),
    /// How long a call takes that changes something, in milliseconds.
    pub latency_ms: u64,
    /// GPUs by index, which is the order of their PCI addresses.
    pub gpus: Vec<Gpu>,
    /// Faults to come, in the order in which they were given.
    pub rules: Vec<Rule>,
    /// The last events, oldest first; at most [`EVENTS_KEPT`].
    pub events: Vec<Event>,
    /// Number of the next event or instance: tells a handle from one of an earlier instance in
    /// the same place.
    pub next_serial: u32,
}

/// How many events a world remembers for those who wait.
pub const EVENTS_KEPT: usize = 256;

/// One simulated GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gpu {
    /// N of `/dev/nvidiaN`.
    pub minor: u32,
    /// UUID.
    pub uuid: GpuUuid,
    /// Key of the board in the catalogue.
    pub board: String,
    /// PCI bus; domain 0, device 0, function 0.
    pub bus: u8,
    /// Serial number.
    pub serial: String,
    /// NUMA node.
    pub numa_node: u32,
    /// Total memory in MiB.
    pub memory_mib: u64,
    /// Whether the halves are swapped between logical and physical places, as on some real GPUs.
    pub mirrored: bool,
    /// Whether persistence mode is on.
    pub persistence: bool,
    /// Whether MIG is in force.
    pub mig_current: bool,
    /// Whether MIG is in force after a reset.
    pub mig_pending: bool,
    /// Whether the GPU fell off the bus.
    pub lost: bool,
    /// GPU instances by id.
    pub instances: Vec<Instance>,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The driver's id.
    pub id: u32,
    /// Driver id of its profile.
    pub profile: u32,
    /// Logical place.
    pub placement: Placement,
    /// Number that no other instance of this world has.
    pub serial: u32,
    /// Compute instances by id.
    pub compute: Vec<Compute>,
}

/// A compute instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// The driver's id within the GPU instance, from 0.
    pub id: u32,
    /// Driver id of its profile.
    pub profile: u32,
    /// Place in compute slices of the GPU instance.
    pub placement: Placement,
    /// Number that no other instance of this world has.
    pub serial: u32,
}

/// Something that happened, for those who wait for events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// Rises from event to event.
    pub serial: u32,
    /// Index of the GPU.
    pub gpu: u32,
    /// GPU instance and compute instance, where the event is about one.
    pub instance: Option<(u32, u32)>,
    /// What happened.
    pub what: EventKind,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// A critical error with this XID.
    Xid(u32),
    /// Instances or the MIG mode changed.
    MigConfigChange,
}

/// The catalogue's boards by key, made once.
pub fn catalogue() -> &'static BTreeMap<String, Board> {
    static BOARDS: OnceLock<BTreeMap<String, Board>> = OnceLock::new();
    BOARDS.get_or_init(|| {
        let boards = geometry::catalogue::boards().into_iter();
        boards.map(|board| (board.key.clone(), board)).collect()
    })
}

impl Gpu {
    /// Its board's tables. A loaded world names only boards that exist ([`World::check`]).
    pub fn board(&self) -> Answer<&'static Board> {
        catalogue().get(&self.board).ok_or(crate::code::UNKNOWN)
    }

    /// The MIG mode; meaningless on a board without MIG.
    pub fn mode(&self) -> Mode {
        Mode::from_states(self.mig_current, self.mig_pending)
    }

    /// PCI address as NVML writes it.
    pub fn pci_bus_id(&self) -> String {
        format!("00000000:{:02X}:00.0", self.bus)
    }

    /// The GPU instance with that id.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn instance(&self, id: u32) -> Answer<&Instance> {
        let mut all = self.instances.iter();
        all.find(|instance| instance.id == id).ok_or(NOT_FOUND)
    }

    /// All compute instances with their GPU instances, in the order of MIG device indices.
    pub fn mig_devices(&self) -> impl Iterator<Item = (&Instance, &Compute)> {
        let all = self.instances.iter();
        all.flat_map(|instance| {
            instance
                .compute
                .iter()
                .map(move |compute| (instance, compute))
        })
    }

    /// The UUID of a compute instance: the same for one in the same place, as on real drivers
    /// since R470 (source: the open kernel modules, and a capture on an RTX PRO 6000).
    pub fn mig_uuid(&self, instance: &Instance, compute: &Compute) -> MigUuid {
        create::mig_uuid(&self.uuid, instance, compute)
    }
}

impl Instance {
    /// The compute instance with that id.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn compute(&self, id: u32) -> Answer<&Compute> {
        let mut all = self.compute.iter();
        all.find(|compute| compute.id == id).ok_or(NOT_FOUND)
    }
}

impl World {
    /// The GPU with that index.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is none, `GPU_IS_LOST` if it fell off the bus.
    pub fn gpu(&self, index: u32) -> Answer<&Gpu> {
        let gpu = self.gpus.get(index as usize).ok_or(INVALID_ARGUMENT)?;
        if gpu.lost { Err(GPU_IS_LOST) } else { Ok(gpu) }
    }

    fn gpu_mut(&mut self, index: u32) -> Answer<&mut Gpu> {
        let gpu = self.gpus.get_mut(index as usize).ok_or(INVALID_ARGUMENT)?;
        if gpu.lost { Err(GPU_IS_LOST) } else { Ok(gpu) }
    }

    /// The index of the GPU with that UUID.
    pub fn index_of(&self, uuid: &GpuUuid) -> Option<u32> {
        let at = self.gpus.iter().position(|gpu| gpu.uuid == *uuid)?;
        u32::try_from(at).ok()
    }

    /// A number that was not given before.
    fn serial(&mut self) -> u32 {
        self.next_serial = self.next_serial.wrapping_add(1);
        self.next_serial
    }

    /// Tells those who wait for events.
    pub fn tell(&mut self, gpu: u32, instance: Option<(u32, u32)>, what: EventKind) {
        let serial = self.serial();
        self.events.push(Event {
            serial,
            gpu,
            instance,
            what,
        });
        let surplus = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..surplus);
    }

    /// Whether the state is one that the simulator can have made.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        if self.slicewright_world != FORMAT {
            return Err(format!(
                "it has format {}, this version knows {FORMAT}",
                self.slicewright_world
            ));
        }
        for (index, gpu) in self.gpus.iter().enumerate() {
            legal::check(gpu).map_err(|reason| format!("GPU {index}: {reason}"))?;
        }
        Ok(())
    }
}
