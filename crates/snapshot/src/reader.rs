// SPDX-License-Identifier: Apache-2.0
//! The reading itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use geometry::inventory::Inventory;
use gpu::{Driver, Error, ReadGpus, Topology};
use plan::Warning;
use publish::{Fabric, IMEX_CHANNEL_0, Links, Node, PciFunction};
use units::{Code, GpuUuid};

use crate::caps::{self, CapMinors};
use crate::links;
use crate::pci;
use crate::slices::Slices;

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

/// Reads a node, and keeps what does not change while its driver is open.
#[derive(Debug)]
pub struct Reader {
    roots: Roots,
    pci: Option<Vec<PciFunction>>,
    links: Option<(Vec<GpuUuid>, Links)>,
    slices: Slices,
}

impl Reader {
    /// A reader of the machine at these roots.
    pub fn new(roots: Roots) -> Self {
        Self {
            roots,
            pci: None,
            links: None,
            slices: Slices::default(),
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
        let mut findings = Findings::default();
        let minors = self.cap_minors();
        let slices = self.slices.read(driver, &inventory, &minors, &mut findings);
        let fabrics = fabrics(driver, &inventory, &mut findings);
        let links = self.links(driver, &inventory, &mut findings);
        let pci = self.pci(&inventory);
        let exists = |path: &str| {
            let below = path.trim_start_matches('/');
            self.roots.dev.join(below).exists()
        };
        let control = CONTROL.iter().filter(|path| exists(path));
        Ok(Reading {
            node: Node {
                fabrics,
                slices,
                pci,
                machine_type: fs::read_to_string(machine_type_file).ok(),
                has_imex_channel_0: exists(IMEX_CHANNEL_0),
                inventory: Some(inventory),
                ..Node::default()
            },
            links,
            control_nodes: control.map(|path| (*path).to_owned()).collect(),
            findings: findings.0,
        })
    }

    fn cap_minors(&self) -> CapMinors {
        let path = self.roots.proc_driver.join("nvidia-caps/mig-minors");
        fs::read_to_string(path).map_or_else(|_| CapMinors::new(), |text| caps::parse(&text))
    }

    /// How the GPUs are linked, asked again only when there are others: it takes some hundred
    /// calls with sixteen GPUs.
    fn links(&mut self, driver: &Driver, inventory: &Inventory, findings: &mut Findings) -> Links {
        let gpus: Vec<GpuUuid> = inventory.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
        if let Some((known, links)) = &self.links
            && gpus.iter().all(|gpu| known.contains(gpu))
        {
            return links.clone();
        }
        let Some(links) = findings.known(links::read(driver, &gpus)) else {
            return Links::default();
        };
        self.links.insert((gpus, links)).1.clone()
    }

    fn pci(&mut self, inventory: &Inventory) -> Vec<PciFunction> {
        let sys = &self.roots.sys;
        let gpus = inventory.gpus.iter();
        let addresses = gpus.map(|gpu| pci::linux_address(&gpu.pci_bus_id));
        let addresses: Vec<String> = addresses.collect();
        let read = || pci::functions(sys, &addresses);
        self.pci.get_or_insert_with(read).clone()
    }
}

fn fabrics(
    driver: &Driver,
    inventory: &Inventory,
    findings: &mut Findings,
) -> BTreeMap<GpuUuid, Fabric> {
    let fabric = |uuid: &GpuUuid, findings: &mut Findings| {
        let clique = findings.known(driver.fabric(uuid))??;
        let fabric = Fabric {
            cluster_uuid: clique.cluster_uuid,
            clique_id: clique.clique_id,
        };
        Some((uuid.clone(), fabric))
    };
    let gpus = inventory.gpus.iter();
    gpus.filter_map(|gpu| fabric(&gpu.uuid, findings)).collect()
}

/// What a person should know of a reading.
#[derive(Default)]
pub(crate) struct Findings(Vec<Warning>);

impl Findings {
    /// A fact, if it could be read; why not is a finding.
    pub(crate) fn known<T>(&mut self, fact: Result<T, Error>) -> Option<T> {
        let told = |error: Error| {
            self.0.push(Warning {
                code: Code::FactUnreadable,
                message: error.to_string(),
            });
        };
        fact.map_err(told).ok()
    }
}
