// SPDX-License-Identifier: Apache-2.0
//! What server-side apply does for kubectl alone: objects that it applied from its own side before
//! carry that in an annotation, which lets it go over without conflicts.

use serde_json::Value;

use super::keys::MergeKeys;
use super::set::Set;
use super::typed::{compare, fields};

/// The manager that this is for.
pub(super) const NAME: &str = "kubectl";

const LAST: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Fields that it may take from whoever owns them: those that are as it last applied them.
pub(super) fn may_take(live: &Value, api_version: &str, keys: &MergeKeys) -> Set {
    let last = last(live).and_then(|text| serde_json::from_str::<Value>(text).ok());
    let last = last.filter(|last| last["apiVersion"] == api_version);
    let taken = last.and_then(|last| {
        let difference = compare(&last, live, &keys.root).ok()?;
        let other = difference.changed().union(&difference.removed);
        Some(fields(&last, &keys.root).ok()?.difference(&other))
    });
    taken.unwrap_or_default()
}

/// Brings the annotation up to date, where there is one.
pub(super) fn remember(object: &mut Value, applied: &Value) {
    if last(object).is_none() {
        return;
    }
    let mut applied = applied.clone();
    if let Some(Value::Object(annotations)) = applied.pointer_mut("/metadata/annotations") {
        annotations.remove(LAST);
    }
    object["metadata"]["annotations"][LAST] = Value::from(format!("{applied}\n"));
}

fn last(object: &Value) -> Option<&str> {
    let text = object["metadata"]["annotations"][LAST].as_str();
    text.filter(|text| !text.is_empty())
}
