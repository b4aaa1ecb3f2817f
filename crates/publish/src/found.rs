// SPDX-License-Identifier: Apache-2.0
//! What there is to hand out under the strategy in force, and what it is called before sharing.

use std::collections::BTreeSet;
use std::sync::Arc;

use config::deviceplugin::{ListStrategy, MigStrategy, Pattern};
use geometry::inventory::Gpu;
use plan::Warning;
use units::{Code, ProfileName};

use crate::hardware::Hardware;
use crate::name::{GPU, PREFIX, matches, slice};
use crate::node::{Node, is_cut};

/// A GPU or slice with its name.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    /// Resource name before sharing.
    pub name: String,
    /// Whether the name was chosen by a pattern of the user, for this kind of hardware.
    pub chosen: bool,
    /// Whether the name would mean two things on this node, so that it is not handed out.
    pub ambiguous: bool,
    /// What it is.
    pub hardware: Arc<Hardware>,
}

/// Everything that could be handed out, by rising index, and what to say about it.
pub(crate) fn find(node: &Node) -> (Vec<Found>, Vec<Warning>) {
    let strategy = node.config.flags.mig_strategy;
    let mut found = Vec::new();
    let mut findings = Vec::new();
    let (mut ignored, mut empty) = (Vec::new(), Vec::new());
    for gpu in node.gpus() {
        if !is_cut(gpu) || strategy == MigStrategy::None {
            found.push(whole(node, gpu));
            ignored.extend(is_cut(gpu).then_some(gpu.index));
            continue;
        }
        let slices = Hardware::slices(node, gpu);
        if slices.is_empty() {
            empty.push(gpu.index);
        }
        found.extend(slices.into_iter().map(|hardware| of_slice(node, hardware)));
    }
    note(&mut findings, Code::MigIgnored, &ignored, |gpus| {
        format!(
            "{gpus}: MIG is on and the strategy is none, so whole GPUs are advertised that CUDA \
             cannot use without naming a slice; choose the strategy single or mixed, or turn MIG off"
        )
    });
    note(&mut findings, Code::GpuEmpty, &empty, |gpus| {
        format!("{gpus}: MIG is on and there is no slice, so nothing of it is advertised")
    });
    if strategy == MigStrategy::Single {
        findings.extend(single(&mut found));
    }
    settle(node, &mut found, &mut findings);
    (found, findings)
}

fn whole(node: &Node, gpu: &Gpu) -> Found {
    let pattern = first(&node.config.resources.gpus, &gpu.name);
    named(pattern, GPU.to_owned(), Hardware::whole(node, gpu))
}

fn of_slice(node: &Node, hardware: Hardware) -> Found {
    let profile = hardware.slice.as_ref().map(|slice| &slice.profile);
    let text = profile.map(ToString::to_string).unwrap_or_default();
    let pattern = first(&node.config.resources.mig, &text);
    let name = match profile {
        Some(profile) if node.config.flags.mig_strategy == MigStrategy::Mixed => {
            format!("{PREFIX}{}", slice(profile))
        }
        _ => GPU.to_owned(),
    };
    named(pattern, name, hardware)
}

fn first<'a>(patterns: &'a [Pattern], text: &str) -> Option<&'a Pattern> {
    let mut patterns = patterns.iter();
    patterns.find(|pattern| matches(&pattern.pattern, text))
}

fn named(pattern: Option<&Pattern>, default: String, hardware: Hardware) -> Found {
    Found {
        name: pattern.map_or(default, |pattern| pattern.name.clone()),
        chosen: pattern.is_some(),
        ambiguous: false,
        hardware: Arc::new(hardware),
    }
}

