// SPDX-License-Identifier: Apache-2.0
//! Steps that scenarios with the agent have in common: what is asked of a node, what becomes of it,
//! and pods that use what they get.

use std::sync::Arc;

use nvmlsim::{Handle, World, verbs};
use serde_json::{Value, json};

use super::pods::wait_for_phase;
use super::{Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, Node, until};
use crate::error::Error;
use crate::image::VALIDATION;

/// A pod that uses what it gets until it ends, and fails when that changes.
pub fn workload(name: &str, node: &str, resource: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "nodeSelector": { "kubernetes.io/hostname": node },
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": VALIDATION,
                "imagePullPolicy": "Never",
                "resources": { "limits": { (format!("nvidia.com/{resource}")): 1 } },
            }],
        },
    })
}

/// Waits until a workload has passed its test.
pub fn passed(cluster: &Cluster, pod: &str) -> Outcome {
    wait_for_phase(cluster, pod, "Running")?;
    let passes = || {
        let logs = cluster.kubectl(&["logs", pod]).unwrap_or_default();
        Ok(logs.contains("Test PASSED").then_some(()))
    };
    Ok(until(&format!("test of pod {pod}"), 30, passes)?)
}

/// Checks that a pod runs, and that nothing of it was started again.
pub fn unharmed(cluster: &Cluster, pod: &str) -> Outcome {
    let path = "-o=jsonpath={.status.phase} {.status.containerStatuses[0].restartCount}";
    let state = cluster.kubectl(&["get", "pod", pod, path])?;
    let logs = cluster.kubectl(&["logs", pod]).unwrap_or_default();
    check(state == "Running 0", || {
        format!("pod {pod}: {state}: {logs}")
    })
}

/// Asks for a layout.
pub fn label(cluster: &Cluster, node: &Node, config: &str) -> Result<(), Error> {
    let name = &node.name;
    let label = format!("nvidia.com/mig.config={config}");
    cluster
        .kubectl(&["label", "node", name, &label, "--overwrite"])
        .map(|_| ())
}

/// Waits until the node has that layout, told as success, and offers it.
pub fn settled(
    cluster: &Cluster,
    node: &Node,
    config: &str,
    resource: &str,
    count: u32,
) -> Outcome {
    let what = format!("{config} on {}", node.name);
    let path = format!(
        "-o=jsonpath={{.metadata.labels.nvidia\\.com/mig\\.config\\.state}} \
         {{.status.allocatable.nvidia\\.com/{}}}",
        resource.replace('.', "\\.")
    );
    let wanted = format!("success {count}");
    let mut last = String::new();
    let reached = until(&what, 90, || {
        last = cluster
            .kubectl(&["get", "node", &node.name, &path])
            .unwrap_or_default();
        Ok((last == wanted).then_some(()))
    });
    check(reached.is_ok(), || {
        format!("{what}: {last}, expected {wanted}")
    })
}

/// Sets the strategy of the cluster.
pub fn strategy(cluster: &Cluster, strategy: &str) -> Result<(), Error> {
    let patch = json!({ "spec": { "mig": { "strategy": strategy } } }).to_string();
    let words = [
        "patch",
        "clusterpolicy",
        "cluster-policy",
        "--type=merge",
        "-p",
        &patch,
    ];
    cluster.kubectl(&words).map(|_| ())
}

/// Takes label and strategy back.
pub fn as_before(cluster: &Cluster, node: &Node) -> Outcome {
    label(cluster, node, "all-disabled")?;
    settled(cluster, node, "all-disabled", "gpu", 1)?;
    cluster.kubectl(&["label", "node", &node.name, "nvidia.com/mig.config-"])?;
    Ok(strategy(cluster, "single")?)
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Cluster(error.to_string())
}

/// What the node's simulated hardware is now.
pub fn world(node: &Node) -> Result<Arc<World>, Error> {
    let handle = Handle::open(&node.world_file()).map_err(failed)?;
    handle.world().map_err(failed)
}

/// Changes the node's simulated hardware by a hand from outside.
pub fn change_world(node: &Node, change: impl FnOnce(&mut World)) -> Result<(), Error> {
    let handle = Handle::open(&node.world_file()).map_err(failed)?;
    handle.change(change).map_err(failed)
}

