// SPDX-License-Identifier: Apache-2.0
//! Nodes for tests.

use config::deviceplugin::{Config, parse};
use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use geometry::{Engines, catalogue};
use publish::{Node, Resource, SliceFacts, resources};
use units::{Code, GpuUuid, MigUuid, Mode, PciDevice, Placement};

/// Settings of a configuration text.
pub fn config(text: &str) -> Config {
    parse("test", text).into_config().unwrap()
}

/// A node with these GPUs: product name, and slices if MIG is on. Each slice has a GPU instance of
/// its own. Two GPUs share a NUMA node.
pub fn node(gpus: &[(&str, Option<&[&str]>)], settings: &str) -> Node {
    let mut node = Node {
        config: config(settings),
        ..Node::default()
    };
    let gpus = (0..)
        .zip(gpus)
        .map(|(index, (name, slices))| gpu(index, name, *slices, &mut node))
        .collect();
    node.inventory = Some(Inventory {
        lost: Vec::new(),
        driver_version: "580.95.05".to_owned(),
        cuda_version: (13, 0),
        gpus,
    });
    node
}

/// A node with so many whole GPUs.
pub fn whole(count: usize, settings: &str) -> Node {
    node(&vec![("NVIDIA A100-SXM4-80GB", None); count], settings)
}

fn gpu(index: u32, name: &str, slices: Option<&[&str]>, node: &mut Node) -> Gpu {
    let instance = |(place, profile): (u8, &&str)| {
        let uuid = MigUuid::from_bits((u128::from(index) << 64) + u128::from(place));
        node.slices.insert(uuid.clone(), facts(place));
        let profile: units::ProfileName = profile.parse().unwrap();
        GpuInstance {
            id: u32::from(place) + 1,
            driver_id: 0,
            profile: profile.gpu_instance(),
            placement: Placement::new(place, 1),
            compute: vec![ComputeInstance {
                id: 0,
                driver_id: 0,
                profile,
                placement: None,
                uuid: Some(uuid),
                mig_index: None,
                holders: Vec::new(),
            }],
        }
    };
    let instances = (0..)
        .zip(slices.unwrap_or_default())
        .map(instance)
        .collect();
    Gpu {
        index,
        minor: Some(index),
        uuid: gpu_uuid(index),
        name: name.to_owned(),
        pci_bus_id: format!("00000000:{index:02X}:00.0"),
        pci_device: PciDevice(0),
        pci_subsystem: PciDevice(0),
        numa_node: Some(index / 2),
        memory_mib: 81920,
        compute_capability: (8, 0),
        mode: Some(Mode::from_states(slices.is_some(), slices.is_some())),
        board: catalogue::by_key("A100-80GB").unwrap(),
        instances,
        holders: Vec::new(),
    }
}

fn facts(index: u8) -> SliceFacts {
    let cap = 3 + 2 * u32::from(index);
    SliceFacts {
        index: index.into(),
        multiprocessors: 14,
        engines: Engines::default(),
        gpu_slices: 1,
        compute_slices: 1,
        memory_mib: 9728,
        cap_minors: Some((cap, cap + 1)),
    }
}

/// UUID of the GPU of an index.
pub fn gpu_uuid(index: u32) -> GpuUuid {
    GpuUuid::from_bits(index.into())
}

/// Ids of a resource, with GPUs written `G0` and slices `M0:2`.
pub fn short_ids(resource: &Resource) -> Vec<String> {
    let id = |device: &publish::Device| {
        let kind = if device.hardware.slice.is_some() {
            "M"
        } else {
            "G"
        };
        let replica = device.replica.map(|number| format!("::{number}"));
        format!(
            "{kind}{}{}",
            device.hardware.index(),
            replica.unwrap_or_default()
        )
    };
    resource.devices.iter().map(id).collect()
}

/// Each resource as `gpu: G0 G1`, and the codes of the findings.
pub fn published(node: &Node) -> (Vec<String>, Vec<Code>) {
    let (resources, findings) = resources(node);
    let codes = findings.into_iter().map(|finding| finding.code).collect();
    (lines(&resources), codes)
}

pub fn lines(resources: &[Resource]) -> Vec<String> {
    let line = |it: &Resource| format!("{}: {}", it.short_name(), short_ids(it).join(" "));
    resources.iter().map(line).collect()
}
