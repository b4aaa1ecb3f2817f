// SPDX-License-Identifier: Apache-2.0
//! Layouts change again and again while pods come and go. No slice has two pods, none is taken from
//! a pod that has it; pods that the kubelet refuses are counted.

use serde_json::Value;

use super::pods::apply;
use super::steps::{label, strategy, workload};
use super::{Outcome, check};
use crate::cluster::{Cluster, Node, until};
use crate::error::Error;

/// Changes of layout, where `SLICEWRIGHT_CHANGES` says nothing else.
const CHANGES: usize = 25;
/// The layouts, one after the other, with a resource of each that pods ask for meanwhile.
const LAYOUTS: [(&str, &str); 4] = [
    ("all-balanced", "mig-3g.40gb"),
    ("all-1g.10gb", "mig-1g.10gb"),
    ("all-2g.20gb", "mig-2g.20gb"),
    ("all-3g.40gb", "mig-1g.10gb"),
];
/// Pods that run at the same time.
const PODS: usize = 2;

/// What came of it.
#[derive(Debug, Default)]
struct Tally {
    applied: usize,
    refused: usize,
    pods: usize,
    not_admitted: usize,
}

/// Changes the layout of a node under pods.
pub fn under_pods(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    let given = std::env::var("SLICEWRIGHT_CHANGES").ok();
    let changes = given.and_then(|text| text.parse().ok()).unwrap_or(CHANGES);
    strategy(cluster, "mixed")?;
    let mut tally = Tally::default();
    for change in 0..changes {
        let (layout, resource) = LAYOUTS[change % LAYOUTS.len()];
        // Those that came first make room for the next.
        if change >= PODS {
            end(cluster, &format!("churn-{}", change - PODS), &mut tally)?;
        }
        apply(
            cluster,
            &workload(&format!("churn-{change}"), &node.name, resource),
        )?;
        label(cluster, node, layout)?;
        match settled(cluster, node, layout)?.as_str() {
            "success" => tally.applied += 1,
            _ => tally.refused += 1,
        }
        one_pod_a_slice(cluster)?;
    }
    for pod in changes.saturating_sub(PODS)..changes {
        end(cluster, &format!("churn-{pod}"), &mut tally)?;
    }
    let Tally {
        applied,
        refused,
        pods,
        not_admitted,
    } = tally;
    println!(
        "churn: {changes} changes, {applied} applied, {refused} refused for pods; {pods} pods, \
         {not_admitted} not admitted, 0 slices taken from a pod"
    );
    label(cluster, node, "all-disabled")?;
    settled(cluster, node, "all-disabled")?;
    cluster.kubectl(&["label", "node", &node.name, "nvidia.com/mig.config-"])?;
    strategy(cluster, "single")?;
    check(applied > 0, || "no change was applied".to_owned())
}

/// Waits until the agent has said what became of this very wish.
fn settled(cluster: &Cluster, node: &Node, layout: &str) -> Result<String, Error> {
    let path = "-o=jsonpath={.status.migConfig.wanted} {.status.migConfig.state}";
    until(&format!("{layout} on {}", node.name), 60, || {
        let status = cluster.kubectl(&["get", "gpunode", &node.name, path])?;
        let state = status.strip_prefix(&format!("{layout} "));
        let ended = state.filter(|state| ["success", "failed"].contains(state));
        Ok(ended.map(str::to_owned))
    })
}

/// Ends a pod; it must not have lost what it had.
fn end(cluster: &Cluster, pod: &str, tally: &mut Tally) -> Outcome {
    let status = cluster.kubectl(&["get", "pod", pod, "--output=json"])?;
    let status: Value = serde_json::from_str(&status).unwrap_or_default();
    let not_admitted = status["status"]["reason"] == "UnexpectedAdmissionError";
    let failed = status["status"]["phase"] == "Failed" && !not_admitted;
    let log = match failed {
        true => cluster.kubectl(&["logs", pod]).unwrap_or_default(),
        false => String::new(),
    };
    check(!failed, || format!("pod {pod} lost its slice: {log}"))?;
    tally.pods += 1;
    tally.not_admitted += usize::from(not_admitted);
    let words = ["delete", "pod", pod, "--now", "--wait=false"];
    Ok(cluster.kubectl(&words).map(|_| ())?)
}

/// No slice is named by two pods that run.
fn one_pod_a_slice(cluster: &Cluster) -> Outcome {
    let words = [
        "get",
        "pods",
        "--field-selector=status.phase=Running",
        "--output=name",
    ];
    let mut seen: Vec<String> = Vec::new();
    for pod in cluster
        .kubectl(&words)?
        .lines()
        .filter(|name| name.contains("churn-"))
    {
        let log = cluster.kubectl(&["logs", pod]).unwrap_or_default();
        let devices = log.lines().find_map(|line| line.strip_prefix("Devices: "));
        let Some(device) = devices.map(str::to_owned) else {
            continue;
        };
        check(!seen.contains(&device), || format!("{device} has two pods"))?;
        seen.push(device);
    }
    Ok(())
}
