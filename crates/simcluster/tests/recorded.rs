// SPDX-License-Identifier: Apache-2.0
//! Patches, applies and the fields that they give to managers, against what a real kube-apiserver
//! answered: `patches.json`, recorded by `record.py` in the folder `vectors`.
//!
//! The real server also fills in defaults and keeps a generation. So where ours is to be compared
//! with its object, members that only the real one has are left out for an object that is new, and
//! ownership is told from the object that it stored.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Value, json};
use simcluster::patch::{self, ApplyError, Manager, MergeKeys, PatchError};

/// A request of a case, taken apart.
struct Request<'a> {
    verb: &'a str,
    /// Of the object, without a subresource.
    path: String,
    subresource: &'a str,
    /// What kind of patch; empty if it is none.
    patch: &'a str,
    body: &'a Value,
    api_version: String,
    kind: &'static str,
    name: &'a str,
    force: bool,
    /// The time at which it was sent.
    now: String,
}

const KINDS: &[(&str, &str)] = &[
    ("clusterroles", "ClusterRole"),
    ("configmaps", "ConfigMap"),
    ("daemonsets", "DaemonSet"),
    ("deployments", "Deployment"),
    ("events", "Event"),
    ("jobs", "Job"),
    ("leases", "Lease"),
    ("limitranges", "LimitRange"),
    ("nodes", "Node"),
    ("poddisruptionbudgets", "PodDisruptionBudget"),
    ("pods", "Pod"),
    ("priorityclasses", "PriorityClass"),
    ("replicasets", "ReplicaSet"),
    ("resourcequotas", "ResourceQuota"),
    ("rolebindings", "RoleBinding"),
    ("roles", "Role"),
    ("secrets", "Secret"),
    ("serviceaccounts", "ServiceAccount"),
    ("services", "Service"),
    ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    (
        "validatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding",
    ),
    (
        "validatingwebhookconfigurations",
        "ValidatingWebhookConfiguration",
    ),
    ("widgets", "Widget"),
    ("namespaces", "Namespace"),
];

impl<'a> Request<'a> {
    fn of(request: &'a Value, at: usize) -> Self {
        let mut words = request["do"].as_str().unwrap().split(' ');
        let (verb, path) = (words.next().unwrap(), words.next().unwrap());
        let body = &request["body"];
        let (path, subresource) = match path.strip_suffix("/status") {
            Some(path) => (path.to_owned(), "status"),
            None if verb == "POST" => (
                format!("{path}/{}", body["metadata"]["name"].as_str().unwrap()),
                "",
            ),
            None => (path.to_owned(), ""),
        };
        let parts: Vec<&str> = path.split('/').collect();
        let api_version = match parts[1] {
            "api" => parts[2].to_owned(),
            _ => format!("{}/{}", parts[2], parts[3]),
        };
        let kind = KINDS.iter().find(|(resource, _)| parts.contains(resource));
        let query = |key: &str| request["query"][key].as_str();
        Self {
            verb,
            subresource,
            patch: words.next().unwrap_or_default(),
            body,
            api_version,
            kind: kind.map_or("", |(_, kind)| kind),
            name: query("fieldManager").unwrap_or("recorder"),
            force: query("force").is_some(),
            now: format!("2026-01-01T00:00:{at:02}Z"),
            path,
        }
    }

    fn manager(&self) -> Manager<'_> {
        Manager {
            name: self.name,
            force: self.force,
            now: &self.now,
            api_version: &self.api_version,
            subresource: self.subresource,
        }
    }

    fn keys(&self, widget: &Value) -> MergeKeys {
        let group = self
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        match self.kind {
            "Widget" => MergeKeys::custom(widget, true),
            kind => MergeKeys::built_in(group, kind),
        }
    }
}

/// What ours makes of it: an object, or code and message.
fn ours(request: &Request<'_>, before: Option<&Value>, keys: &MergeKeys) -> Result<Value, Value> {
    let there = before.unwrap_or(&Value::Null);
    let patched = match request.patch {
        "" => Ok(request.body.clone()),
        "json" => patch::json(there, request.body),
        "merge" => Ok(patch::merge(there, request.body)),
        "strategic" => patch::strategic(there, request.body, keys),
        "apply" => {
            let applied = patch::apply(before, request.body, &request.manager(), keys);
            return applied.map_err(|error| match error {
                ApplyError::Conflict { message, causes } => {
                    let causes = causes.into_iter().map(|cause| {
                        json!({"reason": "FieldManagerConflict", "message": cause.message, "field": cause.field})
                    });
                    json!({"message": message, "reason": "Conflict", "details": {"causes": causes.collect::<Vec<_>>()}})
                }
                ApplyError::BadRequest(message) => json!({"message": message, "reason": "BadRequest"}),
                ApplyError::Failed(message) => json!({"message": message}),
            });
        }
        other => unreachable!("{other}"),
    };
    patched.map_err(|error| match &error {
        PatchError::Malformed(message) => json!({"message": message, "reason": "BadRequest"}),
        PatchError::Refused => {
            json!({"message": error.to_string(), "reason": "Invalid", "details": {}})
        }
        PatchError::Failed(message) => json!({"message": message}),
    })
}

