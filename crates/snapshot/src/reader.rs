// SPDX-License-Identifier: Apache-2.0
//! The reading itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use gpu::{Driver, Error, ReadGpus, SliceAttributes, Telemetry};
use plan::Warning;
use publish::{IMEX_CHANNEL_0, Links, Node, PciFunction, SliceFacts};
use units::{Code, MigUuid};

use crate::caps::{self, CapMinors};
use crate::pci;

/// Device nodes that every container with a GPU gets, in the order of the answer.
const CONTROL: [&str; 4] = [
    "/dev/nvidiactl",
    "/dev/nvidia-uvm",
    "/dev/nvidia-uvm-tools",
    "/dev/nvidia-modeset",
];

/// Where things are on this machine.
#[derive(Clone, Debug)]
pub struct Roots {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc/driver`.
    pub proc_driver: PathBuf,
    /// Folder below which `/dev` is looked at.
    pub dev: PathBuf,
}

/// A node at one moment.
#[derive(Clone, Debug)]
pub struct Reading {
    /// What is published of it; faults, settings and time are for the caller to add.
    pub node: Node,
    /// How its GPUs are linked.
    pub links: Links,
    /// Control device nodes that there are.
    pub control_nodes: Vec<String>,
    /// What a person should know of the reading itself.
    pub findings: Vec<Warning>,
}

/// A slice, and the driver ids of its profiles: a UUID is used again for another slice in its place.
type SliceKey = (MigUuid, u32, u32);

/// Reads a node, and keeps what does not change while its driver is open.
#[derive(Debug)]
pub struct Reader {
    roots: Roots,
    pci: Option<Vec<PciFunction>>,
    slices: BTreeMap<SliceKey, SliceFacts>,
}

impl Reader {
    /// A reader of the machine at these roots.
    pub fn new(roots: Roots) -> Self {
        Self {
            roots,
            pci: None,
            slices: BTreeMap::new(),
        }
    }

    /// Everything about the node now.
    ///
    /// # Errors
    /// If the driver cannot be read.
    pub fn read(&mut self, driver: &Driver, machine_type_file: &Path) -> Result<Reading, Error> {
        let mut inventory = driver.inventory()?;
        for gpu in &mut inventory.gpus {
            let address = pci::linux_address(&gpu.pci_bus_id);
            gpu.numa_node = gpu
                .numa_node
                .or_else(|| pci::numa_node(&self.roots.sys, &address));
        }
        let mut findings = Vec::new();
        self.read_slices(driver, &inventory, &mut findings);
        let dev = |path: &str| self.roots.dev.join(path.trim_start_matches('/'));
        let exists = |path: &str| dev(path).exists();
        let control = CONTROL.iter().filter(|path| exists(path));
        let control_nodes = control.map(|path| (*path).to_owned()).collect();
        let has_imex_channel_0 = exists(IMEX_CHANNEL_0);
        let pci = self.pci(&inventory);
        Ok(Reading {
            node: Node {
                slices: self
                    .slices
                    .iter()
                    .map(|(key, facts)| (key.0.clone(), *facts))
                    .collect(),
                pci,
                machine_type: fs::read_to_string(machine_type_file).ok(),
                has_imex_channel_0,
                inventory: Some(inventory),
                ..Node::default()
            },
            links: Links::default(),
            control_nodes,
            findings,
        })
    }

    fn pci(&mut self, inventory: &Inventory) -> Vec<PciFunction> {
        let sys = &self.roots.sys;
        let gpus = inventory.gpus.iter();
        let addresses = gpus.map(|gpu| pci::linux_address(&gpu.pci_bus_id));
        let addresses: Vec<String> = addresses.collect();
        let read = || pci::functions(sys, &addresses);
        self.pci.get_or_insert_with(read).clone()
    }

    /// Facts of the slices that there are. A UUID stands for one slice for as long as it is, so
    /// what is known of it is not asked again.
    fn read_slices(&mut self, driver: &Driver, inventory: &Inventory, findings: &mut Vec<Warning>) {
        let minors = self.roots.proc_driver.join("nvidia-caps/mig-minors");
        let minors =
            fs::read_to_string(minors).map_or_else(|_| CapMinors::new(), |text| caps::parse(&text));
        let mut slices = BTreeMap::new();
        for gpu in &inventory.gpus {
            let minor = |gi, ci| minors.get(&(gpu.minor?, gi, ci)).copied();
            for (index, (instance, compute, uuid)) in (0..).zip(in_order(gpu)) {
                let key = (uuid.clone(), instance.driver_id, compute.driver_id);
                let cap_minors = minor(instance.id, None).zip(minor(instance.id, Some(compute.id)));
                let facts = match self.slices.get(&key) {
                    Some(known) => Ok(*known),
                    None => driver.attributes(uuid).map(facts),
                };
                match facts {
                    Ok(facts) => {
                        let facts = SliceFacts {
                            index,
                            cap_minors,
                            ..facts
                        };
                        slices.insert(key, facts);
                    }
                    Err(error) => findings.push(Warning {
                        code: Code::FactUnreadable,
                        message: error.to_string(),
                    }),
                }
            }
        }
        self.slices = slices;
    }
}

/// The slices of a GPU in the order in which the driver counts them: by GPU instance, then by
/// compute instance.
fn in_order(gpu: &Gpu) -> Vec<(&GpuInstance, &ComputeInstance, &MigUuid)> {
    let mut slices = Vec::new();
    for instance in &gpu.instances {
        for compute in &instance.compute {
            slices.extend(compute.uuid.as_ref().map(|uuid| (instance, compute, uuid)));
        }
    }
    slices.sort_by_key(|(instance, compute, _)| (instance.id, compute.id));
    slices
}

fn facts(attributes: SliceAttributes) -> SliceFacts {
    SliceFacts {
        index: 0,
        multiprocessors: attributes.multiprocessors,
        engines: attributes.engines,
        gpu_slices: attributes.gpu_slices,
        compute_slices: attributes.compute_slices,
        memory_mib: attributes.memory_mib,
        cap_minors: None,
    }
}
