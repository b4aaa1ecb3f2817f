// SPDX-License-Identifier: Apache-2.0
//! What a node goes through: its kubelet, its agent and the API server end at bad moments, it loses
//! its power, somebody else changes its GPUs. No pod is lost that had not to be, and no node is left
//! in between.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::pods::{apply, delete};
use super::steps::{
    as_before, fault, fresh_agent, label, passed, settled, strategy, struck, unharmed, workload,
    world,
};
use super::{Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, Node, until};

/// A pod on a slice of a node that is cut into all sorts.
fn enduring_pod(cluster: &Cluster, node: &Node) -> Outcome {
    strategy(cluster, "mixed")?;
    label(cluster, node, "all-balanced")?;
    settled(cluster, node, "all-balanced", "mig-1g.10gb", 2)?;
    apply(cluster, &workload("enduring", &node.name, "mig-1g.10gb"))?;
    passed(cluster, "enduring")
}

/// A pod on a slice outlives a change of layout on its GPU, a kubelet that ends, an API server that
/// is away meanwhile, and a hand that destroys a slice beside it.
pub fn pod_outlives(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    enduring_pod(cluster, node)?;
    label(cluster, node, "all-1g.10gb")?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    for signal in [Signal::TERM, Signal::KILL] {
        node.stop_kubelet(signal)?;
        node.start_kubelet()?;
        settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
        admitted(cluster, "after", &node.name, "mig-1g.10gb")?;
        passed(cluster, "after")?;
        delete(cluster, "after")?;
    }
    unharmed(cluster, "enduring")?;
    api_away(cluster, node)?;
    unharmed(cluster, "enduring")?;
    foreign_change(cluster, node)?;
    unharmed(cluster, "enduring")?;
    delete(cluster, "enduring")?;
    as_before(cluster, node)
}

/// Creates a workload until it is admitted. A kubelet that has just started ends pods whose devices
/// have not been registered with it again, while the node's status still tells of them
/// (kubernetes#125579); what makes pods anew does the same.
fn admitted(cluster: &Cluster, pod: &str, node: &str, resource: &str) -> Outcome {
    let path = "-o=jsonpath={.status.phase}";
    apply(cluster, &workload(pod, node, resource))?;
    Ok(until(&format!("pod {pod} to be admitted"), 60, || {
        let phase = cluster.kubectl(&["get", "pod", pod, path])?;
        if phase == "Failed" {
            delete(cluster, pod)?;
            apply(cluster, &workload(pod, node, resource))?;
        }
        Ok((phase == "Running").then_some(()))
    })?)
}

/// How long the API server is away.
const AWAY: Duration = Duration::from_secs(60);

/// Without an API server the agent goes on serving: a socket that is removed is there again, for as
/// long as it takes. What is labelled afterwards is done.
fn api_away(cluster: &Cluster, node: &Node) -> Outcome {
    cluster.stop_api()?;
    let folder = node.disk().join("var/lib/kubelet/device-plugins");
    let serves = || {
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        Ok(names
            .any(|name| name.starts_with("nvidia-mig-1g.10gb"))
            .then_some(()))
    };
    let remove = "rm /var/lib/kubelet/device-plugins/nvidia-mig-1g.10gb*";
    let again = || -> Outcome {
        node.exec(10, &["sh", "-c", remove])?;
        Ok(until(
            "the agent to serve without an API server",
            30,
            serves,
        )?)
    };
    let begun = Instant::now();
    let mut served = Ok(());
    while served.is_ok() && begun.elapsed() < AWAY {
        served = again();
    }
    cluster.start_api()?;
    served?;
    label(cluster, node, "all-balanced")?;
    settled(cluster, node, "all-balanced", "mig-2g.20gb", 1)?;
    label(cluster, node, "all-1g.10gb")?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)
}

/// Somebody destroys a slice by hand: the layout is repaired.
fn foreign_change(cluster: &Cluster, node: &Node) -> Outcome {
    let list = node.exec(
        20,
        &["chroot", "/run/nvidia/driver", "nvidia-smi", "mig", "-lci"],
    )?;
    let mut slices = list.lines().filter(|line| line.contains("1g.10gb"));
    let idle = slices.next_back();
    let instance = idle.and_then(|line| line.split_whitespace().nth(2));
    let instance = instance.unwrap_or_default().to_owned();
    for verb in ["-dci", "-dgi"] {
        let words = ["nvidia-smi", "mig", verb, "-i", "0", "-gi", &instance];
        let mut all = vec!["chroot", "/run/nvidia/driver"];
        all.extend(words);
        node.exec(20, &all)?;
    }
    let repaired = || {
        let world = world(node)?;
        Ok((world.gpus[0].instances.len() == 7).then_some(()))
    };
    until("repair of the layout", 60, repaired)?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)
}

