// SPDX-License-Identifier: Apache-2.0
//! Labels that a GPU model gives.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use config::deviceplugin::MigStrategy;
use geometry::inventory::Gpu;
use plan::Warning;
use units::Code;

use super::{Facts, Labels, MODEL_PREFIX, gpu_key, product};
use crate::name::{LONGEST_VALUE, label_value};
use crate::node::is_cut;

/// What follows `gpu.` in keys that [`label`] and [`count`] set.
pub(super) const PARTS: &[&str] = &[
    "compute.major",
    "compute.minor",
    "count",
    "family",
    "memory",
    "product",
    "replicas",
    "sharing-strategy",
];

/// GPUs of one model.
pub(super) struct Model<'a> {
    /// All of them, by rising index; at least one.
    gpus: Vec<&'a Gpu>,
    /// The one that speaks for all.
    first: &'a Gpu,
}

impl<'a> Model<'a> {
    /// Product name.
    pub fn name(&self) -> &'a str {
        &self.first.name
    }
}

/// The model that labels name. Under `single` with MIG on it is that of the first GPU with MIG;
/// else the one with the most whole GPUs, then the most GPUs, then the lowest index.
pub(super) fn main<'a>(labels: &mut Labels, facts: &Facts<'a>) -> Model<'a> {
    let mut models: BTreeMap<&str, Vec<&Gpu>> = BTreeMap::new();
    for gpu in &facts.gpus {
        models.entry(&gpu.name).or_default().push(gpu);
    }
    let single = facts.node.config.flags.mig_strategy == MigStrategy::Single;
    let cut = facts.gpus.iter().find(|gpu| single && is_cut(gpu));
    let whole = |gpus: &[&Gpu]| gpus.iter().filter(|gpu| !is_cut(gpu)).count();
    let rank = |gpus: &&Vec<&Gpu>| {
        let speaks = cut.is_some_and(|cut| gpus.iter().any(|gpu| gpu.index == cut.index));
        (
            Reverse(speaks),
            Reverse((whole(gpus), gpus.len())),
            gpus.iter().map(|gpu| gpu.index).min(),
        )
    };
    let gpus = models
        .values()
        .min_by_key(rank)
        .cloned()
        .unwrap_or_default();
    let first = gpus.first().copied().unwrap_or(facts.gpus[0]);
    let with_whole = models.values().filter(|gpus| whole(gpus) > 0).count();
    if models.len() > 1 && (cut.is_some() || with_whole != 1) {
        several(labels, &models, first);
    }
    Model { gpus, first }
}

/// Labels for each model, where several have an equal claim to the usual ones.
fn several(labels: &mut Labels, models: &BTreeMap<&str, Vec<&Gpu>>, main: &Gpu) {
    let names: Vec<&str> = models.keys().copied().collect();
    labels.warnings.push(Warning {
        code: Code::SeveralModels,
        message: format!(
            "this node has GPUs of several models ({}); nvidia.com/gpu.product names {}",
            names.join(", "),
            main.name
        ),
    });
    let prefix = MODEL_PREFIX
        .split_once('/')
        .map_or("", |(_, prefix)| prefix);
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (name, gpus) in models {
        let model = label_value(name, "");
        let room = LONGEST_VALUE.saturating_sub(prefix.len()).min(model.len());
        let model = model[..room].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        if !model.is_empty() {
            *counts.entry(format!("{MODEL_PREFIX}{model}")).or_default() += gpus.len();
        }
    }
    let labelled = |(key, count): (String, usize)| (key, count.to_string());
    labels.map.extend(counts.into_iter().map(labelled));
}

/// Family and compute capability.
pub(super) fn label(labels: &mut Labels, model: &Model<'_>) {
    let (major, minor) = model.first.compute_capability;
    if major > 0 {
        labels.set("gpu.family", family(major, minor));
        labels.set("gpu.compute.major", major);
        labels.set("gpu.compute.minor", minor);
    }
}

/// Product, memory, count and sharing of whole GPUs. All GPUs of the model are counted; where none
/// is whole, they have no replicas.
pub(super) fn count(labels: &mut Labels, facts: &Facts<'_>, model: &Model<'_>) {
    let key = gpu_key();
    let whole = |gpu: &&&Gpu| !is_cut(gpu);
    let indices: Vec<u32> = model
        .gpus
        .iter()
        .filter(whole)
        .map(|gpu| gpu.index)
        .collect();
    let is_whole = |place: &usize| {
        let hardware = &facts.found[*place].hardware;
        hardware.slice.is_none() && indices.contains(&hardware.gpu_index)
    };
    let places: Vec<usize> = (0..facts.found.len()).filter(is_whole).collect();
    let share = facts.share(&places);
    let replicas = if places.is_empty() { 0 } else { share.replicas };
    product(labels, key, model.name(), share.ending);
    labels.set("gpu.count", model.gpus.len());
    labels.set("gpu.replicas", replicas);
    labels.set("gpu.sharing-strategy", share.strategy);
    if model.first.memory_mib > 0 {
        labels.set("gpu.memory", model.first.memory_mib);
    }
}

/// Name of the architecture (source: GPU Feature Discovery).
fn family(major: u8, minor: u8) -> &'static str {
    match (major, minor) {
        (1, _) => "tesla",
        (2, _) => "fermi",
        (3, _) => "kepler",
        (5, _) => "maxwell",
        (6, _) => "pascal",
        (7, 0..5) => "volta",
        (7, _) => "turing",
        (8, 0..9) => "ampere",
        (8, _) => "ada-lovelace",
        (9, _) => "hopper",
        (10 | 12, _) => "blackwell",
        (13, _) => "rubin",
        _ => "undefined",
    }
}
