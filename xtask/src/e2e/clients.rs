// SPDX-License-Identifier: Apache-2.0
//! Programs of others that keep GPUs open, by the example of the DCGM exporter and of a third party's:
//! away while a layout changes, there again after, and left alone as long as nothing changes.

use serde_json::{Value, json};

use super::pods::{apply, delete};
use super::steps::{
    as_before, becomes, fault, field, fresh_agent, history, label, passed, settled, strategy,
    struck, version, workload, world,
};
use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, Node, until};
use crate::error::Error;
use crate::image::BUSYBOX;

/// The label that its DaemonSet selects nodes with, and what it is while it is paused.
const DEPLOY: &str = "nvidia.com/gpu.deploy.dcgm-exporter";
const PAUSED: &str = "paused-for-mig-change";
/// The same label for a JSON path.
const VALUE: &str = r"{.metadata.labels.nvidia\.com/gpu\.deploy\.dcgm-exporter}";

/// A DaemonSet that keeps GPUs open.
struct Client {
    /// The label that it selects nodes with.
    deploy: &'static str,
    /// Its name, and the `app` of its pods.
    app: &'static str,
    namespace: &'static str,
}

const EXPORTER: Client = Client {
    deploy: DEPLOY,
    app: "nvidia-dcgm-exporter",
    namespace: NAMESPACE,
};

/// Nobody knows it by its name.
const PROBE: Client = Client {
    deploy: "nvidia.com/gpu.deploy.client",
    app: "probe-of-others",
    namespace: "default",
};

/// Paused for a change, restored after it, and after an agent that died in one; otherwise left
/// alone.
pub fn paused_for_a_change(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    strategy(cluster, "mixed")?;
    let clients = [EXPORTER, PROBE];
    for client in &clients {
        let wanted = format!("{}=true", client.deploy);
        cluster.kubectl(&["label", "node", &node.name, &wanted])?;
        apply(cluster, &client.daemon_set())?;
    }
    let outcome = changes(cluster, node);
    // Also after a failure: labels and pods would be in the way of others.
    fault(node, "clear")?;
    for client in &clients {
        let namespace = format!("--namespace={}", client.namespace);
        cluster.kubectl(&["delete", "daemonset", client.app, &namespace])?;
        let removed = format!("{}-", client.deploy);
        cluster.kubectl(&["label", "node", &node.name, &removed])?;
    }
    outcome?;
    as_before(cluster, node)
}

fn changes(cluster: &Cluster, node: &Node) -> Outcome {
    let first = EXPORTER.runs(cluster, node)?;
    let others = PROBE.runs(cluster, node)?;
    let since = version(cluster)?;
    label(cluster, node, "all-balanced")?;
    away_before_anything_changes(cluster, node, &[(EXPORTER, &first), (PROBE, &others)])?;
    settled(cluster, node, "all-balanced", "mig-1g.10gb", 2)?;
    PROBE.runs(cluster, node)?;
    let second = EXPORTER.runs(cluster, node)?;
    check(first != second, || "the exporter was not ended".to_owned())?;
    values(cluster, node, &since, &["true", PAUSED, "true"])?;

    let since = version(cluster)?;
    nothing_changes(cluster, node)?;
    values(cluster, node, &since, &["true"])?;
    let third = EXPORTER.runs(cluster, node)?;
    check(second == third, || "the exporter was ended".to_owned())?;

    fault(node, "kill-after destroy-gi gpu=0 nth=1")?;
    label(cluster, node, "all-1g.10gb")?;
    struck(node, "an agent that dies in a change")?;
    let left = field(cluster, node, "node", VALUE)?;
    check(left == PAUSED, || format!("a dead agent left {left:?}"))?;
    fresh_agent(cluster, node)?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    becomes(cluster, node, "node", VALUE, "true")?;
    EXPORTER.runs(cluster, node).map(|_| ())
}

