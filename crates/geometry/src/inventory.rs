// SPDX-License-Identifier: Apache-2.0
//! Everything read from the driver of one machine at one moment, as plain data.

use std::fmt;

use serde::{Deserialize, Serialize};
use units::{GpuUuid, MigUuid, Mode, PciDevice, Placement, ProfileName};

use crate::board::Board;
use crate::layout::{ComputeSpec, InstanceSpec, Layout};

/// One machine's GPUs as its driver reported them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// Driver version, `580.95.05`.
    pub driver_version: String,
    /// CUDA version that the driver supports, major and minor.
    pub cuda_version: (u16, u16),
    /// GPUs by rising index.
    pub gpus: Vec<Gpu>,
    /// Indices of GPUs that the driver counts and cannot reach any more: they fell off the bus.
    #[serde(default)]
    pub lost: Vec<u32>,
}

/// One physical GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// NVML index: place in the list sorted by PCI address.
    pub index: u32,
    /// N of `/dev/nvidiaN`; not always the index. `None` where unknown.
    pub minor: Option<u32>,
    /// UUID.
    pub uuid: GpuUuid,
    /// Product name as NVML gives it.
    pub name: String,
    /// PCI address, `00000000:19:00.0`.
    pub pci_bus_id: String,
    /// PCI device and vendor.
    pub pci_device: PciDevice,
    /// PCI subsystem device and vendor.
    pub pci_subsystem: PciDevice,
    /// NUMA node; `None` where unknown.
    pub numa_node: Option<u32>,
    /// Total memory in MiB.
    pub memory_mib: u64,
    /// CUDA compute capability.
    pub compute_capability: (u8, u8),
    /// MIG mode; `None` on a GPU without MIG.
    pub mode: Option<Mode>,
    /// Tables of the board: from the driver where it answers, else from the catalogue. A board
    /// that neither knows has `unknown` set.
    pub board: Board,
    /// GPU instances by rising start of their placement.
    pub instances: Vec<GpuInstance>,
    /// Who uses the whole GPU, by process id.
    pub holders: Vec<Holder>,
}

/// A GPU instance that exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuInstance {
    /// The driver's id of the instance; says nothing about its place.
    pub id: u32,
    /// Driver id of the profile.
    pub driver_id: u32,
    /// Canonical profile name.
    pub profile: ProfileName,
    /// Place in the board's placement units.
    pub placement: Placement,
    /// Compute instances by rising id. Empty for an orphan.
    pub compute: Vec<ComputeInstance>,
}

/// A compute instance that exists: a slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComputeInstance {
    /// The driver's id within the GPU instance.
    pub id: u32,
    /// Driver id of the compute profile.
    pub driver_id: u32,
    /// Canonical profile name, with compute part where partial.
    pub profile: ProfileName,
    /// Place in compute slices of the GPU instance; `None` where the driver does not tell.
    pub placement: Option<Placement>,
    /// UUID; `None` where the driver shows no MIG device for it.
    pub uuid: Option<MigUuid>,
    /// Index of that MIG device among those of its GPU. It may change when others come or go.
    pub mig_index: Option<u32>,
    /// Who uses it, by process id.
    pub holders: Vec<Holder>,
}

/// A process that keeps a GPU or an instance in use.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Holder {
    /// Process id as the driver tells it.
    pub pid: u32,
    /// Program name; empty where it cannot be read.
    pub name: String,
}

impl Gpu {
    /// What is on the GPU, as a layout.
    pub fn layout(&self) -> Layout {
        let mut instances: Vec<InstanceSpec> =
            self.instances.iter().map(GpuInstance::spec).collect();
        instances.sort();
        Layout { instances }
    }

    /// Whether anything uses the GPU or one of its instances.
    pub fn is_busy(&self) -> bool {
        !self.holders.is_empty() || self.instances.iter().any(GpuInstance::is_busy)
    }
}

impl GpuInstance {
    /// The same without ids.
    pub fn spec(&self) -> InstanceSpec {
        let compute = self.compute_in_order().into_iter();
        InstanceSpec {
            placement: self.placement,
            profile: self.profile.clone(),
            driver_id: self.driver_id,
            compute: compute.map(ComputeInstance::spec).collect(),
        }
    }

    /// The compute instances in the order of [`spec`](Self::spec): by place, then profile, then id.
    pub fn compute_in_order(&self) -> Vec<&ComputeInstance> {
        let mut compute: Vec<&ComputeInstance> = self.compute.iter().collect();
        compute.sort_by_key(|compute| (compute.placement, compute.driver_id, compute.id));
        compute
    }

    /// Whether anything uses one of its compute instances.
    pub fn is_busy(&self) -> bool {
        self.compute
            .iter()
            .any(|compute| !compute.holders.is_empty())
    }
}

impl ComputeInstance {
    /// The same without ids.
    pub fn spec(&self) -> ComputeSpec {
        ComputeSpec {
            profile: self.profile.clone(),
            driver_id: self.driver_id,
            placement: self.placement,
        }
    }
}

/// `process 17 (python3)`; without a name `process 17`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match self.name.as_str() {
            "" => Ok(()),
            name => write!(f, " ({name})"),
        }
    }
}
