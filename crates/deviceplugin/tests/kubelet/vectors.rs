// SPDX-License-Identifier: Apache-2.0
//! The recorded behaviour of NVIDIA's device plugin, case by case, before the stand-in kubelet.
//! `SLICEWRIGHT_VECTORS` names another folder.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use deviceplugin::wire::deviceplugin as wire;
use deviceplugin::{Offer, Plugins};
// What the shared module `node` stands on.
use geometry as _;
use publish::{Fault, Node, XidPolicy, resources};
use serde_json::{Value, json};

use crate::stand_in::{Event, Folder, Kubelet};

#[path = "../../../publish/tests/vectors/node.rs"]
mod node;
#[path = "../../../publish/tests/vectors/rules.rs"]
mod rules;

use node::{links, node, number, settings, text};
use rules::{holds, same};

/// Longer than the plugins wait for anything, in seconds.
const SETTLED: u64 = 60;

#[tokio::test(start_paused = true)]
async fn vectors_over_grpc() {
    let folder = std::env::var_os("SLICEWRIGHT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors"),
        PathBuf::from,
    );
    let entries = std::fs::read_dir(folder.join("deviceplugin")).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let mut failures = Vec::new();
    let mut cases = 0;
    for path in paths {
        let case: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        let mps = case["config"].pointer("/sharing/mps");
        if mps.is_none_or(Value::is_null) {
            cases += 1;
            let outcome = judge(&case).await;
            failures.extend(outcome.err().map(|why| format!("{}: {why}", case["case"])));
        }
    }
    // Not by println, which a passing test does not show.
    writeln!(std::io::stdout(), "{cases} device-plugin cases over gRPC").unwrap();
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

async fn judge(case: &Value) -> Result<(), String> {
    let Ok(config) = settings(case, &case["config"]) else {
        // Refused, so that the last good one stays in force: judged with the configurations.
        return Ok(());
    };
    let variable = |name: &str| case["env"][name].as_str();
    let (policy, _) = XidPolicy::from_variables(
        variable("DP_DISABLE_HEALTHCHECKS"),
        variable("DP_ENABLE_HEALTHCHECKS"),
    );
    let folder = Folder::new();
    let mut replay = Replay {
        case,
        node: node(&case["node"], config),
        policy,
        kubelet: Kubelet::start(&folder),
        plugins: Plugins::start(
            folder.place.clone(),
            folder.path().to_owned(),
            Some(folder.kubelet_socket()),
        ),
        folder,
        registrations: BTreeMap::new(),
        lists: BTreeMap::new(),
        reloaded: false,
    };
    replay.offer();
    for (number, step) in (1..).zip(case["steps"].as_array().unwrap()) {
        let judged = replay.step(step).await;
        judged.map_err(|why| format!("step {number}, {}: {why}", step["call"]))?;
    }
    replay.settle().await;
    let left = replay.registrations;
    // Cases of node states end with the recorded plugin, ours goes on.
    let surplus = left.values().any(|requests| !requests.is_empty());
    let ended = case["fault"] == "exit_on_node_state";
    holds(ended || !surplus, format!("registered as well: {left:?}"))
}

/// A node and its kubelet while the steps are replayed.
struct Replay<'a> {
    case: &'a Value,
    node: Node,
    policy: XidPolicy,
    kubelet: Kubelet,
    plugins: Plugins,
    folder: Folder,
    /// Registrations that no step has told of yet, by resource.
    registrations: BTreeMap<String, Vec<wire::RegisterRequest>>,
    /// The last list of each resource.
    lists: BTreeMap<String, Vec<wire::Device>>,
    /// Whether the settings were read again, which makes the recorded plugin register again.
    reloaded: bool,
}