/// The agent is killed before and after every driver call of a change that changes something: each
/// time its successor ends in the layout that is wanted, and the pod on a slice that stays runs on.
pub fn agent_killed_in_a_change(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    enduring_pod(cluster, node)?;
    // From balanced to 1g and back two instances go and five come, or the reverse.
    let mut cases = 0;
    let mut config = "all-1g.10gb";
    for effect in ["kill-before", "kill-after"] {
        for (call, nth) in [
            ("destroy-ci", 1),
            ("destroy-gi", 2),
            ("create-gi", 1),
            ("create-ci", 2),
        ] {
            fault(node, "clear")?;
            fault(node, &format!("{effect} {call} gpu=0 nth={nth}"))?;
            label(cluster, node, config)?;
            struck(node, &format!("{effect} {call}"))?;
            fresh_agent(cluster, node)?;
            let (resource, count) = match config {
                "all-1g.10gb" => ("mig-1g.10gb", 7),
                _ => ("mig-3g.40gb", 1),
            };
            settled(cluster, node, config, resource, count)?;
            unharmed(cluster, "enduring")?;
            cases += 1;
            config = match config {
                "all-1g.10gb" => "all-balanced",
                _ => "all-1g.10gb",
            };
        }
    }
    fault(node, "clear")?;
    println!("agent killed in a change: {cases} cases, 0 pods lost, 0 nodes in between");
    delete(cluster, "enduring")?;
    as_before(cluster, node)
}

/// A node loses its power: the layout is there before anything is offered, a pod with a controller
/// runs again, one without is told of.
pub fn node_reboots(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    label(cluster, node, "all-1g.10gb")?;
    settled(cluster, node, "all-1g.10gb", "gpu", 7)?;
    apply(cluster, &deployment(node))?;
    let rollout = [
        "rollout",
        "status",
        "deployment/controlled",
        "--timeout=60s",
    ];
    cluster.kubectl(&rollout)?;
    let mut alone = workload("alone", &node.name, "gpu");
    alone["spec"]["restartPolicy"] = json!("Always");
    apply(cluster, &alone)?;
    passed(cluster, "alone")?;
    let before = controlled(cluster);
    node.reboot()?;
    // The API server tells of containers from before the boot until the kubelet is there again.
    until("a pod of the deployment to run after the boot", 120, || {
        let now = controlled(cluster);
        Ok(now.iter().any(|id| !before.contains(id)).then_some(()))
    })?;
    settled(cluster, node, "all-1g.10gb", "gpu", 7)?;
    let told = until("the pod without a controller to be told of", 60, || {
        let events = cluster.kubectl(&["describe", "node", &node.name])?;
        Ok(events.contains("default/alone").then_some(()))
    });
    let path = "-o=jsonpath={.status.phase} {.status.reason} {.status.message}";
    let state = cluster.kubectl(&["get", "pod", "alone", path])?;
    check(told.is_ok(), || {
        let words = [
            "logs",
            "-n",
            NAMESPACE,
            "-l",
            "app=nvidia-mig-manager",
            "--tail=12",
        ];
        let log = cluster.kubectl(&words).unwrap_or_default();
        format!("nobody tells of the pod that is {state}; the agents: {log}")
    })?;
    cluster.kubectl(&["delete", "deployment", "controlled", "--timeout=60s"])?;
    delete(cluster, "alone")?;
    as_before(cluster, node)
}

/// A workload with a controller.
fn deployment(node: &Node) -> Value {
    let mut template = workload("controlled", &node.name, "gpu");
    template["metadata"] = json!({ "labels": { "app": "controlled" } });
    template["spec"]["restartPolicy"] = json!("Always");
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": "controlled" },
        "spec": {
            "replicas": 1,
            "selector": { "matchLabels": { "app": "controlled" } },
            "template": { "metadata": template["metadata"], "spec": template["spec"] },
        },
    })
}

/// Containers of the deployment that run and are ready.
fn controlled(cluster: &Cluster) -> Vec<String> {
    let words = ["get", "pods", "--selector=app=controlled", "--output=json"];
    let pods = cluster.kubectl(&words).unwrap_or_default();
    let pods: Value = serde_json::from_str(&pods).unwrap_or_default();
    let list = pods["items"].as_array().cloned().unwrap_or_default();
    let status = list
        .iter()
        .map(|pod| &pod["status"]["containerStatuses"][0]);
    let ready = status.filter(|status| status["ready"] == true);
    ready
        .filter_map(|status| Some(status["containerID"].as_str()?.to_owned()))
        .collect()
}
