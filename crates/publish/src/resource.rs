// SPDX-License-Identifier: Apache-2.0
//! Resources and their devices, as the kubelet is to see them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use config::deviceplugin::{MigStrategy, Sharing};
use plan::Warning;
use units::Code;

use crate::found::{Found, find};
use crate::hardware::Hardware;
use crate::name::{GPU, PREFIX};
use crate::node::{Node, is_cut};
use crate::share::{Share, shares};

/// An extended resource of the node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Full name, `nvidia.com/gpu.shared`.
    pub name: String,
    /// Devices by rising index, then replica.
    pub devices: Vec<Device>,
    /// Whether a container that asks for more than one replica is refused
    /// (`failRequestsGreaterThanOne`).
    pub one_replica_a_container: bool,
}

/// What the kubelet counts and hands out: a GPU, a slice, or one replica of either.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The UUID, with `::` and the replica behind it if it is shared.
    pub id: String,
    /// Number of the replica; `None`: not shared.
    pub replica: Option<u32>,
    /// What it stands for.
    pub hardware: Arc<Hardware>,
}

impl Device {
    pub(crate) fn new(hardware: &Arc<Hardware>, replica: Option<u32>) -> Self {
        let uuid = hardware.uuid();
        Self {
            id: replica.map_or_else(|| uuid.to_owned(), |number| format!("{uuid}::{number}")),
            replica,
            hardware: Arc::clone(hardware),
        }
    }

    /// Whether pods may get it.
    pub fn is_healthy(&self) -> bool {
        self.hardware.fault.is_none()
    }
}

impl Resource {
    /// The name without its prefix: what a plugin's socket is called after.
    pub fn short_name(&self) -> &str {
        self.name.strip_prefix(PREFIX).unwrap_or(&self.name)
    }

    /// The device of that id.
    pub fn device(&self, id: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == id)
    }
}

/// What the node advertises, by name, and what a person should know about it.
///
/// State of the hardware never takes everything away: what is ambiguous counts 0 and is told, the
/// rest is there.
pub fn resources(node: &Node) -> (Vec<Resource>, Vec<Warning>) {
    let (found, mut findings) = find(node);
    let (shares, told) = shares(&node.config.sharing, &found);
    findings.extend(told);
    let mut by_name: BTreeMap<String, Vec<Device>> = BTreeMap::new();
    for (it, share) in found.iter().zip(shares) {
        let devices = devices(it, share.as_ref());
        let name = share.map_or_else(|| it.name.clone(), |share| share.name);
        by_name.entry(name).or_default().extend(devices);
    }
    if by_name.is_empty() {
        by_name.extend(nothing_of(node));
    }
    findings.extend(several_models(node, &by_name));
    let one_replica_a_container = match &node.config.sharing {
        Sharing::TimeSlicing(replication) => replication.fail_requests_greater_than_one,
        Sharing::Exclusive | Sharing::Mps(_) => false,
    };
    let resource = |(name, mut devices): (String, Vec<Device>)| {
        devices.sort_by_key(|device| (device.hardware.order(), device.replica));
        Resource {
            name,
            devices,
            one_replica_a_container,
        }
    };
    (by_name.into_iter().map(resource).collect(), findings)
}

/// Names under which a pod may get hardware of one model or another.
fn several_models(node: &Node, by_name: &BTreeMap<String, Vec<Device>>) -> Vec<Warning> {
    let mut findings = Vec::new();
    for (name, devices) in by_name {
        let gpus: BTreeSet<u32> = devices.iter().map(|it| it.hardware.gpu_index).collect();
        let models: BTreeSet<&str> = node
            .gpus()
            .into_iter()
            .filter(|gpu| gpus.contains(&gpu.index))
            .map(|gpu| gpu.name.as_str())
            .collect();
        if models.len() > 1 {
            let models: Vec<&str> = models.into_iter().collect();
            findings.push(Warning {
                code: Code::SeveralModels,
                message: format!(
                    "{name} has devices of several models: {}",
                    models.join(", ")
                ),
            });
        }
    }
    findings
}

fn devices(found: &Found, share: Option<&Share>) -> Vec<Device> {
    if found.ambiguous {
        return Vec::new();
    }
    match share {
        None => vec![Device::new(&found.hardware, None)],
        Some(share) => (0..share.replicas)
            .map(|replica| Device::new(&found.hardware, Some(replica)))
            .collect(),
    }
}

/// Under `single` the name is known even if no slice is there yet: it counts 0.
fn nothing_of(node: &Node) -> Option<(String, Vec<Device>)> {
    let single = node.config.flags.mig_strategy == MigStrategy::Single;
    let cut = single && node.gpus().into_iter().any(is_cut);
    cut.then(|| {
        let shared = match &node.config.sharing {
            Sharing::TimeSlicing(it) => it
                .resources
                .iter()
                .find(|entry| entry.name == GPU)
                .map(|entry| it.advertised(entry)),
            Sharing::Exclusive | Sharing::Mps(_) => None,
        };
        (shared.unwrap_or_else(|| GPU.to_owned()), Vec::new())
    })
}