impl Replay<'_> {
    fn offer(&self) {
        let (resources, _) = resources(&self.node);
        self.plugins.offer(Offer {
            resources,
            links: links(&self.case["node"]),
            config: Arc::new(self.node.config.clone()),
            control_nodes: rules::strings(&self.case["node"]["control_device_nodes"]),
            has_imex_channel_0: self.node.has_imex_channel_0,
            ..Offer::default()
        });
    }

    /// Takes in what happens until nothing does.
    async fn settle(&mut self) {
        for event in self.kubelet.events_until_quiet(SETTLED).await {
            match event {
                Event::Registered(request) => {
                    let name = request.resource_name.clone();
                    self.registrations.entry(name).or_default().push(request);
                }
                Event::Listed(name, devices) => {
                    self.lists.insert(name, devices);
                }
                Event::Ended(name) => {
                    self.lists.remove(&name);
                }
            }
        }
    }

    async fn step(&mut self, step: &Value) -> Result<(), String> {
        let request = &step["request"];
        let name = request["resource_name"].as_str().unwrap_or_default();
        if step["call"] != "event" {
            self.settle().await;
        }
        match step["call"].as_str() {
            Some("event") => self.event(step, request).await,
            Some("Register") => self.registered(name, request),
            Some("ListAndWatch") => {
                let list = self.lists.get(name).ok_or("there is no list")?;
                rules::list(step, list.iter().map(device).collect())
            }
            Some("Allocate") => self.allocate(step, name).await,
            Some("GetPreferredAllocation") => self.prefer(step, name).await,
            call => Err(format!("there is no call {call:?}")),
        }
    }

    async fn event(&mut self, step: &Value, request: &Value) -> Result<(), String> {
        match request["event"].as_str().unwrap() {
            "start" => {
                self.settle().await;
                let response = &step["response"];
                let listed = self.lists.iter().filter(|(_, devices)| !devices.is_empty());
                let names: Value = listed.map(|(name, _)| json!(name)).collect();
                if response["running"] == true {
                    same("registered", &names, &response["registered"])?;
                }
            }
            "xid" => {
                let xid = request["xid"].as_u64().unwrap();
                if self.policy.acts_on(xid) {
                    self.node.faults.push(fault(self.case, request));
                    self.offer();
                }
            }
            "list_sockets" => {
                self.settle().await;
                let better = step.pointer("/want/sockets");
                let recorded = better.unwrap_or(&step["response"]["sockets"]);
                if self.case["fault"] != "exit_on_node_state" {
                    same("sockets", &json!(self.folder.sockets()), recorded)?;
                }
            }
            "kubelet_restart" => {
                self.settle().await;
                self.kubelet.crash().await;
                if request["plugin_folder_emptied"] == true {
                    self.folder.empty();
                }
                self.lists.clear();
                self.kubelet = Kubelet::start(&self.folder);
            }
            "socket_removed" => {
                let socket = self.folder.path().join(text(&request["endpoint"]));
                std::fs::remove_file(socket).unwrap();
            }
            "sighup" => {
                let file = match request["config"].as_str() {
                    Some("default") => &Value::Null,
                    _ => &self.case["config"],
                };
                self.node.config = settings(self.case, file)?;
                self.reloaded = true;
                self.offer();
            }
            // Losing the source of events says nothing about devices; CDI files are not ours; and
            // the recorded plugin's streams end and dials fail where ours go on.
            _ => {}
        }
        Ok(())
    }

    fn registered(&mut self, name: &str, recorded: &Value) -> Result<(), String> {
        let requests = self.registrations.get_mut(name);
        let Some(request) = requests.and_then(|requests| requests.pop()) else {
            return holds(self.reloaded, "nothing was registered");
        };
        let options = request.options.unwrap();
        let ours = json!({
            "version": request.version,
            "endpoint": request.endpoint,
            "resource_name": request.resource_name,
            "options": {
                "pre_start_required": options.pre_start_required,
                "get_preferred_allocation_available": options.get_preferred_allocation_available,
            },
        });
        same("request", &ours, recorded)
    }

    async fn allocate(&self, step: &Value, name: &str) -> Result<(), String> {
        let requests = step["request"]["container_requests"].as_array().unwrap();
        let container = |it: &Value| wire::ContainerAllocateRequest {
            devices_ids: rules::strings(&it["devices_ids"]),
        };
        let request = wire::AllocateRequest {
            container_requests: requests.iter().map(container).collect(),
        };
        let answer = self.kubelet.plugin(name).allocate(request).await;
        let answers = match answer {
            Ok(answer) => {
                let answers = answer.into_inner().container_responses;
                Ok(answers.into_iter().map(as_json).collect())
            }
            Err(status) => {
                let recorded = step["response"].pointer("/error/code");
                let code = recorded.cloned().unwrap_or_default();
                same("status", &json!(format!("{:?}", status.code())), &code)?;
                Err(status.message().to_owned())
            }
        };
        rules::allocation(step, answers)
    }

    async fn prefer(&self, step: &Value, name: &str) -> Result<(), String> {
        let requests = step["request"]["container_requests"].as_array().unwrap();
        let container = |it: &Value| wire::ContainerPreferredAllocationRequest {
            available_device_i_ds: rules::strings(&it["available_device_ids"]),
            must_include_device_i_ds: rules::strings(&it["must_include_device_ids"]),
            allocation_size: number(&it["allocation_size"]).try_into().unwrap(),
        };
        let request = wire::PreferredAllocationRequest {
            container_requests: requests.iter().map(container).collect(),
        };
        let mut plugin = self.kubelet.plugin(name);
        match plugin.get_preferred_allocation(request).await {
            Ok(answer) => {
                let answers = answer.into_inner().container_responses;
                for (place, answer) in answers.into_iter().enumerate() {
                    rules::preference(self.case, step, place, Ok(answer.device_i_ds))?;
                }
                Ok(())
            }
            Err(status) => {
                let refusal = status.message().to_owned();
                rules::preference(self.case, step, 0, Err(refusal))
            }
        }
    }
}

