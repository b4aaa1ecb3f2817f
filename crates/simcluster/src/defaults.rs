// SPDX-License-Identifier: Apache-2.0
//! What the server fills into built-in objects, for the kinds that controllers here look into
//! (`pkg/apis/*/v1/defaults.go` of Kubernetes 1.37). Defaults of other kinds are left to the client.

use serde_json::{Value, json};

use crate::kind::Kind;

/// Fills in what is missing.
pub fn fill(kind: &Kind, object: &mut Value) {
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Secret") => add(object, &json!({"type": "Opaque"})),
        ("", "Pod") => {
            fill_pod(&mut object["spec"]);
            // An admission plugin of the real server.
            let account = json!({"serviceAccountName": "default", "priority": 0, "enableServiceLinks": true,
                "preemptionPolicy": "PreemptLowerPriority"});
            add(&mut object["spec"], &account);
            object["spec"]["serviceAccount"] = object["spec"]["serviceAccountName"].clone();
        }
        ("apps", "Deployment") => {
            let strategy = json!({
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"},
            });
            add(
                &mut object["spec"],
                &json!({
                    "replicas": 1,
                    "strategy": strategy,
                    "revisionHistoryLimit": 10,
                    "progressDeadlineSeconds": 600,
                }),
            );
            fill_template(object);
        }
        ("apps", "DaemonSet") => {
            let strategy = json!({
                "type": "RollingUpdate",
                "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
            });
            let missing = json!({"updateStrategy": strategy, "revisionHistoryLimit": 10});
            add(&mut object["spec"], &missing);
            fill_template(object);
        }
        ("apps", "ReplicaSet") => {
            add(&mut object["spec"], &json!({"replicas": 1}));
            fill_template(object);
        }
        ("batch", "Job") => fill_job(object),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => fill_definition(object),
        ("scheduling.k8s.io", "PriorityClass") => {
            add(object, &json!({"preemptionPolicy": "PreemptLowerPriority"}));
        }
        _ => {}
    }
}

fn fill_job(object: &mut Value) {
    add(
        &mut object["spec"],
        &json!({
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": false,
            "manualSelector": false,
            "podReplacementPolicy": "TerminatingOrFailed",
        }),
    );
    fill_template(object);
}

fn fill_template(object: &mut Value) {
    if let Some(spec) = object.pointer_mut("/spec/template/spec") {
        fill_pod(spec);
    }
}

fn fill_pod(spec: &mut Value) {
    if !spec.is_object() {
        return;
    }
    add(
        spec,
        &json!({
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "securityContext": {},
            "schedulerName": "default-scheduler",
        }),
    );
    for list in ["containers", "initContainers"] {
        let containers = spec[list].as_array_mut().into_iter().flatten();
        containers
            .filter(|it| it.is_object())
            .for_each(fill_container);
    }
    if spec["initContainers"].is_null()
        && let Some(members) = spec.as_object_mut()
    {
        members.remove("initContainers");
    }
}

fn fill_container(container: &mut Value) {
    let image = container["image"].as_str().unwrap_or_default();
    let name = image.rsplit('/').next().unwrap_or_default();
    let is_latest = !image.contains('@') && name.split_once(':').is_none_or(|it| it.1 == "latest");
    add(
        container,
        &json!({
            "imagePullPolicy": if is_latest { "Always" } else { "IfNotPresent" },
            "resources": {},
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        }),
    );
    fill_requests(container);
    for port in container["ports"].as_array_mut().into_iter().flatten() {
        add(port, &json!({"protocol": "TCP"}));
    }
    if container["ports"].is_null()
        && let Some(members) = container.as_object_mut()
    {
        members.remove("ports");
    }
}

/// What is limited and not requested is requested.
fn fill_requests(container: &mut Value) {
    let requests = &container["resources"]["requests"];
    if !container["resources"].is_object() || !requests.is_null() && !requests.is_object() {
        return;
    }
    let limits = container["resources"]["limits"].clone();
    for (name, quantity) in limits.as_object().into_iter().flatten() {
        let requests = &mut container["resources"]["requests"];
        if requests[name].is_null() {
            requests[name] = quantity.clone();
        }
    }
    if let Some(resources) = container["resources"].as_object_mut() {
        resources.retain(|_, value| !value.is_null());
    }
}

fn fill_definition(object: &mut Value) {
    let kind = object["spec"]["names"]["kind"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let names = json!({"singular": kind.to_lowercase(), "listKind": format!("{kind}List")});
    add(&mut object["spec"]["names"], &names);
    add(
        &mut object["spec"],
        &json!({"conversion": {"strategy": "None"}}),
    );
}

/// Adds the members that an object does not have; nothing to what is no object.
fn add(object: &mut Value, missing: &Value) {
    let (Some(members), Some(missing)) = (object.as_object_mut(), missing.as_object()) else {
        return;
    };
    for (name, value) in missing {
        let member = members.entry(name).or_insert(Value::Null);
        if member.is_null() {
            *member = value.clone();
        }
    }
}
