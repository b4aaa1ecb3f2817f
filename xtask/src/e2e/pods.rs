// SPDX-License-Identifier: Apache-2.0
//! What pods can do: be scheduled, speak, be spoken to, and use their service account. And who may
//! do what: permissions are not looser than on a cluster that people run.

use serde_json::{Value, json};

use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, until};
use crate::error::Error;
use crate::image::{BUSYBOX, KUBECTL, SLICEWRIGHT};

/// A pod on a given node that runs once.
pub fn pod(name: &str, node: &str, image: &str, command: &[&str]) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": name },
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{
                "name": "main",
                "image": image,
                "imagePullPolicy": "Never",
                "command": command,
            }],
        },
    })
}

/// Creates an object or several, or changes them.
pub fn apply(cluster: &Cluster, objects: &Value) -> Result<(), Error> {
    let words = ["apply", "--filename=-"];
    cluster
        .kubectl_with(&words, &objects.to_string())
        .map(|_| ())
}

/// Waits until a pod is in that phase.
pub fn wait_for_phase(cluster: &Cluster, pod: &str, phase: &str) -> Result<(), Error> {
    let condition = format!("--for=jsonpath={{.status.phase}}={phase}");
    let words = ["wait", &condition, &format!("pod/{pod}"), "--timeout=60s"];
    let Err(late) = cluster.kubectl(&words) else {
        return Ok(());
    };
    let status = cluster.kubectl(&["get", "pod", pod, "-o=jsonpath={.status}"]);
    let status = status.unwrap_or_default();
    Err(Error::Cluster(format!("{late}; its status: {status}")))
}

/// Removes a pod and waits for its end.
pub fn delete(cluster: &Cluster, pod: &str) -> Result<(), Error> {
    cluster
        .kubectl(&["delete", "pod", pod, "--now", "--timeout=60s"])
        .map(|_| ())
}

/// On each node.
pub fn logs_and_exec(cluster: &Cluster) -> Outcome {
    for node in cluster.nodes() {
        let pod_name = format!("echo-{}", node.name);
        let script = "echo hello from $HOSTNAME; exec sleep 3600";
        apply(
            cluster,
            &pod(&pod_name, &node.name, BUSYBOX, &["sh", "-c", script]),
        )?;
        wait_for_phase(cluster, &pod_name, "Running")?;
        let logs = cluster.kubectl(&["logs", &pod_name])?;
        check(logs == format!("hello from {pod_name}\n"), || {
            format!("logs: {logs:?}")
        })?;
        let words = ["exec", "--stdin", &pod_name, "--", "tr", "a-z", "A-Z"];
        let answer = cluster.kubectl_with(&words, "loud")?;
        check(answer == "LOUD", || {
            format!("answer of the command: {answer:?}")
        })?;
        delete(cluster, &pod_name)?;
    }
    Ok(())
}

/// The binary finds the libraries of its image.
pub fn slicewright_runs(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0].name;
    let command = ["slicewright", "explain", "in-use"];
    apply(cluster, &pod("explain", node, SLICEWRIGHT, &command))?;
    wait_for_phase(cluster, "explain", "Succeeded")?;
    let logs = cluster.kubectl(&["logs", "explain"])?;
    check(logs.contains("in-use"), || format!("logs: {logs:?}"))?;
    Ok(delete(cluster, "explain")?)
}

/// By way of the service address, with the token and the authority that the kubelet put into the
/// pod; and it may not do more than its role says.
pub fn daemon_set_reads_its_node(cluster: &Cluster) -> Outcome {
    apply(cluster, &reader())?;
    for node in cluster.nodes() {
        let node = &node.name;
        let selector = format!("--field-selector=spec.nodeName={node}");
        let find = ["get", "pods", "-l=app=reader", &selector, "-o=name"];
        let what = format!("a pod of the DaemonSet on {node} that has read its node");
        let pod = until(&what, 60, || {
            let pod = cluster.kubectl(&find)?.trim().to_owned();
            let logs = cluster.kubectl(&["logs", &pod]).unwrap_or_default();
            let read = logs.contains(&format!("node/{node}\n"));
            Ok((read && logs.contains("https://10.96.0.1:443/")).then_some(pod))
        })?;
        let write = [
            "exec", &pod, "--", "kubectl", "label", "node", node, "e2e=1",
        ];
        refused(cluster.kubectl(&write))?;
    }
    let all = [
        "serviceaccount",
        "clusterrole",
        "clusterrolebinding",
        "daemonset",
    ];
    for kind in all {
        cluster.kubectl(&["delete", kind, "reader", "--timeout=60s"])?;
    }
    Ok(())
}

fn reader() -> Value {
    let about = json!({ "name": "reader", "namespace": "default" });
    let rbac = "rbac.authorization.k8s.io";
    let labels = json!({ "app": "reader" });
    let container = json!({
        "name": "main",
        "image": KUBECTL,
        "imagePullPolicy": "Never",
        // At this verbosity it says which address it asks.
        "command": ["kubectl", "get", "node", "$(NODE)", "--watch", "--output=name", "-v=6"],
        "env": [{
            "name": "NODE",
            "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } },
        }],
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": [
        { "apiVersion": "v1", "kind": "ServiceAccount", "metadata": about },
        {
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRole",
            "metadata": about,
            "rules": [{
                "apiGroups": [""],
                "resources": ["nodes"],
                "verbs": ["get", "list", "watch"],
            }],
        },
        {
            "apiVersion": format!("{rbac}/v1"),
            "kind": "ClusterRoleBinding",
            "metadata": about,
            "roleRef": { "apiGroup": rbac, "kind": "ClusterRole", "name": "reader" },
            "subjects": [{ "kind": "ServiceAccount", "name": "reader", "namespace": "default" }],
        },
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": about,
            "spec": {
                "selector": { "matchLabels": labels },
                "template": {
                    "metadata": { "labels": labels },
                    "spec": {
                        "serviceAccountName": "reader",
                        "terminationGracePeriodSeconds": 1,
                        "containers": [container],
                    },
                },
            },
        },
    ]})
}

/// The node authorizer and NodeRestriction are at work.
pub fn kubelet_is_restricted(cluster: &Cluster) -> Outcome {
    let [own, other] = [0, 1].map(|at| cluster.nodes()[at].name.as_str());
    let token = format!("--token={own}-token");
    cluster.kubectl(&[&token, "label", "node", own, "e2e=own"])?;
    cluster.kubectl(&["label", "node", own, "e2e-"])?;
    refused(cluster.kubectl(&[&token, "label", "node", other, "e2e=other"]))
}

/// Holds if the API server has said that it is forbidden.
fn refused(answer: Result<String, Error>) -> Outcome {
    match answer {
        Err(Error::Failed { stderr, .. }) if stderr.contains("forbidden") => Ok(()),
        Err(error) => Err(Failure::Error(error)),
        Ok(answer) => Err(Failure::Wrong(format!("not refused: {answer}"))),
    }
}
