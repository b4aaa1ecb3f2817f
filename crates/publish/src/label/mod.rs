// SPDX-License-Identifier: Apache-2.0
//! Labels of the node, as GPU Feature Discovery writes them.

mod model;
mod slice;
mod vgpu;

use std::collections::{BTreeMap, BTreeSet};

use config::deviceplugin::MigStrategy;
use geometry::inventory::{Gpu, Inventory};
use plan::Warning;
use units::Code;

use crate::found::{Found, find};
use crate::name::{self, GPU, PREFIX, is_label_value, label_value};
use crate::node::Node;
use crate::share::{Share, shares};

/// Start of the keys that count the GPUs of each model, where a node has several.
pub const MODEL_PREFIX: &str = "slicewright.dev/gpu-model.";

/// Labels under way.
struct Labels {
    map: BTreeMap<String, String>,
    warnings: Vec<Warning>,
}

impl Labels {
    /// Sets a label of NVIDIA's names. A value that is not legal is told and left out.
    fn set(&mut self, key: impl AsRef<str>, value: impl ToString) {
        let (key, value) = (format!("{PREFIX}{}", key.as_ref()), value.to_string());
        if is_label_value(&value) {
            self.map.insert(key, value);
        } else {
            self.unreadable(format!("{key}: {value:?} cannot be a label value"));
        }
    }

    fn unreadable(&mut self, message: String) {
        self.warnings.push(Warning {
            code: Code::FactUnreadable,
            message,
        });
    }
}

/// What all labels are made of.
struct Facts<'a> {
    node: &'a Node,
    gpus: Vec<&'a Gpu>,
    found: Vec<Found>,
    shares: Vec<Option<Share>>,
}

/// The labels that the node should have, and what a person should know about them.
///
/// Every value is legal, and the same node always has the same labels. Those for which a fact is
/// missing are left out. The deprecated keys of GPU Feature Discovery are among them.
pub fn labels(node: &Node) -> (BTreeMap<String, String>, Vec<Warning>) {
    let mut labels = Labels {
        map: BTreeMap::new(),
        warnings: Vec::new(),
    };
    vgpu::label(&mut labels, node);
    let (found, _) = find(node);
    let facts = Facts {
        node,
        gpus: node.gpus(),
        shares: shares(&node.config.sharing, &found).0,
        found,
    };
    if let Some(inventory) = node.inventory.as_ref().filter(|_| !facts.gpus.is_empty()) {
        if let Some(timestamp) = node.timestamp {
            labels.set("gfd.timestamp", timestamp);
        }
        versions(&mut labels, inventory);
        machine(&mut labels, &facts);
        resources(&mut labels, &facts);
    }
    (labels.map, labels.warnings)
}

/// Whether a label key is one that [`labels`] may give: those on the node that it does not give any
/// more can be taken away.
pub fn is_ours(key: &str) -> bool {
    let Some(key) = key.strip_prefix(PREFIX) else {
        return key.starts_with(MODEL_PREFIX);
    };
    let of_resource = |rest: &str| slice::PARTS.contains(&rest) || model::PARTS.contains(&rest);
    match key.split_once('.') {
        Some(("gpu", rest)) => of_resource(rest) || ["clique", "machine", "mode"].contains(&rest),
        Some(("cuda", rest)) => ["driver", "runtime"].iter().any(|it| rest.starts_with(it)),
        Some(("vgpu", rest)) => rest == "present" || rest.starts_with("host-driver-"),
        Some(("mig", rest)) => rest == "capable" || rest == "strategy",
        Some((first, _)) if first.starts_with("mig-") => slice::PARTS
            .iter()
            .any(|part| key.ends_with(&format!(".{part}"))),
        _ => key == "mps.capable" || key == "gfd.timestamp",
    }
}

fn versions(labels: &mut Labels, inventory: &Inventory) {
    let driver = &inventory.driver_version;
    labels.set("cuda.driver-version.full", driver);
    let parts: Vec<&str> = driver.split('.').collect();
    let (2 | 3, false) = (parts.len(), parts.contains(&"")) else {
        labels.unreadable(format!(
            "the driver version {driver:?} is not of the form X.Y or X.Y.Z; labels with its parts \
             are left out"
        ));
        return runtime(labels, inventory.cuda_version);
    };
    let part = |place: usize| parts.get(place).copied().unwrap_or_default();
    for (place, key, old_key) in [
        (0, "major", "major"),
        (1, "minor", "minor"),
        (2, "revision", "rev"),
    ] {
        labels.set(format!("cuda.driver-version.{key}"), part(place));
        labels.set(format!("cuda.driver.{old_key}"), part(place));
    }
    runtime(labels, inventory.cuda_version);
}

fn runtime(labels: &mut Labels, (major, minor): (u16, u16)) {
    labels.set("cuda.runtime-version.full", format!("{major}.{minor}"));
    for key in ["cuda.runtime-version", "cuda.runtime"] {
        labels.set(format!("{key}.major"), major);
        labels.set(format!("{key}.minor"), minor);
    }
}

