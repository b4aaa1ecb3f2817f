// SPDX-License-Identifier: Apache-2.0
//! Labels of slices.

use super::model::Model;
use super::{Facts, Labels, product};
use crate::node::is_cut;

/// What follows the resource's name in the keys that [`label`] sets.
pub(super) const PARTS: &[&str] = &[
    "count",
    "engines.copy",
    "engines.decoder",
    "engines.encoder",
    "engines.jpeg",
    "engines.ofa",
    "memory",
    "multiprocessors",
    "product",
    "replicas",
    "sharing-strategy",
    "slices.ci",
    "slices.gi",
];

/// What the strategy `single` finds.
pub(super) enum Single {
    /// MIG is on nowhere: as the strategy `none`.
    NoneCut,
    /// All GPUs are cut into slices of one profile.
    Valid,
    /// Anything else.
    Invalid,
}

pub(super) fn single(facts: &Facts<'_>) -> Single {
    let cut: Vec<u32> = facts
        .gpus
        .iter()
        .filter(|gpu| is_cut(gpu))
        .map(|gpu| gpu.index)
        .collect();
    if cut.is_empty() {
        return Single::NoneCut;
    }
    let has_slice = |index: &u32| {
        let on = |place: &usize| facts.found[*place].hardware.gpu_index == *index;
        facts.slices().iter().any(on)
    };
    let all_cut = cut.len() == facts.gpus.len() && cut.iter().all(has_slice);
    if all_cut && facts.by_profile().len() == 1 {
        Single::Valid
    } else {
        Single::Invalid
    }
}

/// Labels of slices of one profile under a key: `gpu` or `mig-1g.10gb`. The first speaks for all.
pub(super) fn label(labels: &mut Labels, facts: &Facts<'_>, key: &str, places: &[usize]) {
    let Some(first) = places.first().map(|place| &facts.found[*place].hardware) else {
        return;
    };
    let Some(slice) = &first.slice else {
        return;
    };
    let share = facts.share(places);
    let parent = facts.gpus.iter().find(|gpu| gpu.uuid == first.gpu);
    let model = parent.map_or("", |gpu| &gpu.name);
    let profile = slice.profile.label_form();
    product(
        labels,
        key,
        model,
        &format!("-MIG-{profile}{}", share.ending),
    );
    let mut set = |part: &str, value: String| labels.set(format!("{key}.{part}"), value);
    set("count", places.len().to_string());
    set("replicas", share.replicas.to_string());
    set("sharing-strategy", share.strategy.to_owned());
    let Some(facts) = facts.node.slices.get(&slice.uuid) else {
        let message = format!("the driver does not tell the attributes of {}", slice.uuid);
        return labels.unreadable(message);
    };
    for (part, value) in [
        ("memory", facts.memory_mib),
        ("multiprocessors", facts.multiprocessors.into()),
        ("slices.gi", facts.gpu_slices.into()),
        ("slices.ci", facts.compute_slices.into()),
        ("engines.copy", facts.engines.copy.into()),
        ("engines.decoder", facts.engines.decoders.into()),
        ("engines.encoder", facts.engines.encoders.into()),
        ("engines.jpeg", facts.engines.jpeg.into()),
        ("engines.ofa", facts.engines.ofa.into()),
    ] {
        set(part, value.to_string());
    }
}

/// Labels of a node that the strategy `single` cannot describe.
pub(super) fn label_invalid(labels: &mut Labels, model: &Model<'_>) {
    product(labels, "gpu", model.name(), "-MIG-INVALID");
    labels.set("gpu.count", 0);
    labels.set("gpu.replicas", 0);
    labels.set("gpu.memory", 0);
    labels.set("gpu.sharing-strategy", "");
}
