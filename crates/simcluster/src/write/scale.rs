// SPDX-License-Identifier: Apache-2.0
//! The scale subresource: a view of an object's wanted and counted replicas.

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::kind::{Kind, Scale};
use crate::state::Ask;

/// Where a kind keeps its numbers.
fn paths(kind: &Kind) -> Option<Scale> {
    match &kind.custom {
        Some(custom) => custom.scale.clone(),
        None => kind.has("scale").then(|| Scale {
            spec: ".spec.replicas".to_owned(),
            status: ".status.replicas".to_owned(),
            selector: None,
        }),
    }
}

fn pointer(path: &str) -> String {
    path.replace('.', "/")
}

/// The scale of an object.
pub fn shown(kind: &Kind, object: &Value) -> Value {
    let Some(paths) = paths(kind) else {
        return Value::Null;
    };
    let count = |path: &str| {
        let count = object.pointer(&pointer(path)).and_then(Value::as_i64);
        count.unwrap_or(0)
    };
    let selector = match &paths.selector {
        Some(path) => object.pointer(&pointer(path)).and_then(Value::as_str),
        None => None,
    };
    let selector = selector
        .map(str::to_owned)
        .unwrap_or_else(|| match_labels(object));
    let metadata = &object["metadata"];
    let mut scale = json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "resourceVersion": metadata["resourceVersion"],
            "creationTimestamp": metadata["creationTimestamp"],
        },
        "spec": {},
        "status": {"replicas": count(&paths.status)},
    });
    if count(&paths.spec) != 0 {
        scale["spec"]["replicas"] = json!(count(&paths.spec));
    }
    if !selector.is_empty() {
        scale["status"]["selector"] = json!(selector);
    }
    scale
}

/// `spec.selector.matchLabels` as a text.
fn match_labels(object: &Value) -> String {
    let labels = object
        .pointer("/spec/selector/matchLabels")
        .and_then(Value::as_object);
    let pairs: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.join(",")
}

/// The object with what a scale wants of it.
///
/// # Errors
/// 400 if it is no scale.
pub fn applied(ask: &Ask, object: &Value, scale: &Value) -> Result<Value, Failure> {
    let kind = &ask.kind;
    if scale["kind"] != "Scale" || !scale.is_object() {
        return Err(Failure::bad_request("the body is no Scale"));
    }
    let mut object = object.clone();
    let version = &scale["metadata"]["resourceVersion"];
    if version.is_string() {
        object["metadata"]["resourceVersion"] = version.clone();
    }
    if let Some(paths) = paths(kind) {
        let wanted = scale["spec"]["replicas"].as_i64().unwrap_or(0);
        let mut value = &mut object;
        for member in paths.spec.split('.').filter(|member| !member.is_empty()) {
            if !value.is_null() && !value.is_object() {
                return Err(Failure::bad_request("the object has no place for replicas"));
            }
            value = &mut value[member];
        }
        *value = json!(wanted);
    }
    Ok(object)
}
