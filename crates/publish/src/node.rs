// SPDX-License-Identifier: Apache-2.0
//! Everything that decides what a node publishes, as plain data.

use std::collections::BTreeMap;

use config::deviceplugin::Config;
use geometry::Engines;
use geometry::inventory::{Gpu, Inventory};
use units::{GpuUuid, MigUuid};

use crate::health::Fault;

/// A node as it was read at one moment, and the settings in force.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// What the driver says; `None` where its library is missing or is not to be asked.
    pub inventory: Option<Inventory>,
    /// Fabric that a GPU is attached to and has completed registration with.
    pub fabrics: BTreeMap<GpuUuid, Fabric>,
    /// What the inventory does not say about slices.
    pub slices: BTreeMap<MigUuid, SliceFacts>,
    /// PCI functions of the machine, by rising address: NVIDIA's, and those at the addresses of its
    /// GPUs.
    pub pci: Vec<PciFunction>,
    /// Text of the file with the machine's product name; `None` where it cannot be read.
    pub machine_type: Option<String>,
    /// Whether the device node of IMEX channel 0 exists.
    pub has_imex_channel_0: bool,
    /// What is broken now.
    pub faults: Vec<Fault>,
    /// Settings in force, flags and environment included.
    pub config: Config,
    /// When the settings came into force, in seconds since 1970; `None`: no timestamp label.
    pub timestamp: Option<u64>,
}

/// NVLink fabric of a GPU (`nvmlDeviceGetGpuFabricInfo`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// UUID of the cluster; all zero: none.
    pub cluster_uuid: String,
    /// Clique within the cluster.
    pub clique_id: u32,
}

/// What a driver tells of a MIG device (`nvmlDeviceGetAttributes_v2`), and how Linux shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceFacts {
    /// Index among the MIG devices of its GPU.
    pub index: u32,
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Engines, shared with the other slices of its GPU instance.
    pub engines: Engines,
    /// Compute slices of the GPU instance.
    pub gpu_slices: u32,
    /// Compute slices of the slice.
    pub compute_slices: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// Minor numbers of the capability device nodes of the GPU instance and of the compute
    /// instance (`/proc/driver/nvidia-caps/mig-minors`); `None` where unknown.
    pub cap_minors: Option<(u32, u32)>,
}

/// A PCI function as Linux shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PciFunction {
    /// Address with a domain of any length, `0000:19:00.0`.
    pub address: String,
    /// Vendor id, `0x10de` for NVIDIA.
    pub vendor: u16,
    /// Class code of 24 bits, `0x030200`.
    pub class: u32,
    /// How many bytes of its configuration space can be read.
    pub config_bytes: usize,
    /// Its vendor-specific capability (id 9), header included.
    pub vendor_capability: Option<Vec<u8>>,
}

/// NVIDIA's PCI vendor id.
const NVIDIA: u16 = 0x10de;

impl PciFunction {
    /// Whether it is NVIDIA's.
    pub(crate) fn is_nvidia(&self) -> bool {
        self.vendor == NVIDIA
    }
}

impl Node {
    /// The GPUs that count, by rising index: display adapters of DGX stations are left out
    /// (source: go-nvlib).
    pub(crate) fn gpus(&self) -> Vec<&Gpu> {
        let shown = |gpu: &&Gpu| gpu.name.trim_start_matches("NVIDIA ") != "DGX Display";
        let all = self.inventory.iter().flat_map(|inventory| &inventory.gpus);
        all.filter(shown).collect()
    }

    /// The PCI function that a GPU is.
    pub(crate) fn function_of(&self, gpu: &Gpu) -> Option<&PciFunction> {
        let place = address(&gpu.pci_bus_id)?;
        let mut functions = self.pci.iter();
        functions.find(|function| address(&function.address).as_ref() == Some(&place))
    }
}

/// Whether MIG is in force on a GPU.
pub(crate) fn is_cut(gpu: &Gpu) -> bool {
    gpu.mode.is_some_and(units::Mode::is_on)
}

/// Domain and the rest of a PCI address. NVML writes eight digits of domain, Linux four.
fn address(text: &str) -> Option<(u32, String)> {
    let (domain, rest) = text.split_once(':')?;
    let domain = u32::from_str_radix(domain, 16).ok()?;
    Some((domain, rest.to_ascii_lowercase()))
}
