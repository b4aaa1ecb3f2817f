// SPDX-License-Identifier: Apache-2.0
//! NVIDIA's device plugin on a node that has the agent: the agent offers nothing, says who is there
//! and how to hand over, and serves once it is gone.

use std::time::Duration;

use deviceplugin::{Offer, Plugins, Sockets};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::plugin::{COUNT, resource};
use super::pods::{apply, delete, pod, wait_for_phase};
use super::steps::{agent, becomes, field, fresh_agent, passed, unharmed, workload};
use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, Node, until};
use crate::image::BUSYBOX;

/// What GPU Operator calls it, and the label that it selects nodes with.
const THEIRS: &str = "nvidia-device-plugin-daemonset";
const DEPLOY: &str = "nvidia.com/gpu.deploy.device-plugin";
/// The kubelet's count of GPUs that can be had.
const USABLE: &str = r"{.status.allocatable.nvidia\.com/gpu}";
/// Whether the node is ready, in its GpuNode.
const READY: &str = "{.status.conditions[?(@.type=='Ready')].status}";

/// Comes to a node, serves it, and hands it over as the agent says.
pub fn are_not_fought(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    becomes(cluster, node, "node", USABLE, "1")?;
    apply(cluster, &workload("before", &node.name, "gpu"))?;
    passed(cluster, "before")?;
    cluster.kubectl(&["label", "node", &node.name, &format!("{DEPLOY}=true")])?;
    apply(cluster, &their_pods())?;
    let served = says_who(cluster, node)
        .and_then(|()| is_content(cluster, node))
        .and_then(|()| theirs_serves(cluster, node));
    let asked = field(cluster, node, "gpunode", "{.status.findings[0].message}")?;
    let given = format!("kubectl label node {} {DEPLOY}=false", node.name);
    // Also after a failure: others use the node.
    let labels = format!("{DEPLOY}=false");
    cluster.kubectl(&["label", "node", &node.name, &labels, "--overwrite"])?;
    served?;
    check(asked.contains(&given), || format!("not told: {asked}"))?;
    becomes(cluster, node, "gpunode", READY, "True")?;
    becomes(cluster, node, "node", USABLE, "1")?;
    unharmed(cluster, "before")?;
    delete(cluster, "before")?;
    let name = format!("{THEIRS}-of-others");
    cluster.kubectl(&["delete", "daemonset", &name, "-n", NAMESPACE])?;
    cluster.kubectl(&["label", "node", &node.name, &format!("{DEPLOY}-")])?;
    Ok(())
}

/// The node says why nothing of ours can be had, where people look.
fn says_who(cluster: &Cluster, node: &Node) -> Outcome {
    becomes(cluster, node, "node", USABLE, "0")?;
    becomes(cluster, node, "gpunode", READY, "False")?;
    let code = field(cluster, node, "gpunode", "{.status.findings[*].code}")?;
    check(code == "served-by-others", || format!("finding {code:?}"))?;
    let events = [
        "get",
        "events",
        "--field-selector=reason=ServedByOthers",
        &format!(
            "-o=jsonpath={{.items[?(@.involvedObject.name=='{}')].message}}",
            node.name
        ),
    ];
    let told = cluster.kubectl(&events)?;
    let pod = format!("pod {NAMESPACE}/{THEIRS}-of-others-");
    check(told.contains(&pod), || format!("told in events: {told:?}"))
}

/// An agent that finds them when it starts is ready, or a rollout would stop at this node.
fn is_content(cluster: &Cluster, node: &Node) -> Outcome {
    let [before, ..] = agent(cluster, node)?;
    fresh_agent(cluster, node)?;
    Ok(until("a ready agent beside others", 30, || {
        let [uid, _, ready] = agent(cluster, node)?;
        Ok((uid != before && ready == "true").then_some(()))
    })?)
}

/// A plugin that serves the same name on the same socket is left alone: the pod that asks for a
/// device gets one of its.
fn theirs_serves(cluster: &Cluster, node: &Node) -> Outcome {
    let runtime = Runtime::new().map_err(|error| Failure::Wrong(error.to_string()))?;
    let folder = node.root().join("var/lib/kubelet/device-plugins");
    let kubelet = folder.join("kubelet.sock");
    let plugins = Plugins::start(Sockets::unix(), folder, Some(kubelet));
    let gpus = resource("nvidia.com/gpu");
    let ids: Vec<String> = gpus.devices.iter().map(|it| it.id.clone()).collect();
    let guard = runtime.enter();
    plugins.offer(Offer {
        resources: vec![gpus],
        ..Offer::default()
    });
    drop(guard);
    let listed = runtime.block_on(plugins.wait_listed(Duration::from_secs(30)));
    let got = guest(cluster, node);
    let still = plugins.status().iter().all(|plugin| plugin.registered);
    runtime.block_on(plugins.stop());
    check(listed && still, || {
        "their plugin was not left alone".to_owned()
    })?;
    let device = got?;
    check(ids.contains(&device), || format!("the pod got {device:?}"))
}

/// What a pod is given that asks for a GPU.
fn guest(cluster: &Cluster, node: &Node) -> Result<String, Failure> {
    becomes(cluster, node, "node", USABLE, &COUNT.to_string())?;
    let command = ["sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES; exec sleep 3600"];
    let mut guest = pod("guest", &node.name, BUSYBOX, &command);
    guest["spec"]["containers"][0]["resources"] = json!({ "limits": { "nvidia.com/gpu": "1" } });
    apply(cluster, &guest)?;
    wait_for_phase(cluster, "guest", "Running")?;
    let devices = cluster.kubectl(&["logs", "guest"])?;
    delete(cluster, "guest")?;
    Ok(devices.trim().to_owned())
}

/// Pods as GPU Operator has them for the device plugin, as far as others see them.
fn their_pods() -> Value {
    let labels = json!({ "app": THEIRS });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": format!("{THEIRS}-of-others"), "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "nodeSelector": { (DEPLOY): "true" },
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "nvidia-device-plugin",
                        "image": BUSYBOX,
                        "imagePullPolicy": "Never",
                        "command": ["sleep", "3600"],
                    }],
                },
            },
        },
    })
}
