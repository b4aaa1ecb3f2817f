// SPDX-License-Identifier: Apache-2.0
//! Device-plugin cases: their steps one after the other. Sockets and restarts need a kubelet and
//! are replayed elsewhere; what is published and answered before and after them is judged here.

use std::collections::{BTreeMap, BTreeSet};

use publish::{
    AllocateFlags, Answer, CdiExtra, Fault, Links, Node, PreferenceRequest, Resource, XidPolicy,
    allocate, preferred, resources,
};
use serde_json::{Value, json};
use units::Code;

use super::node::{links, node, number, settings, text};
use super::{Tally, holds, same};

/// Things that happen to the process, or that are seen of it, and decide nothing here.
const BY_GRPC: [&str; 5] = [
    "kubelet_restart",
    "socket_removed",
    "sighup",
    "stream_ended",
    "dial_failed",
];

pub fn judge(cases: &[Value]) -> Tally {
    let mut tally = Tally::default();
    for case in cases {
        let mps = case["config"].pointer("/sharing/mps");
        if mps.is_some_and(|mps| !mps.is_null()) {
            tally.left_out += 1;
            continue;
        }
        let steps = case["steps"].as_array().unwrap();
        let grpc = |step: &Value| {
            let event = step["request"]["event"].as_str();
            event.is_some_and(|event| BY_GRPC.contains(&event))
        };
        tally.by_grpc += usize::from(steps.iter().any(grpc));
        let name = text(&case["case"]);
        tally.add(&name, judge_one(case, steps));
    }
    tally
}

/// A node while its steps are replayed.
struct Replay<'a> {
    case: &'a Value,
    node: Node,
    links: Links,
    policy: XidPolicy,
    resources: Vec<Resource>,
    findings: Vec<Code>,
}

fn judge_one(case: &Value, steps: &[Value]) -> Result<(), String> {
    let config = match settings(case, &case["config"]) {
        // Refused, so that the last good one stays in force.
        Err(_) if case["fault"] == "exit_on_bad_input" => return Ok(()),
        config => config?,
    };
    let variable = |name: &str| case["env"][name].as_str();
    let (policy, warnings) = XidPolicy::from_variables(
        variable("DP_DISABLE_HEALTHCHECKS"),
        variable("DP_ENABLE_HEALTHCHECKS"),
    );
    holds(warnings.is_empty(), format!("{warnings:?}"))?;
    let mut replay = Replay {
        case,
        node: node(&case["node"], config),
        links: links(&case["node"]),
        policy,
        resources: Vec::new(),
        findings: Vec::new(),
    };
    replay.publish();
    for (number, step) in (1..).zip(steps) {
        let judged = replay.step(step);
        judged.map_err(|why| format!("step {number}, {}: {why}", step["call"]))?;
    }
    Ok(())
}

