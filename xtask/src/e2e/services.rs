// SPDX-License-Identifier: Apache-2.0
//! Services of the node that keep GPUs open, by the example of DCGM under systemd.

use super::steps::{as_before, fault, fresh_agent, label, settled, strategy, struck};
use super::{Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, Node};
use crate::error::Error;

const SERVICE: &str = "nvidia-dcgm.service";
const ALLOWED: &str = "WITH_SHUTDOWN_HOST_GPU_CLIENTS";

/// Stopped for a change where that is allowed, and started after it, also where the agent died in it.
pub fn stopped_for_a_change(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    let begin = format!("mkdir -p /run/units; : > /run/units/{SERVICE}; : > /run/systemctl.log");
    node.exec(10, &["sh", "-c", &begin])?;
    strategy(cluster, "mixed")?;
    let outcome = allow(cluster, &format!("{ALLOWED}=true"))
        .map_err(Into::into)
        .and_then(|()| changes(cluster, node));
    // Also after a failure: the agents of other scenarios stop nothing.
    fault(node, "clear")?;
    allow(cluster, &format!("{ALLOWED}-"))?;
    outcome?;
    as_before(cluster, node)
}

fn changes(cluster: &Cluster, node: &Node) -> Outcome {
    label(cluster, node, "all-balanced")?;
    settled(cluster, node, "all-balanced", "mig-1g.10gb", 2)?;
    did(node, &["stop", "start"])?;
    fault(node, "kill-after destroy-gi gpu=0 nth=1")?;
    label(cluster, node, "all-1g.10gb")?;
    struck(node, "an agent that dies in a change")?;
    fresh_agent(cluster, node)?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    let log = node.exec(10, &["cat", "/run/systemctl.log"])?;
    check(
        log.trim_end().ends_with(&format!("start {SERVICE}")),
        || format!("the service is not started at the end: {log}"),
    )
}

/// Checks what was done to the service, and to no other.
fn did(node: &Node, verbs: &[&str]) -> Outcome {
    let log = node.exec(10, &["cat", "/run/systemctl.log"])?;
    let asked = |line: &&str| !line.starts_with("is-active");
    let lines: Vec<&str> = log.lines().filter(asked).collect();
    let expected: Vec<String> = verbs
        .iter()
        .map(|verb| format!("{verb} {SERVICE}"))
        .collect();
    check(lines == expected, || format!("done was {lines:?}"))
}

/// Sets or removes a variable of all agents.
fn allow(cluster: &Cluster, variable: &str) -> Result<(), Error> {
    let set = "daemonset/nvidia-device-plugin-daemonset";
    cluster.kubectl(&["set", "env", "-n", NAMESPACE, set, variable])?;
    let words = ["rollout", "status", "-n", NAMESPACE, set, "--timeout=100s"];
    cluster.kubectl(&words).map(|_| ())
}
