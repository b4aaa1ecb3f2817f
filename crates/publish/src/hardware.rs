// SPDX-License-Identifier: Apache-2.0
//! What a device stands for: a whole GPU or one slice.

use geometry::inventory::Gpu;
use units::{GpuUuid, MigUuid, ProfileName};

use crate::node::Node;

/// A whole GPU, or one slice of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hardware {
    /// The GPU, or the one that the slice is on.
    pub gpu: GpuUuid,
    /// Its index.
    pub gpu_index: u32,
    /// The slice; `None`: the whole GPU.
    pub slice: Option<Slice>,
    /// NUMA node; `None` where unknown.
    pub numa_node: Option<u32>,
    /// Device nodes below the root of device nodes, in the order in which containers get them;
    /// empty where they are not all known.
    pub nodes: Vec<String>,
    /// Why it cannot be used; `None`: it is healthy.
    pub fault: Option<String>,
}

/// A slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// UUID.
    pub uuid: MigUuid,
    /// Index among the slices of its GPU, in the driver's order.
    pub index: u32,
    /// The driver's id of the GPU instance.
    pub gpu_instance: u32,
    /// The driver's id of the compute instance in it.
    pub compute_instance: u32,
    /// Profile.
    pub profile: ProfileName,
}

/// All GPUs of a node, each followed by its slices, whatever is published of them.
pub fn hardware(node: &Node) -> Vec<Hardware> {
    let gpus = node.gpus().into_iter();
    let with_slices = gpus.flat_map(|gpu| {
        let slices = Hardware::slices(node, gpu);
        std::iter::once(Hardware::whole(node, gpu)).chain(slices)
    });
    with_slices.collect()
}

impl Hardware {
    /// UUID of the GPU or slice: the id of its device where it is not shared.
    pub fn uuid(&self) -> &str {
        match &self.slice {
            Some(slice) => slice.uuid.as_str(),
            None => self.gpu.as_str(),
        }
    }

    /// Index as containers get it under `deviceIDStrategy: index`: `0`, or `0:2` for a slice.
    pub fn index(&self) -> String {
        match &self.slice {
            Some(slice) => format!("{}:{}", self.gpu_index, slice.index),
            None => self.gpu_index.to_string(),
        }
    }

    /// Whether the two are the same, or one is a slice of the other.
    pub fn overlaps(&self, other: &Self) -> bool {
        let same = match (&self.slice, &other.slice) {
            (Some(ours), Some(theirs)) => ours.uuid == theirs.uuid,
            _ => true,
        };
        self.gpu == other.gpu && same
    }

    /// Where it stands in lists.
    pub(crate) fn order(&self) -> (u32, Option<u32>) {
        let slice = self.slice.as_ref();
        (self.gpu_index, slice.map(|slice| slice.index))
    }

    /// A whole GPU.
    pub(crate) fn whole(node: &Node, gpu: &Gpu) -> Self {
        Self::of(node, gpu, None, gpu_node(gpu).map(|path| vec![path]))
    }

    /// The slices of a GPU that the driver shows, in its order.
    pub(crate) fn slices(node: &Node, gpu: &Gpu) -> Vec<Self> {
        let mut slices = Vec::new();
        for instance in &gpu.instances {
            for compute in &instance.compute {
                slices.extend(compute.uuid.clone().map(|uuid| Slice {
                    uuid,
                    index: 0,
                    gpu_instance: instance.id,
                    compute_instance: compute.id,
                    profile: compute.profile.clone(),
                }));
            }
        }
        slices.sort_by_key(|slice| {
            let facts = node.slices.get(&slice.uuid);
            let index = facts.map(|facts| facts.index);
            (index, slice.gpu_instance, slice.compute_instance)
        });
        let number = |(place, mut slice): (u32, Slice)| {
            let facts = node.slices.get(&slice.uuid);
            slice.index = facts.map_or(place, |facts| facts.index);
            let caps = facts.and_then(|facts| facts.cap_minors);
            let nodes = gpu_node(gpu).zip(caps).map(|(path, (instance, compute))| {
                vec![path, cap_node(instance), cap_node(compute)]
            });
            Self::of(node, gpu, Some(slice), nodes)
        };
        (0..).zip(slices).map(number).collect()
    }

    fn of(node: &Node, gpu: &Gpu, slice: Option<Slice>, nodes: Option<Vec<String>>) -> Self {
        let mut hardware = Self {
            gpu: gpu.uuid.clone(),
            gpu_index: gpu.index,
            slice,
            numa_node: gpu.numa_node,
            nodes: nodes.unwrap_or_default(),
            fault: None,
        };
        let fault = node.faults.iter().find(|fault| fault.concerns(&hardware));
        hardware.fault = fault.map(|fault| fault.what.clone());
        hardware
    }
}

fn gpu_node(gpu: &Gpu) -> Option<String> {
    gpu.minor.map(|minor| format!("/dev/nvidia{minor}"))
}

fn cap_node(minor: u32) -> String {
    format!("/dev/nvidia-caps/nvidia-cap{minor}")
}
