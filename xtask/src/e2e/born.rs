// SPDX-License-Identifier: Apache-2.0
//! A node that is born with the wish for a layout, as autoscalers make them. A pod that got a whole
//! GPU first would be in the way of the layout, so nothing is offered before it is there.

use serde_json::Value;

use super::pods::{apply, delete};
use super::steps::{
    as_before, becomes, history, passed, settled, strategy, version, workload, world,
};
use super::{Outcome, check};
use crate::cluster::{Cluster, Node};
use crate::error::Error;

/// What the kubelet registers the node with.
const OPTIONS: [&str; 2] = [
    "--node-labels=nvidia.com/mig.config=all-1g.10gb",
    "--register-with-taints=slicewright.dev/not-ready=:NoSchedule",
];

/// Whole GPUs are never offered, the taint goes with the layout, and a pod that has waited for a
/// slice runs.
pub fn with_a_layout(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    strategy(cluster, "mixed")?;
    node.take_away()?;
    forget(cluster, node)?;
    let since = version(cluster)?;
    node.start_anew(&OPTIONS)?;
    apply(cluster, &workload("waits", &node.name, "mig-1g.10gb"))?;
    apply(cluster, &workload("wants-all", &node.name, "gpu"))?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    becomes(cluster, node, "node", "{.spec.taints}", "")?;
    passed(cluster, "waits")?;
    let slices = world(node)?.gpus[0].instances.len();
    check(slices == 7, || format!("{slices} slices"))?;
    let life = history(cluster, node, &since)?;
    life.iter().try_for_each(never_whole)?;
    life.iter().try_for_each(tainted_until_ready)?;
    let is_born_tainted = life.first().is_some_and(is_tainted);
    check(is_born_tainted, || "the node was born untainted".to_owned())?;
    let path = "-o=jsonpath={.status.phase}";
    let phase = cluster.kubectl(&["get", "pod", "wants-all", path])?;
    check(phase == "Pending", || {
        format!("the pod for a GPU is {phase}")
    })?;
    delete(cluster, "wants-all")?;
    delete(cluster, "waits")?;
    as_before(cluster, node)
}

/// Makes the API server forget a node whose machine is gone, with its pods.
fn forget(cluster: &Cluster, node: &Node) -> Result<(), Error> {
    cluster.kubectl(&["delete", "node", &node.name, "--timeout=60s"])?;
    let selector = format!("--field-selector=spec.nodeName={}", node.name);
    let words = ["delete", "pods", "--all-namespaces", &selector, "--force"];
    cluster.kubectl(&words).map(|_| ())
}

/// At that time, the node had no whole GPUs, shared or not.
fn never_whole(node: &Value) -> Outcome {
    let capacity = node["status"]["capacity"].as_object();
    let mut names = capacity.into_iter().flat_map(|capacity| capacity.keys());
    let whole = names.find(|name| name.starts_with("nvidia.com/gpu"));
    check(whole.is_none(), || format!("{whole:?} was offered"))
}

/// At that time, the node had the taint or the layout.
fn tainted_until_ready(node: &Value) -> Outcome {
    let state = &node["metadata"]["labels"]["nvidia.com/mig.config.state"];
    check(is_tainted(node) || state == "success", || {
        format!("untainted while the state was {state}")
    })
}

fn is_tainted(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array();
    let mut taints = taints.into_iter().flatten();
    taints.any(|taint| taint["key"] == "slicewright.dev/not-ready")
}