/// The object as a server keeps it: what may not be written this way is as before.
fn stored(mut object: Value, before: Option<&Value>, request: &Request<'_>) -> Value {
    let old = |member: &str| {
        before
            .map(|before| before[member].clone())
            .unwrap_or_default()
    };
    let restored: &[&str] = match request.subresource {
        "" => &["status"],
        _ => &["spec"],
    };
    for member in restored {
        object[*member] = old(member);
    }
    if request.subresource == "status" && request.kind == "Widget" {
        let managed = object["metadata"]["managedFields"].take();
        object["metadata"] = old("metadata");
        object["metadata"]["managedFields"] = managed;
    }
    object
        .as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    object
}

/// What the server fills in by itself, which nobody owns.
const FILLED: &[(&str, &[&str])] = &[
    (
        "DaemonSet",
        &[
            "metadata",
            "annotations",
            "deprecated.daemonset.template.generation",
        ],
    ),
    ("Event", &["eventTime"]),
    ("Event", &["reportingComponent"]),
    ("Event", &["reportingInstance"]),
    ("Job", &["metadata", "labels"]),
    ("Job", &["spec", "selector"]),
    ("Job", &["spec", "template", "metadata", "labels"]),
    ("Namespace", &["spec", "finalizers"]),
];

/// The object with what the server fills in as it was before, or not there.
fn without_filled(object: &Value, before: Option<&Value>, kind: &str) -> Value {
    let mut object = object.clone();
    let kind = if object["apiVersion"] == "events.k8s.io/v1" {
        ""
    } else {
        kind
    };
    for (_, path) in FILLED.iter().filter(|(of, _)| *of == kind) {
        let (last, way) = path.split_last().unwrap();
        let old = path
            .iter()
            .try_fold(before.unwrap_or(&Value::Null), |value, key| value.get(key));
        let there = way
            .iter()
            .try_fold(&mut object, |value, key| value.get_mut(key));
        let Some(Value::Object(there)) = there else {
            continue;
        };
        match old {
            Some(old) => there.insert((*last).to_owned(), old.clone()),
            // This one is there from the beginning, and counted up later.
            None if kind == "DaemonSet" => None,
            None => there.remove(*last),
        };
    }
    object
}

/// Without what no patch decides.
fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].as_object_mut().unwrap();
    metadata.retain(|key, _| !["managedFields", "generation"].contains(&key.as_str()));
    object
}

/// Leaves of `object` that are not in `of`.
fn missing(object: &Value, of: &Value, path: &str) -> Vec<String> {
    match (object, of) {
        (Value::Object(members), Value::Object(of)) => {
            let found = members.iter().flat_map(|(key, value)| {
                let there = of.get(key).unwrap_or(&Value::Null);
                missing(value, there, &format!("{path}.{key}"))
            });
            found.collect()
        }
        (Value::Array(items), Value::Array(of)) if items.len() == of.len() => {
            let both = items.iter().zip(of).enumerate();
            both.flat_map(|(at, (item, of))| missing(item, of, &format!("{path}[{at}]")))
                .collect()
        }
        (object, of) if object == of => Vec::new(),
        (object, of) => vec![format!("  {path}: {object} where the other has {of}")],
    }
}

/// What the real one fills in.
const DEFAULTS: &[&str] = &[
    "dnsPolicy",
    "emptyDir",
    "imagePullPolicy",
    "nodeInfo",
    "progressDeadlineSeconds",
    "proto",
    "protocol",
    "replicas",
    "resources",
    "restartPolicy",
    "revisionHistoryLimit",
    "rollingUpdate",
    "schedulerName",
    "securityContext",
    "strategy",
    "targetPort",
    "terminationGracePeriodSeconds",
    "terminationMessagePath",
    "terminationMessagePolicy",
];

