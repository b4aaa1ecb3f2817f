// SPDX-License-Identifier: Apache-2.0
//! Device-plugin cases: their steps one after the other. Sockets and restarts need a kubelet and
//! are replayed elsewhere; what is published and answered before and after them is judged here.

use std::collections::BTreeSet;

use publish::{
    AllocateFlags, Answer, CdiExtra, Fault, Links, Node, PreferenceRequest, Resource, XidPolicy,
    allocate, preferred, resources,
};
use serde_json::{Value, json};
use units::Code;

use super::node::{links, node, number, settings, text};
use super::rules::{holds, same};
use super::{Tally, rules};

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
        let request = &step["request"];
        match step["call"].as_str() {
            Some("event") => self.event(step, request),
            Some("Register") => {
                let resource = self.resource(request)?;
                let endpoint = format!("nvidia-{}.sock", resource.short_name());
                same("endpoint", &endpoint, &text(&request["endpoint"]))
            }
            Some("ListAndWatch") => self.list(step, self.resource(request)?),
            Some("Allocate") => self.allocate(step, request),
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
        rules::list(step, ours)
    }

    fn allocate(&self, step: &Value, request: &Value) -> Result<(), String> {
        let resource = self.resource(request)?;
        let control_nodes = rules::strings(&self.case["node"]["control_device_nodes"]);
        let cdi_extras: [CdiExtra; 0] = [];
        let flags = AllocateFlags {
            config: &self.node.config,
            control_nodes: &control_nodes,
            has_imex_channel_0: self.node.has_imex_channel_0,
            cdi_extras: &cdi_extras,
            annotation_id: "<uuid>",
        };
        let requests = request["container_requests"].as_array().unwrap();
        let answers = requests.iter().map(|request| {
            let ids = rules::strings(&request["devices_ids"]);
            let answer = allocate(resource, &ids, &flags);
            answer.map(as_json).map_err(|refusal| refusal.to_string())
        });
        rules::allocation(step, answers.collect())
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
            let available = rules::strings(&request["available_device_ids"]);
            let required = rules::strings(&request["must_include_device_ids"]);
            let size = number(&request["allocation_size"]) as usize;
            let asked = PreferenceRequest {
                available: &available,
                required: &required,
                size,
            };
            let answer = preferred(resource, &self.links, policy, &asked);
            let answer = answer.map_err(|refusal| refusal.to_string());
            rules::preference(self.case, step, place, answer)?;
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