/// Does what a line of a fault script says.
pub fn fault(node: &Node, line: &str) -> Result<(), Error> {
    let handle = Handle::open(&node.world_file()).map_err(failed)?;
    verbs::fault(&handle, &[line]).map_err(failed)
}

/// Waits until all faults that a call meets have been met.
pub fn struck(node: &Node, what: &str) -> Result<(), Error> {
    until(what, 60, || {
        let world = world(node)?;
        let has_struck = world.rules.iter().all(|rule| rule.seen >= rule.nth);
        Ok(has_struck.then_some(()))
    })
}

/// What a JSON path finds in an object of that kind that is named like the node.
pub fn field(cluster: &Cluster, node: &Node, kind: &str, path: &str) -> Result<String, Error> {
    cluster.kubectl(&["get", kind, &node.name, &format!("-o=jsonpath={path}")])
}

/// Waits until that is what a JSON path finds in an object that is named like the node.
pub fn becomes(cluster: &Cluster, node: &Node, kind: &str, path: &str, wanted: &str) -> Outcome {
    let mut last = String::new();
    let reached = until(wanted, 60, || {
        last = field(cluster, node, kind, path).unwrap_or_default();
        Ok((last == wanted).then_some(()))
    });
    check(reached.is_ok(), || {
        format!(
            "{path} of {kind} {}: {last:?}, expected {wanted:?}",
            node.name
        )
    })
}

/// The version that the API server's nodes are at now.
pub fn version(cluster: &Cluster) -> Result<String, Error> {
    let list = cluster.kubectl(&["get", "--raw", "/api/v1/nodes"])?;
    let list: Value = serde_json::from_str(&list).map_err(failed)?;
    let version = list["metadata"]["resourceVersion"].as_str();
    Ok(version.unwrap_or_default().to_owned())
}

/// Everything that a node was after that version, in order.
pub fn history(cluster: &Cluster, node: &Node, version: &str) -> Result<Vec<Value>, Error> {
    // It remembers what it told; the time is how long it waits for more.
    let path = format!(
        "/api/v1/nodes?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3D{}\
         &resourceVersion={version}",
        node.name
    );
    let told = cluster.kubectl(&["get", "--raw", &path])?;
    let events = told.lines().map(serde_json::from_str::<Value>);
    let events: Vec<Value> = events.collect::<Result<_, _>>().map_err(failed)?;
    let is_gap = |event: &&Value| event["type"] == "ERROR";
    match events.iter().find(is_gap) {
        Some(gap) => Err(Error::Cluster(format!("history of {}: {gap}", node.name))),
        None => Ok(events
            .into_iter()
            .map(|mut event| event["object"].take())
            .collect()),
    }
}

/// UID of the node's agent, how often it was started again, and whether it is ready; nothing if there
/// is not just one.
pub fn agent(cluster: &Cluster, node: &Node) -> Result<[String; 3], Error> {
    let status = "{.status.containerStatuses[0].restartCount} {.status.containerStatuses[0].ready}";
    let pods = cluster.kubectl(&[
        "get",
        "pods",
        &format!("--namespace={NAMESPACE}"),
        &format!("--field-selector=spec.nodeName={}", node.name),
        "--selector=app.kubernetes.io/component=agent",
        &format!("-o=jsonpath={{range .items[*]}}{{.metadata.uid}} {status} {{end}}"),
    ])?;
    let words: Vec<String> = pods.split_whitespace().map(str::to_owned).collect();
    Ok(words.try_into().unwrap_or_default())
}

/// Ends the agent's pod, so that the next is there at once: a container that dies again and again
/// waits longer and longer.
pub fn fresh_agent(cluster: &Cluster, node: &Node) -> Result<(), Error> {
    let namespace = format!("--namespace={NAMESPACE}");
    let selector = format!("--field-selector=spec.nodeName={}", node.name);
    let app = "--selector=app.kubernetes.io/component=agent";
    let words = [
        "delete",
        "pod",
        &namespace,
        &selector,
        app,
        "--now",
        "--wait=false",
    ];
    cluster.kubectl(&words).map(|_| ())
}
