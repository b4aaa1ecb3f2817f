// SPDX-License-Identifier: Apache-2.0
//! What the token of an agent may write, and what not: asked of the API server, with the rights and
//! the admission policies that `slicewright install` prints.
//!
//! The token is that of a pod with the agent's account on a node that nobody serves, so that no
//! agent and no kubelet changes the node meanwhile.

use serde_json::{Value, json};

use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, until};
use crate::error::Error;
use crate::image::BUSYBOX;

/// The node of the token, and the pod that it belongs to.
const OWN: &str = "rbac-own";
/// The account of the agents.
const ACCOUNT: &str = "slicewright-agent";

/// The policies' sentences.
const OWN_ONLY: &str = "may write its own node, its own GpuNode and its own ConfigMap only";
const LABELS: &str = "may change no labels of a node but those that describe its GPUs";
const ANNOTATIONS: &str = "may change no annotations of a node but those below slicewright.dev/";
const METADATA: &str = "may change nothing of a node's metadata but labels and annotations";
const SPEC: &str = "may take its own taint from a node and change nothing else of its spec";
const STATUS: &str = "may take nvidia.com/ names from a node's status and change nothing else";

/// Merge patches of the own node that are refused.
const FOREIGN: &[(&str, &str)] = &[
    (r#"{"metadata":{"labels":{"tier":"gold"}}}"#, LABELS),
    (r#"{"metadata":{"labels":{"pool":"other"}}}"#, LABELS),
    (r#"{"metadata":{"labels":{"pool":null}}}"#, LABELS),
    (
        r#"{"metadata":{"labels":{"nvidia.com/device-plugin.config":"x"}}}"#,
        LABELS,
    ),
    (
        r#"{"metadata":{"labels":{"nvidia.com.evil/gpu.count":"8"}}}"#,
        LABELS,
    ),
    (r#"{"metadata":{"annotations":{"note":"x"}}}"#, ANNOTATIONS),
    (
        r#"{"metadata":{"annotations":{"owner":null}}}"#,
        ANNOTATIONS,
    ),
    (
        r#"{"metadata":{"finalizers":["slicewright.dev/stay"]}}"#,
        METADATA,
    ),
    (r#"{"spec":{"unschedulable":true}}"#, SPEC),
    (r#"{"spec":{"providerID":"other://1"}}"#, SPEC),
    (r#"{"spec":{"podCIDRs":["10.9.0.0/24"]}}"#, SPEC),
    (r#"{"spec":{"taints":null}}"#, SPEC),
    (
        r#"{"spec":{"taints":[{"key":"slicewright.dev/not-ready","effect":"NoExecute"}]}}"#,
        SPEC,
    ),
];

/// Merge patches of the own node's status that are refused.
const FOREIGN_STATUS: &[(&str, &str)] = &[
    (r#"{"status":{"capacity":{"nvidia.com/gone":"8"}}}"#, STATUS),
    (r#"{"status":{"capacity":{"nvidia.com/new":"1"}}}"#, STATUS),
    (r#"{"status":{"capacity":{"cpu":null}}}"#, STATUS),
    (r#"{"status":{"allocatable":{"cpu":"64"}}}"#, STATUS),
    (
        r#"{"status":{"allocatable":{"example.com/fpga":null}}}"#,
        STATUS,
    ),
    (
        r#"{"status":{"conditions":[{"type":"Ready","status":"False"}]}}"#,
        STATUS,
    ),
    (
        r#"{"status":{"addresses":[{"type":"InternalIP","address":"10.0.0.9"}]}}"#,
        STATUS,
    ),
    (r#"{"status":{"declaredFeatures":["E2eForged"]}}"#, STATUS),
    (
        r#"{"status":{"volumesInUse":["kubernetes.io/e2e"]}}"#,
        STATUS,
    ),
    (r#"{"status":{"nodeInfo":{"kubeletVersion":"v9"}}}"#, STATUS),
    (r#"{"metadata":{"labels":{"tier":"gold"}}}"#, LABELS),
];

/// Merge patches of the own node that pass.
const OWN_KEYS: &[&str] = &[
    r#"{"metadata":{"labels":{"nvidia.com/gpu.count":"8","nvidia.com/mig-1g.10gb.count":"7"}}}"#,
    r#"{"metadata":{"labels":{"nvidia.com/gpu.count":null,"nvidia.com/mig.config.state":"failed"}}}"#,
    r#"{"metadata":{"labels":{"nvidia.com/gpu.deploy.dcgm":"paused"}}}"#,
    r#"{"metadata":{"annotations":{"slicewright.dev/mig-config-reason":"e2e"}}}"#,
    r#"{"metadata":{"annotations":{"slicewright.dev/mig-config-reason":null}}}"#,
];

/// A client with a token of the account.
pub struct Bearer<'a> {
    cluster: &'a Cluster,
    token: String,
}

impl Bearer<'_> {
    fn kubectl(&self, words: &[&str], input: &str) -> Result<String, Error> {
        let mut all = vec![self.token.as_str()];
        all.extend(words);
        self.cluster.kubectl_with(&all, input)
    }

    /// Holds if the request fails with that sentence.
    pub fn refused(&self, words: &[&str], input: &str, sentence: &str) -> Outcome {
        let about = || format!("{} {input}", words.join(" "));
        match self.kubectl(words, input) {
            Err(Error::Failed { stderr, .. }) => check(stderr.contains(sentence), || {
                format!("{}: refused otherwise: {stderr}", about())
            }),
            Err(error) => Err(Failure::Error(error)),
            Ok(_) => Err(Failure::Wrong(format!("{}: not refused", about()))),
        }
    }

    /// Writes an object as the agent does: server-side, without reading it first.
    fn apply(&self, object: &Value, subresource: &[&str]) -> Result<String, Error> {
        let words = [&APPLY[..], subresource].concat();
        self.kubectl(&words, &object.to_string())
    }

    fn apply_refused(&self, object: &Value, sentence: &str) -> Outcome {
        self.refused(&APPLY, &object.to_string(), sentence)
    }
}

const APPLY: [&str; 5] = [
    "apply",
    "--server-side",
    "--force-conflicts",
    "--validate=false",
    "--filename=-",
];

/// An agent writes what it has to, and nothing else, whatever it asks for.
pub fn agent_is_kept_to_its_node(cluster: &Cluster) -> Outcome {
    let outcome = policies_are_sound(cluster)
        .and_then(|()| stand_in(cluster))
        .and_then(|agent| {
            other_objects(cluster, &agent)?;
            own_node(cluster, &agent)?;
            rights(&agent)?;
            unbound(cluster)
        });
    // What a failed scenario leaves would be in the way of the next.
    let cleaned = clean(cluster);
    outcome.and(cleaned)
}

/// The API server's type checker has looked at every policy and found nothing.
fn policies_are_sound(cluster: &Cluster) -> Outcome {
    let words = ["get", "validatingadmissionpolicies", "-o=json"];
    let checked = until("type checks of the policies", 30, || {
        let list: Value = serde_json::from_str(&cluster.kubectl(&words)?).unwrap_or_default();
        let mut policies = list["items"].as_array().cloned().unwrap_or_default();
        policies.retain(|it| it["spec"].to_string().contains(ACCOUNT));
        let is_checked =
            |it: &Value| it["metadata"]["generation"] == it["status"]["observedGeneration"];
        let all = !policies.is_empty() && policies.iter().all(is_checked);
        Ok(all.then_some(policies))
    })?;
    for policy in checked {
        let warnings = &policy["status"]["typeChecking"]["expressionWarnings"];
        check(warnings.is_null(), || {
            format!("policy {}: {warnings}", policy["metadata"]["name"])
        })?;
    }
    Ok(())
}

/// A node that nobody serves, a pod of the agents' account on it, and that pod's token.
fn stand_in(cluster: &Cluster) -> Result<Bearer<'_>, Failure> {
    let now = "2026-01-01T00:00:00Z";
    let ready = json!([{
        "type": "Ready", "status": "True", "reason": "E2e", "message": "",
        "lastHeartbeatTime": now, "lastTransitionTime": now,
    }]);
    let node = json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": OWN,
            "labels": { "pool": "e2e" },
            "annotations": { "owner": "e2e" },
        },
        "spec": { "taints": [
            { "key": "e2e", "value": "foreign", "effect": "NoSchedule" },
            { "key": "slicewright.dev/not-ready", "effect": "NoSchedule" },
        ] },
    });
    let amounts = json!({ "cpu": "4", "nvidia.com/gone": "2", "example.com/fpga": "1" });
    let status = json!({ "status": {
        "conditions": ready, "capacity": amounts, "allocatable": amounts,
    } });
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": OWN, "namespace": NAMESPACE },
        "spec": {
            "nodeName": OWN,
            "serviceAccountName": ACCOUNT,
            "tolerations": [{ "operator": "Exists" }],
            "containers": [{ "name": "main", "image": BUSYBOX }],
        },
    });
    cluster.kubectl_with(&["create", "--filename=-"], &node.to_string())?;
    let status = format!("--patch={status}");
    cluster.kubectl(&["patch", "node", OWN, "--subresource=status", &status])?;
    cluster.kubectl_with(&["create", "--filename=-"], &pod.to_string())?;
    let namespace = format!("--namespace={NAMESPACE}");
    // kubectl reads what it patches; the agent does not.
    let role = [
        "create",
        "clusterrole",
        OWN,
        "--verb=get",
        "--resource=nodes/status",
    ];
    cluster.kubectl(&role)?;
    let role = format!("--clusterrole={OWN}");
    let account = format!("--serviceaccount={NAMESPACE}:{ACCOUNT}");
    cluster.kubectl(&["create", "clusterrolebinding", OWN, &role, &account])?;
    let uid = cluster.kubectl(&["get", "pod", OWN, &namespace, "-o=jsonpath={.metadata.uid}"])?;
    let uid = format!("--bound-object-uid={uid}");
    let bound = ["--bound-object-kind=Pod", "--bound-object-name", OWN, &uid];
    token(cluster, ACCOUNT, &bound)
}

/// A token of an account, bound to what the words of `kubectl create token` say.
pub fn token<'a>(
    cluster: &'a Cluster,
    account: &str,
    bound: &[&str],
) -> Result<Bearer<'a>, Failure> {
    let namespace = format!("--namespace={NAMESPACE}");
    let words = [&["create", "token", account, &namespace][..], bound].concat();
    let token = cluster.kubectl(&words)?;
    let token = format!("--token={}", token.trim());
    Ok(Bearer { cluster, token })
}

/// Nodes, GpuNodes and ConfigMaps: of others not, its own it may.
fn other_objects(cluster: &Cluster, agent: &Bearer<'_>) -> Outcome {
    let other = cluster.nodes()[0].name.as_str();
    let label = ["label", "node", other, "slicewright.dev/e2e=1"];
    agent.refused(&label, "", OWN_ONLY)?;
    let status = [
        "patch",
        "node",
        other,
        "--subresource=status",
        "--type=merge",
    ];
    let gone = r#"--patch={"metadata":{"annotations":{"slicewright.dev/e2e":"1"}}}"#;
    agent.refused(&[&status[..], &[gone]].concat(), "", OWN_ONLY)?;
    agent.apply_refused(&gpu_node(other), OWN_ONLY)?;
    agent.apply_refused(&config_map(&format!("{other}-mig-config")), OWN_ONLY)?;
    agent.apply_refused(&config_map("e2e-custom"), OWN_ONLY)?;
    agent.apply(&gpu_node(OWN), &[])?;
    agent.apply(&gpu_node(OWN), &["--subresource=status"])?;
    agent.apply(&config_map(&format!("{OWN}-mig-config")), &[])?;
    let written = cluster.kubectl(&["get", "gpunode", OWN, "-o=jsonpath={.status.sharing}"])?;
    check(written == "e2e", || format!("GpuNode: sharing {written:?}"))
}

fn gpu_node(name: &str) -> Value {
    json!({
        "apiVersion": "slicewright.dev/v1alpha1",
        "kind": "GpuNode",
        "metadata": { "name": name },
        "spec": {},
        "status": { "sharing": "e2e" },
    })
}

fn config_map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "data": { "config.yaml": "version: v1" },
    })
}

/// Its own keys, its taint, names of resources that are gone; nothing else.
fn own_node(cluster: &Cluster, agent: &Bearer<'_>) -> Outcome {
    let patch = ["patch", "node", OWN, "--type=merge"];
    let status = [&patch[..], &["--subresource=status"]].concat();
    for (change, sentence) in FOREIGN {
        let change = format!("--patch={change}");
        agent.refused(&[&patch[..], &[&change]].concat(), "", sentence)?;
    }
    for (change, sentence) in FOREIGN_STATUS {
        let change = format!("--patch={change}");
        agent.refused(&[&status[..], &[&change]].concat(), "", sentence)?;
    }
    for change in OWN_KEYS {
        let change = format!("--patch={change}");
        agent.kubectl(&[&patch[..], &[&change]].concat(), "")?;
    }
    let gone = r#"{"capacity":{"nvidia.com/gone":null},"allocatable":{"nvidia.com/gone":null}}"#;
    let gone = format!(r#"--patch={{"status":{gone}}}"#);
    agent.kubectl(&[&status[..], &[&gone]].concat(), "")?;
    let show = "-o=jsonpath={.status.capacity} {.metadata.labels}";
    let shown = cluster.kubectl(&["get", "node", OWN, show])?;
    let as_wanted = !shown.contains("nvidia.com/gone")
        && shown.contains(r#""example.com/fpga":"1""#)
        && shown.contains(r#""nvidia.com/mig.config.state":"failed""#)
        && !shown.contains("nvidia.com/gpu.count");
    check(as_wanted, || {
        format!("the node after its agent's writes: {shown}")
    })?;
    // Again, as controllers of nodes may add taints of their own meanwhile.
    until("its taint to be taken", 10, || {
        let taints = ["get", "node", OWN, "-o=jsonpath={.spec.taints[*].key}"];
        let taints = cluster.kubectl(&taints)?;
        let Some(place) = taints
            .split(' ')
            .position(|key| key == "slicewright.dev/not-ready")
        else {
            return Ok(taints.contains("e2e").then_some(()));
        };
        let change = format!(r#"--patch=[{{"op":"remove","path":"/spec/taints/{place}"}}]"#);
        let _ = agent.kubectl(&["patch", "node", OWN, "--type=json", &change], "");
        Ok(None)
    })?;
    Ok(())
}

/// What RBAC refuses.
fn rights(agent: &Bearer<'_>) -> Outcome {
    let namespace = format!("--namespace={NAMESPACE}");
    let refused: &[(&[&str], &str)] = &[
        (&["delete", "node", OWN], "cannot delete resource \"nodes\""),
        (
            &["delete", "pod", OWN, &namespace],
            "cannot delete resource \"pods\"",
        ),
        (
            &["get", "secrets", &namespace],
            "cannot list resource \"secrets\"",
        ),
        (
            &["get", "configmaps", "-n=kube-system"],
            "cannot list resource \"configmaps\"",
        ),
        (
            &["delete", "configmaps", "--all", &namespace],
            "cannot delete resource \"configmaps\"",
        ),
        (
            &["delete", "gpunodes", "--all"],
            "cannot list resource \"gpunodes\"",
        ),
        (
            &["label", "clusterpolicy", "cluster-policy", "e2e=1"],
            "cannot patch resource \"clusterpolicies\"",
        ),
        (
            &["create", "token", ACCOUNT, &namespace],
            "serviceaccounts/token",
        ),
    ];
    for (words, sentence) in refused {
        agent.refused(words, "", sentence)?;
    }
    Ok(())
}

/// A token of the account that no pod has says no node, and may write none.
fn unbound(cluster: &Cluster) -> Outcome {
    let bearer = token(cluster, ACCOUNT, &[])?;
    bearer.refused(
        &["label", "node", OWN, "slicewright.dev/e2e=1"],
        "",
        OWN_ONLY,
    )
}

fn clean(cluster: &Cluster) -> Outcome {
    let namespace = format!("--namespace={NAMESPACE}");
    let gone = ["--ignore-not-found", "--timeout=60s"];
    let map = format!("{OWN}-mig-config");
    // Nobody is there to end the pod.
    let pod = [
        "delete",
        "pod",
        OWN,
        &namespace,
        "--force",
        "--grace-period=0",
    ];
    let words = [
        &pod[..],
        &["delete", "configmap", &map, &namespace],
        &["delete", "gpunode", OWN],
        &["delete", "node", OWN],
        &["delete", "clusterrolebinding", OWN],
        &["delete", "clusterrole", OWN],
    ];
    for words in words {
        cluster.kubectl(&[words, &gone[..]].concat())?;
    }
    Ok(())
}
