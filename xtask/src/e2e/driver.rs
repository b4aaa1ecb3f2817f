// SPDX-License-Identifier: Apache-2.0
//! What a node says of itself while it has no driver: while it is replaced, and before it is
//! installed.

use super::steps::{agent, becomes, field, fresh_agent};
use super::{Outcome, check};
use crate::cluster::{Cluster, Node, until};
use crate::error::Error;

/// A deploy label that GPU Operator's driver manager pauses.
const LABEL: &str = "nvidia.com/gpu.deploy.device-plugin";

/// Nothing that the node publishes says that it has a driver while it has none to use.
pub fn replaced(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    says(cluster, node, "True True")?;
    let paused = format!("{LABEL}=paused-for-driver-upgrade");
    cluster.kubectl(&["label", "node", &node.name, &paused])?;
    let told = says(cluster, node, "False False")
        .and_then(|()| agrees(cluster, node, "0"))
        .and_then(|()| misses_its_driver(cluster, node));
    // Also after a failure: other scenarios use the node.
    cluster.kubectl(&["label", "node", &node.name, &format!("{LABEL}-")])?;
    told?;
    says(cluster, node, "True True")?;
    agrees(cluster, node, "1")
}

/// An agent that finds no driver waits for it, says so, and serves once it is there.
pub fn comes_later(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    move_library(node, "", ".away")?;
    let waits = fresh_agent(cluster, node)
        .map_err(super::Failure::from)
        .and_then(|()| says(cluster, node, "False False"))
        .and_then(|()| misses_its_driver(cluster, node))
        .and_then(|()| waits_quietly(cluster, node));
    // Also after a failure: other scenarios use the node.
    move_library(node, ".away", "")?;
    waits?;
    says(cluster, node, "True True")?;
    agrees(cluster, node, "1")
}

/// Gives the driver's library another name, as seen by every process.
fn move_library(node: &Node, from: &str, to: &str) -> Result<(), Error> {
    let path = "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1";
    let words = ["mv", &format!("{path}{from}"), &format!("{path}{to}")];
    node.exec(10, &words).map(|_| ())
}

/// The agent runs, was never started again, and says that it is not ready. No GPU can be had.
fn waits_quietly(cluster: &Cluster, node: &Node) -> Outcome {
    let path = r"{.status.allocatable.nvidia\.com/gpu}";
    Ok(until("an agent that waits, and no GPU", 30, || {
        let [_, restarts, ready] = agent(cluster, node)?;
        let usable = field(cluster, node, "node", path)?;
        let waits = restarts == "0" && ready == "false" && usable == "0";
        Ok(waits.then_some(()))
    })?)
}

fn misses_its_driver(cluster: &Cluster, node: &Node) -> Outcome {
    let finding = field(cluster, node, "gpunode", "{.status.findings[*].code}")?;
    check(finding == "driver-missing", || {
        format!("findings of the GpuNode: {finding:?}")
    })
}

/// Waits until the conditions Ready and DriverReady are these.
fn says(cluster: &Cluster, node: &Node, conditions: &str) -> Outcome {
    let of = |kind: &str| format!("{{.status.conditions[?(@.type=='{kind}')].status}}");
    let path = format!("{} {}", of("Ready"), of("DriverReady"));
    becomes(cluster, node, "gpunode", &path, conditions)
}

/// Waits until the kubelet and the GpuNode both count so many usable GPUs.
fn agrees(cluster: &Cluster, node: &Node, healthy: &str) -> Outcome {
    let path = r"{.status.allocatable.nvidia\.com/gpu}";
    becomes(cluster, node, "node", path, healthy)?;
    let path = "{.status.resources[?(@.name=='nvidia.com/gpu')].healthy}";
    becomes(cluster, node, "gpunode", path, healthy)
}