/// Labels that are of the machine as a whole.
fn machine(labels: &mut Labels, facts: &Facts<'_>) {
    let node = facts.node;
    let machine = node.machine_type.as_ref();
    let machine = machine.map(|text| label_value(text, ""));
    labels.set(
        "gpu.machine",
        machine.unwrap_or_else(|| "unknown".to_owned()),
    );
    let capable = facts.gpus.iter().any(|gpu| gpu.mode.is_some());
    labels.set("mig.capable", capable);
    labels.set("mps.capable", false);
    let strategy = node.config.flags.mig_strategy;
    if strategy != MigStrategy::None {
        labels.set("mig.strategy", strategy.as_str());
    }
    labels.set("gpu.mode", mode(facts));
    if let Some(clique) = clique(facts) {
        labels.set("gpu.clique", clique);
    }
}

/// Compute or graphics, as the PCI classes of all GPUs say (3D controller, VGA controller).
fn mode(facts: &Facts<'_>) -> &'static str {
    let class = |gpu: &&Gpu| {
        let function = facts.node.function_of(gpu)?;
        function.is_nvidia().then_some(function.class)
    };
    let classes: BTreeSet<Option<u32>> = facts.gpus.iter().map(class).collect();
    match classes.into_iter().collect::<Vec<_>>().as_slice() {
        [Some(0x03_02_00)] => "compute",
        [Some(0x03_00_00)] => "graphics",
        _ => "unknown",
    }
}

/// The fabric clique that all GPUs on a fabric agree on.
fn clique(facts: &Facts<'_>) -> Option<String> {
    let is_none = |uuid: &str| uuid.chars().all(|c| c == '0' || c == '-');
    let fabric = |gpu: &&Gpu| facts.node.fabrics.get(&gpu.uuid);
    let attached = facts.gpus.iter().filter_map(fabric);
    let cliques: BTreeSet<String> = attached
        .filter(|fabric| !is_none(&fabric.cluster_uuid))
        .map(|fabric| format!("{}.{}", fabric.cluster_uuid, fabric.clique_id))
        .collect();
    let agreed = (cliques.len() == 1).then_some(cliques);
    agreed.and_then(|cliques| cliques.into_iter().next())
}

/// Labels of the resources: those of whole GPUs or, under `single`, of slices with the same name;
/// under `mixed` those of each profile besides.
fn resources(labels: &mut Labels, facts: &Facts<'_>) {
    let model = model::main(labels, facts);
    model::label(labels, &model);
    match facts.node.config.flags.mig_strategy {
        MigStrategy::None => model::count(labels, facts, &model),
        MigStrategy::Single => match slice::single(facts) {
            slice::Single::NoneCut => model::count(labels, facts, &model),
            slice::Single::Invalid => slice::label_invalid(labels, &model),
            slice::Single::Valid => slice::label(labels, facts, "gpu", &facts.slices()),
        },
        MigStrategy::Mixed => {
            model::count(labels, facts, &model);
            for (profile, places) in facts.by_profile() {
                slice::label(labels, facts, &name::slice(&profile), &places);
            }
        }
    }
}

/// How a group of devices is shared.
struct GroupShare {
    replicas: u32,
    /// Ending of the product name.
    ending: &'static str,
    strategy: &'static str,
}

impl Facts<'_> {
    /// Places of the found that are slices.
    fn slices(&self) -> Vec<usize> {
        let is_slice = |place: &usize| self.found[*place].hardware.slice.is_some();
        (0..self.found.len()).filter(is_slice).collect()
    }

    fn by_profile(&self) -> BTreeMap<units::ProfileName, Vec<usize>> {
        let mut profiles: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for place in self.slices() {
            if let Some(slice) = &self.found[place].hardware.slice {
                profiles
                    .entry(slice.profile.clone())
                    .or_default()
                    .push(place);
            }
        }
        profiles
    }

    /// How the devices at these places are shared; the most replicas count where they differ.
    fn share(&self, places: &[usize]) -> GroupShare {
        let shared = places.iter().filter_map(|place| {
            let share = self.shares[*place].as_ref()?;
            Some((share.replicas, share.name == self.found[*place].name))
        });
        match shared.max() {
            Some((replicas, same_name)) => GroupShare {
                replicas,
                ending: if same_name { "-SHARED" } else { "" },
                strategy: "time-slicing",
            },
            None => GroupShare {
                replicas: 1,
                ending: "",
                strategy: "none",
            },
        }
    }
}

/// Sets a product label: a model, and what makes it special.
fn product(labels: &mut Labels, key: &str, model: &str, ending: &str) {
    let value = label_value(model, ending);
    if value.len() < name::sanitise(model).len() + ending.len() {
        labels.warnings.push(Warning {
            code: Code::LabelShortened,
            message: format!("{PREFIX}{key}.product is shortened to {value}"),
        });
    }
    labels.set(format!("{key}.product"), value);
}

/// The name without prefix that whole GPUs have in keys.
fn gpu_key() -> &'static str {
    GPU.trim_start_matches(PREFIX)
}

#[cfg(test)]
mod tests;
