// SPDX-License-Identifier: Apache-2.0
//! When an answer is as good as the recorded one. The tests of `deviceplugin` judge by them too.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// What a refusal is about, in the words of both programs.
const REASONS: [&str; 2] = [
    "unknown device",
    "maximum request size for shared resources is 1; found",
];

/// A list of devices, each with `id`, `health` and `numa_nodes`, against that of a step.
pub fn list(step: &Value, ours: Vec<Value>) -> Result<(), String> {
    if step["transient"] == true {
        return Ok(());
    }
    if let Some(wanted) = step.pointer("/want/unhealthy") {
        let unhealthy = ours.iter().filter(|device| device["health"] == "Unhealthy");
        let unhealthy: BTreeSet<String> = unhealthy.map(|it| text(&it["id"])).collect();
        let wanted: BTreeSet<String> = strings(wanted).into_iter().collect();
        return same("unhealthy", &unhealthy, &wanted);
    }
    // Which device goes unhealthy is random there.
    let random = step["deterministic"] == false;
    let by_id = |list: Vec<Value>| -> BTreeMap<String, Value> {
        let value = |it: Value| if random { it["numa_nodes"].clone() } else { it };
        list.into_iter()
            .map(|it| (text(&it["id"]), value(it)))
            .collect()
    };
    let recorded = step["response"]["devices"].as_array().unwrap().clone();
    same("devices", &by_id(ours), &by_id(recorded))
}

/// The answers for the containers of a step, or the text of a refusal.
pub fn allocation(step: &Value, ours: Result<Vec<Value>, String>) -> Result<(), String> {
    let response = &step["response"];
    match (ours, response.pointer("/error/message")) {
        (Ok(answers), None) => {
            let recorded = response["container_responses"].as_array().unwrap();
            let order = |answers: &[Value]| match step["unordered_ids"] == true {
                true => answers.iter().cloned().map(in_order).collect(),
                false => answers.to_vec(),
            };
            same("answer", &order(&answers), &order(recorded))
        }
        (Err(ours), Some(recorded)) => same_reason(&ours, &text(recorded)),
        (ours, _) => Err(format!("{ours:?} is not {response}")),
    }
}

fn same_reason(ours: &str, recorded: &str) -> Result<(), String> {
    let in_both = |reason: &str| ours.contains(reason) && recorded.contains(reason);
    let what = format!("{ours} is not {recorded}");
    holds(REASONS.iter().any(|reason| in_both(reason)), what)
}

/// The preferred ids for one container of a step of a case, or the text of a refusal.
pub fn preference(
    case: &Value,
    step: &Value,
    place: usize,
    ours: Result<Vec<String>, String>,
) -> Result<(), String> {
    let response = &step["response"];
    let Some(recorded) = response.get("container_responses") else {
        return holds(ours.is_err(), format!("{ours:?} is no refusal"));
    };
    let ids = ours?;
    let recorded = strings(&recorded[place]["device_ids"]);
    if recorded.is_empty() {
        return same("preferred", &ids, &recorded);
    }
    let request = &step["request"]["container_requests"][place];
    let size = json!(ids.len()) == request["allocation_size"];
    holds(size, format!("{ids:?} are too few or many"))?;
    let required = strings(&request["must_include_device_ids"]);
    let all = required.iter().all(|id| ids.contains(id));
    holds(all, "a required one is missing")?;
    let rules: Vec<&Value> = ["accept", "want"]
        .iter()
        .filter_map(|key| step.get(*key))
        .collect();
    for rule in &rules {
        obeys(case, rule, &ids)?;
    }
    if rules.is_empty() {
        let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
        same("preferred", &set(&ids), &set(&recorded))?;
    }
    Ok(())
}

fn obeys(case: &Value, rule: &Value, ids: &[String]) -> Result<(), String> {
    let bare = |id: &String| id.split("::").next().unwrap().to_owned();
    let gpus = case["node"]["gpus"].as_array().unwrap();
    let parent = |id: &String| {
        let of = |gpu: &&Value| {
            let is = |it: &Value| it["uuid"] == bare(id).as_str();
            is(gpu) || gpu["instances"].as_array().unwrap().iter().any(is)
        };
        gpus.iter().position(|gpu| of(&gpu)).unwrap()
    };
    for (key, expected) in rule.as_object().unwrap() {
        let kept = match key.as_str() {
            "includes" => strings(expected).iter().all(|id| ids.contains(id)),
            "distinct_devices" => {
                let distinct: BTreeSet<String> = ids.iter().map(bare).collect();
                json!(distinct.len()) == *expected
            }
            "per_gpu" => {
                let mut counts: BTreeMap<String, u32> = BTreeMap::new();
                for id in ids {
                    *counts.entry(text(&gpus[parent(id)]["uuid"])).or_default() += 1;
                }
                expected.as_array().unwrap().contains(&json!(counts))
            }
            "switch_groups" => {
                let groups = case["node"]["topology"]["switch_groups"]
                    .as_array()
                    .unwrap();
                let touched = |group: &&Value| {
                    ids.iter()
                        .any(|id| group.as_array().unwrap().contains(&json!(parent(id))))
                };
                json!(groups.iter().filter(touched).count()) == *expected
            }
            key => return Err(format!("there is no rule {key}")),
        };
        holds(kept, format!("{ids:?} is not {key} {expected}"))?;
    }
    Ok(())
}

/// An answer with its ids in order.
fn in_order(mut answer: Value) -> Value {
    if let Some(Value::String(ids)) = answer.pointer_mut("/envs/NVIDIA_VISIBLE_DEVICES") {
        let mut list: Vec<&str> = ids.split(',').collect();
        list.sort_unstable();
        *ids = list.join(",");
    }
    for key in ["mounts", "devices", "cdi_devices"] {
        let list = answer[key].as_array_mut().unwrap();
        list.sort_by_key(ToString::to_string);
    }
    answer
}

pub fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// An error if two things differ.
pub fn same<T: PartialEq + std::fmt::Debug>(
    what: &str,
    ours: &T,
    recorded: &T,
) -> Result<(), String> {
    if ours == recorded {
        return Ok(());
    }
    Err(format!(
        "{what}:\n     ours {ours:?}\n recorded {recorded:?}"
    ))
}

/// An error if something does not hold.
pub fn holds(condition: bool, what: impl Into<String>) -> Result<(), String> {
    if condition { Ok(()) } else { Err(what.into()) }
}
