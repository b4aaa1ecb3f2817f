// SPDX-License-Identifier: Apache-2.0
//! Changes of objects that are there.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Draft, Patch, metadata};
use crate::convert;
use crate::failure::{Cause, Failure};
use crate::kind::Kind;
use crate::patch::{self, PatchError};
use crate::state::{Ask, State};

/// What the server alone writes in `metadata`.
const SYSTEM: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "resourceVersion",
    "uid",
];

impl State {
    /// The object after a PUT.
    pub(super) fn draft_update(&mut self, ask: &Ask, body: Value) -> Result<Draft, Failure> {
        let body = metadata::check_body(ask, body)?;
        let before = Arc::clone(self.live(ask)?);
        let shown = convert::shown(&ask.kind, &before);
        let after = update(ask, false, &shown, body)?;
        Ok(Draft {
            key: ask.key(),
            before: Some(before),
            after: convert::kept(&ask.kind, after),
        })
    }

    /// The object after a PATCH.
    pub(super) fn draft_patch(&mut self, ask: &Ask, patch: Patch) -> Result<Draft, Failure> {
        let before = Arc::clone(self.live(ask)?);
        let shown = convert::shown(&ask.kind, &before);
        let body = match patch {
            Patch::Json(operations) => patch::json(&shown, &operations).map_err(refused)?,
            Patch::Merge(patch) => patch::merge(&shown, &patch),
        };
        let body = metadata::check_body(ask, body)?;
        let after = update(ask, true, &shown, body)?;
        Ok(Draft {
            key: ask.key(),
            before: Some(before),
            after: convert::kept(&ask.kind, after),
        })
    }
}

fn refused(error: PatchError) -> Failure {
    match error {
        PatchError::Malformed(message) => Failure::bad_request(message),
        PatchError::Refused => Failure::patch_refused(error.to_string()),
        PatchError::Failed(message) => Failure::internal(message),
    }
}

/// The object that a client wants in place of `before`, with what it may not change as it was.
fn update(ask: &Ask, is_patch: bool, before: &Value, mut after: Value) -> Result<Value, Failure> {
    let kind = &ask.kind;
    check_precondition(ask, is_patch, before, &after)?;
    for member in SYSTEM {
        match before["metadata"].get(*member) {
            Some(value) => after["metadata"][*member] = value.clone(),
            None => remove(&mut after["metadata"], member),
        }
    }
    match ask.subresource.as_str() {
        "status" => keep_all_but_status(kind, before, &mut after),
        _ if kind.has("status") => restore(before, &mut after, "status"),
        _ => {}
    }
    let mut causes = metadata::causes(kind, &after);
    causes.extend(new_finalizers(before, &after));
    if !causes.is_empty() {
        return Err(Failure::invalid(kind, &ask.name, &causes));
    }
    if kind.counts_generations()
        && intent(before) != intent(&after)
        && let Some(generation) = before["metadata"]["generation"].as_u64()
    {
        after["metadata"]["generation"] = json!(generation + 1);
    }
    Ok(after)
}

/// The version that the client read must be the newest, where it names one.
fn check_precondition(
    ask: &Ask,
    is_patch: bool,
    before: &Value,
    after: &Value,
) -> Result<(), Failure> {
    let kind = &ask.kind;
    let text = |object: &Value, at: &str| {
        let text = object["metadata"][at].as_str();
        text.unwrap_or_default().to_owned()
    };
    let version = text(after, "resourceVersion");
    if version.is_empty() && kind.is_custom {
        let cause = Cause::invalid(
            "metadata.resourceVersion",
            &json!(0),
            "must be specified for an update",
        );
        return Err(Failure::invalid_resource(kind, &ask.name, &[cause]));
    }
    if !version.is_empty() && version != text(before, "resourceVersion") {
        return Err(Failure::stale(kind, &ask.name));
    }
    let (wanted, uid) = (text(after, "uid"), text(before, "uid"));
    if !wanted.is_empty() && wanted != uid && is_patch {
        let cause = Cause::invalid("metadata.uid", &json!(wanted), "field is immutable");
        return Err(Failure::invalid(kind, &ask.name, &[cause]));
    }
    if !wanted.is_empty() && wanted != uid {
        let why = format!(
            "Precondition failed: UID in precondition: {wanted}, UID in object meta: {uid}"
        );
        return Err(Failure::conflict(kind, &ask.name, &why));
    }
    Ok(())
}

/// A write of the status leaves everything else as it was; of built-in objects it may change labels
/// and annotations too (`PrepareForUpdate` of the status strategies).
fn keep_all_but_status(kind: &Kind, before: &Value, after: &mut Value) {
    let status = after.get("status").cloned();
    let metadata = after["metadata"].clone();
    *after = before.clone();
    match status {
        Some(status) => after["status"] = status,
        None => remove(after, "status"),
    }
    if !kind.is_custom {
        after["metadata"] = metadata;
    }
}

/// What somebody wants of an object: everything but its metadata and status.
fn intent(object: &Value) -> Value {
    let mut object = object.clone();
    remove(&mut object, "metadata");
    remove(&mut object, "status");
    object
}

/// An object on its way out takes no new finalizers.
fn new_finalizers(before: &Value, after: &Value) -> Option<Cause> {
    if before["metadata"]["deletionTimestamp"].is_null() {
        return None;
    }
    let list = |object: &Value| {
        let list = object["metadata"]["finalizers"].as_array();
        list.cloned().unwrap_or_default()
    };
    let known = list(before);
    let new: Vec<String> = list(after)
        .iter()
        .filter(|name| !known.contains(name))
        .map(ToString::to_string)
        .collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        new.join(", ")
    );
    (!new.is_empty()).then(|| Cause::forbidden("metadata.finalizers", &why))
}

fn restore(before: &Value, after: &mut Value, member: &str) {
    match before.get(member) {
        Some(value) => after[member] = value.clone(),
        None => remove(after, member),
    }
}

fn remove(value: &mut Value, member: &str) {
    if let Some(members) = value.as_object_mut() {
        members.remove(member);
    }
}