impl Replay<'_> {
    fn publish(&mut self) {
        let (resources, findings) = resources(&self.node);
        self.resources = resources;
        self.findings = findings.into_iter().map(|finding| finding.code).collect();
    }

    fn resource(&self, request: &Value) -> Result<&Resource, String> {
        let name = text(&request["resource_name"]);
        let found = self.resources.iter().find(|resource| resource.name == name);
        found.ok_or_else(|| format!("there is no {name}"))
    }

    fn step(&mut self, step: &Value) -> Result<(), String> {
        let (request, response) = (&step["request"], &step["response"]);
        match step["call"].as_str() {
            Some("event") => self.event(step, request),
            Some("Register") => {
                let resource = self.resource(request)?;
                let endpoint = format!("nvidia-{}.sock", resource.short_name());
                same("endpoint", &endpoint, &text(&request["endpoint"]))
            }
            Some("ListAndWatch") => self.list(step, self.resource(request)?),
            Some("Allocate") => {
                let unordered = step["unordered_ids"] == true;
                self.allocate(request, response, unordered)
            }
            Some("GetPreferredAllocation") => self.prefer(step, request),
            call => Err(format!("there is no call {call:?}")),
        }
    }

    fn event(&mut self, step: &Value, request: &Value) -> Result<(), String> {
        match request["event"].as_str().unwrap() {
            "start" => self.start(&step["response"]),
            "xid" => {
                let xid = request["xid"].as_u64().unwrap();
                if self.policy.acts_on(xid) {
                    let gpus = self.case["node"]["gpus"].as_array().unwrap();
                    let id = |key: &str| request[key].as_u64().map(|id| id.try_into().unwrap());
                    let index = number(&request["gpu_index"]) as usize;
                    self.node.faults.push(Fault {
                        gpu: text(&gpus[index]["uuid"]).parse().unwrap(),
                        gpu_instance: id("gi_id"),
                        compute_instance: id("ci_id"),
                        what: format!("XID {xid}"),
                    });
                    self.publish();
                    holds(
                        self.findings.contains(&Code::DeviceUnhealthy),
                        "the XID is not told",
                    )?;
                }
                Ok(())
            }
            "list_sockets" => {
                let after_removal = step.pointer("/want/sockets");
                let recorded = after_removal.unwrap_or(&step["response"]["sockets"]);
                let socket = |it: &Resource| json!(format!("nvidia-{}.sock", it.short_name()));
                let served = self.resources.iter().filter(|it| !it.devices.is_empty());
                match self.case["fault"].as_str() {
                    Some("exit_on_node_state") => Ok(()),
                    _ => same("sockets", &served.map(socket).collect(), recorded),
                }
            }
            // Losing the source of events says nothing about devices.
            "driver_event_wait_error" => Ok(()),
            // Written by the plugin, which knows the driver's files.
            "cdi_file_written" => Ok(()),
            event if BY_GRPC.contains(&event) => Ok(()),
            event => Err(format!("there is no event {event}")),
        }
    }

    fn start(&self, response: &Value) -> Result<(), String> {
        let gpus = self.case["node"]["gpus"].as_array().unwrap();
        if response["running"] == true {
            let served = self.resources.iter().filter(|it| !it.devices.is_empty());
            let names = served.map(|it| json!(it.name)).collect();
            return same("registered", &names, &response["registered"]);
        }
        // The recorded plugin ended. Whole GPUs stay, and slices whose name is clear.
        let ids: BTreeSet<&str> = self
            .resources
            .iter()
            .flat_map(|it| it.devices.iter().map(|device| device.id.as_str()))
            .collect();
        let ambiguous = self.findings.contains(&Code::StrategyAmbiguous);
        let mut complete = true;
        for gpu in gpus {
            let slices = gpu["instances"].as_array().unwrap();
            if gpu["mig_enabled"] == false {
                let there = ids.contains(gpu["uuid"].as_str().unwrap());
                holds(there, "a whole GPU is missing")?;
            } else {
                complete &= !slices.is_empty() && !ambiguous;
            }
            for slice in slices {
                let there = ids.contains(slice["uuid"].as_str().unwrap());
                same("a slice is there", &there, &!ambiguous)?;
            }
        }
        holds(complete || !self.findings.is_empty(), "nothing is said")
    }

    fn list(&self, step: &Value, resource: &Resource) -> Result<(), String> {
        let unhealthy: BTreeSet<&str> = resource
            .devices
            .iter()
            .filter(|device| !device.is_healthy())
            .map(|device| device.id.as_str())
            .collect();
        if step["transient"] == true {
            return Ok(());
        }
        if let Some(wanted) = step.pointer("/want/unhealthy") {
            let wanted = strings(wanted);
            let wanted: BTreeSet<&str> = wanted.iter().map(String::as_str).collect();
            return same("unhealthy", &unhealthy, &wanted);
        }
        let ours: Vec<Value> = resource
            .devices
            .iter()
            .map(|device| {
                let health = if device.is_healthy() {
                    "Healthy"
                } else {
                    "Unhealthy"
                };
                let numa: Vec<u32> = device.hardware.numa_node.into_iter().collect();
                json!({"id": device.id, "health": health, "numa_nodes": numa})
            })
            .collect();
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

    fn allocate(&self, request: &Value, response: &Value, unordered: bool) -> Result<(), String> {
        let resource = self.resource(request)?;
        let control_nodes = strings(&self.case["node"]["control_device_nodes"]);
        let cdi_extras: [CdiExtra; 0] = [];
        let flags = AllocateFlags {
            config: &self.node.config,
            control_nodes: &control_nodes,
            has_imex_channel_0: self.node.has_imex_channel_0,
            cdi_extras: &cdi_extras,
            annotation_id: "<uuid>",
        };
        let requests = request["container_requests"].as_array().unwrap();
        let answers: Result<Vec<Value>, _> = requests
            .iter()
            .map(|request| allocate(resource, &strings(&request["devices_ids"]), &flags))
            .map(|answer| answer.map(as_json))
            .collect();
        match (answers, response.pointer("/error/message")) {
            (Ok(answers), None) => {
                let recorded = response["container_responses"].as_array().unwrap();
                let order = |answers: &[Value]| match unordered {
                    true => answers.iter().cloned().map(in_order).collect(),
                    false => answers.to_vec(),
                };
                same("answer", &order(&answers), &order(recorded))
            }
            (Err(refusal), Some(message)) => {
                let message = message.as_str().unwrap();
                let reason = refusal.message.split(':').next().unwrap();
                let reason = reason.split(" of ").next().unwrap();
                holds(
                    message.contains(reason),
                    format!("{refusal} is not {message}"),
                )
            }
            (answers, _) => Err(format!("{answers:?} is not {response}")),
        }
    }

    fn prefer(&self, step: &Value, request: &Value) -> Result<(), String> {
        let resource = self.resource(request)?;
        let policy = self
            .node
            .config
            .flags
            .plugin
            .shared_devices_allocation_policy;
        for (place, request) in request["container_requests"]
            .as_array()
            .unwrap()
            .iter()
            .enumerate()
        {
            let available = strings(&request["available_device_ids"]);
            let required = strings(&request["must_include_device_ids"]);
            let size = number(&request["allocation_size"]) as usize;
            let asked = PreferenceRequest {
                available: &available,
                required: &required,
                size,
            };
            let answer = preferred(resource, &self.links, policy, &asked);
            let Some(recorded) = step["response"].get("container_responses") else {
                return holds(answer.is_err(), format!("{answer:?} is no refusal"));
            };
            let ids = answer.map_err(|refusal| refusal.to_string())?;
            let recorded = strings(&recorded[place]["device_ids"]);
            if recorded.is_empty() {
                return same("preferred", &ids, &recorded);
            }
            holds(ids.len() == size, format!("{ids:?} are not {size}"))?;
            holds(
                required.iter().all(|id| ids.contains(id)),
                "a required one is missing",
            )?;
            let rules: Vec<&Value> = ["accept", "want"]
                .iter()
                .filter_map(|key| step.get(*key))
                .collect();
            for rule in &rules {
                self.obeys(rule, &ids)?;
            }
            if rules.is_empty() {
                let set = |ids: &[String]| ids.iter().cloned().collect::<BTreeSet<_>>();
                same("preferred", &set(&ids), &set(&recorded))?;
            }
        }
        Ok(())
    }

    fn obeys(&self, rule: &Value, ids: &[String]) -> Result<(), String> {
        let bare = |id: &String| id.split("::").next().unwrap().to_owned();
        let gpus = self.case["node"]["gpus"].as_array().unwrap();
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
                    let groups = self.case["node"]["topology"]["switch_groups"]
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
}

fn as_json(answer: Answer) -> Value {
    let mount = |it: publish::Mount| json!({"container_path": it.container_path, "host_path": it.host_path, "read_only": false});
    let device = |it: publish::DeviceNode| json!({"container_path": it.container_path, "host_path": it.host_path, "permissions": "rw"});
    json!({
        "envs": answer.envs,
        "mounts": answer.mounts.into_iter().map(mount).collect::<Vec<_>>(),
        "devices": answer.devices.into_iter().map(device).collect::<Vec<_>>(),
        "annotations": answer.annotations,
        "cdi_devices": answer.cdi_devices.iter().map(|name| json!({"name": name})).collect::<Vec<_>>(),
    })
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

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}
