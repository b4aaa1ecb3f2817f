// SPDX-License-Identifier: Apache-2.0
//! Between an object as it is kept and as a version of its resource shows it.
//!
//! Versions of a custom resource differ only in their name (conversion strategy `None`). Events are
//! kept as the core group has them and shown by `events.k8s.io` under its names
//! (`pkg/apis/events/v1/conversion.go` of Kubernetes 1.37).

use serde_json::{Value, json};

use crate::kind::Kind;

/// Names of one field: kept, and in `events.k8s.io`.
const EVENT_FIELDS: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
];

/// An object as `kind` shows it.
pub fn shown(kind: &Kind, kept: &Value) -> Value {
    let mut object = kept.clone();
    object["apiVersion"] = json!(kind.api_version());
    object["kind"] = json!(kind.kind);
    if kind.group == "events.k8s.io" {
        for (kept, shown) in EVENT_FIELDS {
            rename(&mut object, kept, shown);
        }
    }
    object
}

/// An object that came in as `kind` shows it, as it is kept.
pub fn kept(kind: &Kind, mut object: Value) -> Value {
    if kind.group == "events.k8s.io" {
        for (kept, shown) in EVENT_FIELDS {
            rename(&mut object, shown, kept);
        }
        object["apiVersion"] = json!("v1");
    }
    object
}

fn rename(object: &mut Value, from: &str, to: &str) {
    if let Some(members) = object.as_object_mut()
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}
