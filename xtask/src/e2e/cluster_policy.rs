// SPDX-License-Identifier: Apache-2.0
//! ClusterPolicy: created where the kind is not there, never changed where it is; and what people
//! patch in it.

use serde_json::{Value, json};

use super::rbac::token;
use super::{Outcome, check};
use crate::cluster::{Cluster, NAMESPACE, printed};
use crate::error::Error;

/// Account of the job, and start of its name.
const JOB: &str = "slicewright-cluster-policy";
/// Name of the kind's definition.
const KIND: &str = "customresourcedefinition/clusterpolicies.nvidia.com";
/// The object.
const OBJECT: [&str; 2] = ["clusterpolicy", "cluster-policy"];

/// What people type (`kubectl patch clusterpolicy cluster-policy ...`), and what is there then.
const PATCHES: &[(&str, &str, &str, &str)] = &[
    (
        "--type=json",
        r#"[{"op":"replace","path":"/spec/mig/strategy","value":"mixed"}]"#,
        "/spec/mig/strategy",
        "mixed",
    ),
    (
        "--type=json",
        r#"[{"op":"replace","path":"/spec/migManager/config/name","value":"custom-mig-config"}]"#,
        "/spec/migManager/config/name",
        "custom-mig-config",
    ),
    (
        "--type=merge",
        r#"{"spec":{"devicePlugin":{"config":{"name":"gpu-sharing-config"}}}}"#,
        "/spec/devicePlugin/config/name",
        "gpu-sharing-config",
    ),
    // Fields of GPU Operator that nothing here looks at.
    (
        "--type=merge",
        r#"{"spec":{"driver":{"enabled":true,"upgradePolicy":{"autoUpgrade":true,"drain":{"timeoutSeconds":300}},"version":"580.95"},"dcgmExporter":{"env":[{"name":"DCGM_EXPORTER_LISTEN","value":":9400"}]},"daemonsets":{"tolerations":[{"key":"gpu"}]},"toolkit":{"version":"v1.18"}}}"#,
        "/spec/toolkit/version",
        "v1.18",
    ),
    (
        "--type=json",
        r#"[{"op":"add","path":"/spec/cdi","value":{"enabled":true,"mode":"x"}}]"#,
        "/spec/cdi/mode",
        "x",
    ),
];

/// On a cluster without the kind, on one with ours, and on one with another's.
pub fn never_changed(cluster: &Cluster) -> Outcome {
    run_job(cluster)?;
    let before = object(cluster)?;
    let outcome = patches(cluster)
        .and_then(|()| rights(cluster))
        .and_then(|()| again(cluster))
        .and_then(|()| anothers(cluster));
    // Other scenarios need ours, as it was.
    cluster.kubectl(&["delete", KIND, "--ignore-not-found", "--timeout=60s"])?;
    run_job(cluster)?;
    let spec = json!([{ "op": "replace", "path": "/spec", "value": before["spec"] }]);
    patch(cluster, "--type=json", &spec.to_string())?;
    outcome
}

/// Runs the job of what `slicewright install` prints, from the start; what it says.
fn run_job(cluster: &Cluster) -> Result<String, Error> {
    let namespace = format!("--namespace={NAMESPACE}");
    let jobs = "--selector=app.kubernetes.io/name=slicewright";
    // A finished job does not run again.
    let words = ["delete", "job", jobs, &namespace, "--timeout=60s"];
    cluster.kubectl(&words)?;
    let manifest = printed()?;
    let documents = manifest.split("---\n");
    let documents = documents.filter(|it| it.contains(JOB) || it.contains("kind: Namespace"));
    cluster.apply(&documents.collect::<Vec<_>>().join("---\n"))?;
    let done = ["wait", "job", jobs, &namespace, "--for=condition=complete"];
    cluster.kubectl(&[&done[..], &["--timeout=100s"]].concat())?;
    let pods = "--selector=app.kubernetes.io/component=cluster-policy";
    cluster.kubectl(&["logs", pods, &namespace])
}

fn object(cluster: &Cluster) -> Result<Value, Error> {
    let shown = cluster.kubectl(&[&["get"], &OBJECT[..], &["--output=json"]].concat())?;
    Ok(serde_json::from_str(&shown).unwrap_or_default())
}