/// Under `single` slices have the name of whole GPUs, so all of a node must be alike. Where they
/// are not, whole GPUs keep the name and slices go without.
fn single(found: &mut [Found]) -> Option<Warning> {
    let by_default = |it: &&mut Found| !it.chosen;
    let is_whole = |it: &Found| it.hardware.slice.is_none();
    let any_whole = found.iter().any(|it| !it.chosen && is_whole(it));
    let mut slices: Vec<&mut Found> = found
        .iter_mut()
        .filter(by_default)
        .filter(|it| !is_whole(it))
        .collect();
    let profile = |it: &&mut Found| it.hardware.slice.as_ref().map(|s| s.profile.clone());
    let profiles: BTreeSet<ProfileName> = slices.iter().filter_map(profile).collect();
    let reason = if profiles.len() > 1 {
        let names: Vec<String> = profiles.iter().map(ToString::to_string).collect();
        format!("slices of different profiles ({})", names.join(", "))
    } else if any_whole && !slices.is_empty() {
        "slices beside whole GPUs".to_owned()
    } else {
        return None;
    };
    for slice in &mut slices {
        slice.ambiguous = true;
    }
    Some(Warning {
        code: Code::StrategyAmbiguous,
        message: format!(
            "strategy single gives one name to all devices, but this node has {reason}: its {} \
             slices are not advertised; choose the strategy mixed, or slices of one profile on \
             every GPU",
            slices.len()
        ),
    })
}

/// What makes devices unusable besides faults of the hardware.
fn settle(node: &Node, found: &mut [Found], findings: &mut Vec<Warning>) {
    for fault in &node.faults {
        let concerns = |it: &&Found| fault.concerns(&it.hardware);
        if let Some(it) = found.iter().find(concerns) {
            findings.push(Warning {
                code: Code::DeviceUnhealthy,
                message: format!("GPU {}: {}", it.hardware.gpu_index, fault.what),
            });
        }
    }
    let config = &node.config;
    if config.imex.channel_0 && !node.has_imex_channel_0 {
        let required = config.imex.required;
        let then = if required {
            "no device is healthy until it is there, since imex.required is set"
        } else {
            "containers go without it"
        };
        findings.push(Warning {
            code: Code::ImexChannelMissing,
            message: format!("IMEX channel 0 is asked for and has no device node: {then}"),
        });
        if required {
            spoil(found, |_| Some("IMEX channel 0 is missing".to_owned()));
        }
    }
    let plugin = &config.flags.plugin;
    let cdi = [ListStrategy::CdiAnnotations, ListStrategy::CdiCri];
    let by_cdi = cdi
        .iter()
        .any(|way| plugin.device_list_strategy.contains(way));
    if plugin.pass_device_specs || by_cdi {
        let unknown = |it: &Hardware| it.nodes.is_empty();
        let gpus: BTreeSet<u32> = found
            .iter()
            .filter(|it| unknown(&it.hardware))
            .map(|it| it.hardware.gpu_index)
            .collect();
        let gpus: Vec<u32> = gpus.into_iter().collect();
        note(findings, Code::DeviceNodeUnknown, &gpus, |gpus| {
            format!("{gpus}: the driver does not tell every device node, which containers need")
        });
        spoil(found, |it| {
            unknown(it).then(|| "its device nodes are not known".to_owned())
        });
    }
}

/// Gives devices a fault that have none yet.
fn spoil(found: &mut [Found], fault: impl Fn(&Hardware) -> Option<String>) {
    for it in found {
        if it.hardware.fault.is_none()
            && let Some(fault) = fault(&it.hardware)
        {
            Arc::make_mut(&mut it.hardware).fault = Some(fault);
        }
    }
}

/// One finding about some GPUs, if any.
fn note(
    findings: &mut Vec<Warning>,
    code: Code,
    gpus: &[u32],
    message: impl FnOnce(String) -> String,
) {
    let list: Vec<String> = gpus.iter().map(ToString::to_string).collect();
    let gpus = match list.as_slice() {
        [] => return,
        [gpu] => format!("GPU {gpu}"),
        gpus => format!("GPUs {}", gpus.join(", ")),
    };
    findings.push(Warning {
        code,
        message: message(gpus),
    });
}