fn differences(ours: &Value, real: &Value, new: bool) -> Vec<String> {
    let mut found: Vec<String> = missing(ours, real, "ours ").into_iter().collect();
    if !new {
        let by_default = |line: &String| {
            let path = line.trim().split(": ").next().unwrap_or_default();
            let is_default = path
                .rsplit('.')
                .next()
                .is_some_and(|name| DEFAULTS.contains(&name));
            let is_filled = is_default || line.contains(": \"\" where");
            is_filled && line.ends_with("has null")
        };
        found.extend(
            missing(real, ours, "real ")
                .into_iter()
                .filter(|line| !by_default(line)),
        );
    }
    found
}

/// The real one tells causes in any order.
fn in_order(mut error: Value) -> Value {
    if let Some(causes) = error["details"]["causes"].as_array_mut() {
        causes.sort_by_key(Value::to_string);
    }
    error
}

fn judge(
    request: &Request<'_>,
    before: Option<&Value>,
    answer: &Value,
    widget: &Value,
) -> Vec<String> {
    let keys = request.keys(widget);
    let real = &without_filled(&answer["body"], before, request.kind);
    let mine = ours(request, before, &keys);
    let accepted = answer["code"].as_u64().unwrap() < 300;
    let null = real["message"]
        .as_str()
        .is_some_and(|message| message.contains(NULL));
    let object = match mine {
        Ok(object) if null && has_null(&object) => return Vec::new(),
        Ok(object) if accepted => stored(object, before, request),
        Err(error) if !accepted => {
            return differences(&in_order(error), &in_order(real.clone()), false);
        }
        mine => return vec![format!("  ours {mine:?}\n  real {answer}")],
    };
    // Defaults are the server's.
    let new = before.is_none() || request.patch.is_empty();
    let (object, managed) = if request.patch == "apply" {
        (object.clone(), object)
    } else {
        let mut after = real.clone();
        after["metadata"]["managedFields"] = object["metadata"]["managedFields"].clone();
        let record = |after| patch::record_update(before, after, &request.manager(), &keys);
        (record(object), record(after))
    };
    let mut found = differences(&bare(&object), &bare(real), new);
    let fields = |object: &Value| object["metadata"]["managedFields"].clone();
    found.extend(differences(&fields(&managed), &fields(real), false));
    found
}

/// Whether the answer is not for a patch to decide.
fn is_for_others(request: &Request<'_>, answer: &Value) -> bool {
    let message = answer["body"]["message"].as_str().unwrap_or_default();
    match answer["code"].as_u64() {
        Some(404 | 415) => true,
        Some(422) => request.patch != "json" && !message.contains(NULL),
        _ => false,
    }
}

/// What the real one's schemas say of what is emptied.
const NULL: &str = "in body must be of type object: \"null\"";

fn has_null(value: &Value) -> bool {
    match value {
        Value::Object(members) => members.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        plain => plain.is_null(),
    }
}

#[test]
fn writes_are_those_of_the_real_server() {
    judge_all(include_str!("vectors/patches.json"), 250);
}

#[test]
fn any_writes_are_those_of_the_real_server() {
    judge_all(include_str!("vectors/random.json"), 250);
}

fn judge_all(vectors: &str, least: usize) {
    let cases: Vec<Value> = serde_json::from_str(vectors).unwrap();
    let kind = &cases[0]["requests"][0]["body"]["spec"]["versions"][0];
    let widget = &kind["schema"]["openAPIV3Schema"];
    let (mut judged, mut wrong) = (0, Vec::new());
    for case in &cases[1..] {
        let mut objects: BTreeMap<String, Value> = BTreeMap::new();
        for (at, sent) in case["requests"].as_array().unwrap().iter().enumerate() {
            let request = Request::of(sent, at);
            if request.verb == "GET" || is_for_others(&request, &sent["answer"]) {
                continue;
            }
            let found = judge(
                &request,
                objects.get(&request.path),
                &sent["answer"],
                widget,
            );
            judged += 1;
            if !found.is_empty() {
                let name = case["name"].as_str().unwrap();
                wrong.push(format!(
                    "{name}, request {at}: {}\n{}",
                    sent["body"],
                    found.join("\n")
                ));
            }
            if sent["answer"]["code"].as_u64().unwrap() < 300 {
                objects.insert(request.path, sent["answer"]["body"].clone());
            }
        }
    }
    let count = wrong.len();
    assert!(
        wrong.is_empty(),
        "{}\n{count} of {judged} differ",
        wrong.join("\n")
    );
    assert!(judged > least, "{judged} requests were judged");
}