/// As long as one of these pods is there, the hardware is as it was.
fn away_before_anything_changes(
    cluster: &Cluster,
    node: &Node,
    pods: &[(Client, &str)],
) -> Outcome {
    let before = world(node)?.gpus.clone();
    let mut early = false;
    until("the end of the clients", 60, || {
        let now = world(node)?;
        let mut is_there = false;
        for (client, pod) in pods {
            is_there |= client.pods(cluster, node)?.contains(pod);
        }
        early |= is_there && now.gpus != before;
        Ok((!is_there).then_some(()))
    })?;
    check(!early, || "the hardware changed under a client".to_owned())
}

/// What asks for no change of the hardware, or for one that is refused.
fn nothing_changes(cluster: &Cluster, node: &Node) -> Outcome {
    fresh_agent(cluster, node)?;
    label(cluster, node, "no-such-config")?;
    state(cluster, node, "no-such-config failed")?;
    label(cluster, node, "all-balanced")?;
    state(cluster, node, "all-balanced success")?;
    apply(cluster, &workload("in-the-way", &node.name, "mig-3g.40gb"))?;
    passed(cluster, "in-the-way")?;
    label(cluster, node, "all-1g.10gb")?;
    state(cluster, node, "all-1g.10gb failed")?;
    label(cluster, node, "all-balanced")?;
    state(cluster, node, "all-balanced success")?;
    Ok(delete(cluster, "in-the-way")?)
}

/// Waits until the agent has said that of this very wish.
fn state(cluster: &Cluster, node: &Node, wanted: &str) -> Outcome {
    let path = "{.status.migConfig.wanted} {.status.migConfig.state}";
    becomes(cluster, node, "gpunode", path, wanted)
}

/// Checks which values the label had after that version, each as often as it was set.
fn values(cluster: &Cluster, node: &Node, since: &str, expected: &[&str]) -> Outcome {
    let history = history(cluster, node, since)?;
    let value = |node: &Value| {
        node["metadata"]["labels"][DEPLOY]
            .as_str()
            .map(str::to_owned)
    };
    let mut seen: Vec<String> = history.iter().filter_map(value).collect();
    seen.dedup();
    check(seen == expected, || {
        format!("{DEPLOY} was {seen:?}, expected {expected:?}")
    })
}

impl Client {
    /// Waits until one pod of it is on the node and runs; its UID.
    fn runs(&self, cluster: &Cluster, node: &Node) -> Result<String, Failure> {
        let what = format!("{} on {}", self.app, node.name);
        let running = until(&what, 60, || {
            let pods = self.pods(cluster, node)?;
            let running = pods.strip_suffix(" Running\n");
            Ok(running.filter(|uid| !uid.contains('\n')).map(str::to_owned))
        });
        running.map_err(Failure::from)
    }

    /// Its pods on the node, each as a line with UID and phase.
    fn pods(&self, cluster: &Cluster, node: &Node) -> Result<String, Error> {
        cluster.kubectl(&[
            "get",
            "pods",
            &format!("--namespace={}", self.namespace),
            &format!("--field-selector=spec.nodeName={}", node.name),
            &format!("--selector=app={}", self.app),
            "-o=jsonpath={range .items[*]}{.metadata.uid} {.status.phase}{'\\n'}{end}",
        ])
    }

    /// As GPU Operator has it for the DCGM exporter, as far as others see it.
    fn daemon_set(&self) -> Value {
        let labels = json!({ "app": self.app });
        // It takes its time to end.
        let script = "trap 'sleep 1; exit' TERM; sleep 3600 & wait";
        json!({
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": { "name": self.app, "namespace": self.namespace },
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "nodeSelector": { (self.deploy): "true" },
                        "containers": [{
                            "name": "main",
                            "image": BUSYBOX,
                            "imagePullPolicy": "Never",
                            "command": ["sh", "-c", script],
                        }],
                    },
                },
            },
        })
    }
}
