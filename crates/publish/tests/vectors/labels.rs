// SPDX-License-Identifier: Apache-2.0
//! Label cases.

use std::collections::BTreeMap;

use publish::{Node, is_ours, labels};
use serde_json::Value;

use super::Tally;
use super::node::{node, settings, text};
use super::rules::{holds, same};

type Labels = BTreeMap<String, String>;

pub fn judge(cases: &[Value]) -> Tally {
    let mut tally = Tally::default();
    for case in cases {
        let mps = case["sharing_config"].pointer("/sharing/mps");
        if mps.is_some_and(|mps| !mps.is_null()) || case.get("kubernetes").is_some() {
            tally.left_out += 1;
            continue;
        }
        tally.add(&text(&case["case"]), judge_one(case));
    }
    tally
}

fn judge_one(case: &Value) -> Result<(), String> {
    let config = match (
        settings(case, &case["sharing_config"]),
        case["fault"].as_str(),
    ) {
        // Refused, so that the last good one stays in force.
        (Err(_), Some("exit_on_bad_input")) => return Ok(()),
        (config, fault) => {
            holds(
                fault != Some("exit_on_bad_input"),
                "the settings are accepted",
            )?;
            config?
        }
    };
    let mut node = node(case, config);
    node.machine_type = case["machine_type"].as_str().map(str::to_owned);
    let asked = case["flags"]["device-discovery-strategy"] != "vfio";
    if case["nvml"] == "library_missing" || !asked {
        node.inventory = None;
    }
    let (ours, _) = labels(&node);
    holds(ours.keys().all(|key| is_ours(key)), "a key is not ours")?;
    let recorded = recorded(case);
    match case["fault"].as_str() {
        None => same("labels", &ours, &recorded),
        Some("random") => random(case, ours, recorded),
        Some("wrong_result") => wrong(&ours, &recorded),
        Some("crash") => {
            same(
                "mode",
                &ours.get("nvidia.com/gpu.mode").map(String::as_str),
                &Some("unknown"),
            )?;
            holds(ours.contains_key("nvidia.com/gpu.product"), "no product")
        }
        Some("exit_on_node_state") => state(node, &ours),
        Some(fault) => Err(format!("there is no fault {fault}")),
    }
}

fn recorded(case: &Value) -> Labels {
    let labels = case["expected"]["labels"].as_object();
    let entry = |(key, value): (&String, &Value)| (key.clone(), text(value));
    labels.into_iter().flatten().map(entry).collect()
}

/// What changes from run to run there follows from one GPU model here, and each model has a label.
fn random(case: &Value, mut ours: Labels, mut recorded: Labels) -> Result<(), String> {
    let models = ours
        .keys()
        .filter(|key| key.starts_with(publish::MODEL_PREFIX))
        .count();
    holds(models > 1, "no label per model")?;
    ours.retain(|key, _| !key.starts_with(publish::MODEL_PREFIX));
    for key in case["unstable_labels"].as_array().unwrap() {
        let key = key.as_str().unwrap();
        holds(ours.remove(key).is_some(), format!("no {key}"))?;
        recorded.remove(key);
    }
    same("labels", &ours, &recorded)
}

/// Values that are no legal ones are shortened, with their ending kept.
fn wrong(ours: &Labels, recorded: &Labels) -> Result<(), String> {
    same(
        "keys",
        &ours.keys().collect::<Vec<_>>(),
        &recorded.keys().collect::<Vec<_>>(),
    )?;
    for (key, value) in recorded {
        let our = &ours[key];
        if value.len() <= 63 {
            same(key, our, value)?;
        }
        holds(
            our.len() <= 63 && value.starts_with(&our[..20.min(our.len())]),
            our,
        )?;
        if let Some((_, ending)) = value.split_once("-MIG-") {
            holds(
                our.ends_with(ending),
                format!("{our} has not kept {ending}"),
            )?;
        }
    }
    Ok(())
}

/// The recorded program ended. Every label that does not need the odd fact is there.
fn state(mut node: Node, ours: &Labels) -> Result<(), String> {
    if node.inventory.is_none() {
        let vgpu = Labels::from([("nvidia.com/vgpu.present".to_owned(), "false".to_owned())]);
        return same("labels", ours, &vgpu);
    }
    let odd = |key: &String| {
        key.starts_with("nvidia.com/cuda.driver") && !key.ends_with("driver-version.full")
    };
    holds(!ours.keys().any(odd), "parts of an odd driver version")?;
    node.inventory.as_mut().unwrap().driver_version = "1.2.3".to_owned();
    let (mut sound, _) = labels(&node);
    sound.retain(|key, _| !odd(key));
    same(
        "keys",
        &ours.keys().collect::<Vec<_>>(),
        &sound.keys().collect::<Vec<_>>(),
    )
}