fn fault(case: &Value, request: &Value) -> Fault {
    let gpus = case["node"]["gpus"].as_array().unwrap();
    let id = |key: &str| request[key].as_u64().map(|id| id.try_into().unwrap());
    let index = number(&request["gpu_index"]) as usize;
    Fault {
        gpu: text(&gpus[index]["uuid"]).parse().unwrap(),
        gpu_instance: id("gi_id"),
        compute_instance: id("ci_id"),
        what: format!("XID {}", request["xid"]),
    }
}

fn device(device: &wire::Device) -> Value {
    let nodes = device.topology.iter().flat_map(|near| &near.nodes);
    let numa: Vec<i64> = nodes.map(|node| node.id).collect();
    json!({"id": device.id, "health": device.health, "numa_nodes": numa})
}

/// An answer as the cases have it. The UUID in the key of an annotation is a new one each time.
fn as_json(answer: wire::ContainerAllocateResponse) -> Value {
    let mount = |it: wire::Mount| json!({"container_path": it.container_path, "host_path": it.host_path, "read_only": it.read_only});
    let device = |it: wire::DeviceSpec| json!({"container_path": it.container_path, "host_path": it.host_path, "permissions": it.permissions});
    let annotation = |(key, value): (String, String)| {
        let uuid = key.rsplit_once('_').map(|(start, uuid)| {
            assert_eq!(uuid.len(), 36, "{key}");
            format!("{start}_<uuid>")
        });
        (uuid.unwrap(), value)
    };
    let annotations: BTreeMap<String, String> =
        answer.annotations.into_iter().map(annotation).collect();
    json!({
        "envs": answer.envs,
        "mounts": answer.mounts.into_iter().map(mount).collect::<Vec<_>>(),
        "devices": answer.devices.into_iter().map(device).collect::<Vec<_>>(),
        "annotations": annotations,
        "cdi_devices": answer.cdi_devices.into_iter().map(|it| json!({"name": it.name})).collect::<Vec<_>>(),
    })
}