fn patch(cluster: &Cluster, kind: &str, patch: &str) -> Result<String, Error> {
    let patch = format!("--patch={patch}");
    cluster.kubectl(&[&["patch"], &OBJECT[..], &[kind, &patch]].concat())
}

/// What people type works, and every field is kept.
fn patches(cluster: &Cluster) -> Outcome {
    for (kind, text, _, _) in PATCHES {
        patch(cluster, kind, text)?;
    }
    let there = object(cluster)?;
    for (_, _, path, value) in PATCHES {
        let found = there.pointer(path);
        check(found.and_then(Value::as_str) == Some(value), || {
            format!("ClusterPolicy has {found:?} at {path}, not {value}")
        })?;
    }
    let deep = there.pointer("/spec/driver/upgradePolicy/drain/timeoutSeconds");
    check(deep == Some(&json!(300)), || {
        format!("a field that nobody here knows became {deep:?}")
    })
}

/// The job's account creates ClusterPolicy and nothing else, and changes nothing.
fn rights(cluster: &Cluster) -> Outcome {
    let job = token(cluster, JOB, &[])?;
    let label = [&["label"], &OBJECT[..], &["e2e=1"]].concat();
    job.refused(&label, "", "cannot get resource")?;
    job.refused(&["delete", KIND], "", "cannot delete resource")?;
    let other = definition("e2e.example.com", "e2e").to_string();
    let create = ["create", "--validate=false", "--filename=-"];
    let sentence = "the job of the installation may create ClusterPolicy only";
    job.refused(&create, &other, sentence)
}

/// A second installation leaves ours as people have made it.
fn again(cluster: &Cluster) -> Outcome {
    let before = object(cluster)?;
    let says = run_job(cluster)?;
    check(says == "ClusterPolicy is there.\n", || {
        format!("the job says {says:?}")
    })?;
    let after = object(cluster)?;
    check(before == after, || format!("{before} became {after}"))
}

/// Another's kind stays as it is to the last byte, with an object and without.
fn anothers(cluster: &Cluster) -> Outcome {
    cluster.kubectl(&["delete", KIND, "--timeout=60s"])?;
    let kind = definition("nvidia.com", "clusterpolicies");
    cluster.apply(&kind.to_string())?;
    let established = ["wait", KIND, "--for=condition=Established", "--timeout=60s"];
    cluster.kubectl(&established)?;
    let definition = || cluster.kubectl(&["get", KIND, "--output=json"]);
    let before = definition()?;
    let says = run_job(cluster)?;
    check(says.contains("left as it is"), || {
        format!("the job says {says:?}")
    })?;
    let none = cluster.kubectl(&["get", "clusterpolicies", "--output=name"])?;
    check(none.is_empty(), || format!("{none} was created"))?;
    let object = json!({
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": { "name": "cluster-policy" },
        "spec": { "operator": { "defaultRuntime": "containerd" }, "mig": { "strategy": "none" } },
    });
    // A new kind is served a moment after it is established.
    cluster.apply(&object.to_string())?;
    let made = self::object(cluster)?;
    run_job(cluster)?;
    let (after, object) = (definition()?, self::object(cluster)?);
    check(before == after, || format!("{before}\nbecame\n{after}"))?;
    check(made == object, || format!("{made}\nbecame\n{object}"))
}

/// A kind with fields that ours has not.
fn definition(group: &str, plural: &str) -> Value {
    let text = json!({ "type": "string" });
    let runtime = json!({
        "type": "object",
        "properties": { "defaultRuntime": text },
    });
    let mig = json!({ "type": "object", "properties": { "strategy": text } });
    let spec = json!({
        "type": "object",
        "properties": { "operator": runtime, "mig": mig },
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{plural}.{group}"),
            "annotations": { "controller-gen.kubebuilder.io/version": "e2e" },
        },
        "spec": {
            "group": group,
            "scope": "Cluster",
            "names": { "kind": "ClusterPolicy", "plural": plural, "shortNames": ["cpol"] },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": {
                    "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } },
                },
            }],
        },
    })
}
