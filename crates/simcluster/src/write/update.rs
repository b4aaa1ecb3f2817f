// SPDX-License-Identifier: Apache-2.0
//! Changes of objects that are there.

use std::sync::Arc;

use serde_json::{Value, json};

use super::settle::{manager, settle};
use super::{Draft, Patch, metadata, scale};
use crate::convert;
use crate::failure::{Cause, Failure};
use crate::kind::Kind;
use crate::patch::{self, ApplyError, Manager, PatchError};
use crate::state::{Ask, State, time};

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
        let body = match ask.subresource.as_str() {
            "scale" => body,
            _ => metadata::check_body(ask, body)?,
        };
        let is_new = self.store.get(&ask.kind.place(), &ask.key()).is_none();
        if is_new && ask.kind.is_made_by_put() {
            let mut body = body;
            remove(&mut body["metadata"], "resourceVersion");
            return self.draft_create(ask, body);
        }
        let before = Arc::clone(self.live(ask)?);
        let body = whole(ask, &before, body)?;
        replace(ask, before, body)
    }

    /// The object after a PATCH.
    pub(super) fn draft_patch(&mut self, ask: &Ask, patch: Patch) -> Result<Draft, Failure> {
        if let Patch::Apply(applied) = patch {
            return self.draft_apply(ask, &applied);
        }
        if ask.query.has("force") {
            let why = "may not be specified for non-apply patch";
            let cause = Cause::forbidden("force", why);
            return Err(Failure::invalid_options("PatchOptions", &[cause]));
        }
        let before = Arc::clone(self.live(ask)?);
        let shown = super::shown(ask, &before);
        let body = match &patch {
            Patch::Json(operations) => patch::json(&shown, operations).map_err(refused)?,
            Patch::Strategic(_) if ask.kind.custom.is_some() => {
                return Err(Failure::no_strategic_merge());
            }
            Patch::Strategic(patch) => {
                patch::strategic(&shown, patch, &ask.kind.merge_keys).map_err(refused)?
            }
            Patch::Merge(patch) | Patch::Apply(patch) => patch::merge(&shown, patch),
        };
        let body = whole(ask, &before, body)?;
        replace(ask, before, body)
    }

    /// The object after a server-side apply, which may be a new one.
    fn draft_apply(&mut self, ask: &Ask, applied: &Value) -> Result<Draft, Failure> {
        if ask.query.get("fieldManager").is_empty() {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Failure::invalid_options("PatchOptions", &[cause]));
        }
        check_applied(ask, applied)?;
        let before = self.live(ask).ok().cloned();
        if before.is_none() && !ask.subresource.is_empty() {
            return Err(Failure::not_found(&ask.kind, &ask.name));
        }
        let now = time(ask.now);
        let api_version = ask.kind.api_version();
        let manager = Manager {
            force: ask.query.is("force"),
            ..manager(ask, &now, &api_version)
        };
        let shown = before.as_ref().map(|it| convert::shown(&ask.kind, it));
        let keys = &ask.kind.merge_keys;
        let after = patch::apply(shown.as_ref(), applied, &manager, keys);
        let after = after.map_err(|error| apply_refused(ask, error))?;
        let body = metadata::check_body(ask, after)?;
        match before {
            Some(before) => replace(ask, before, body),
            None => self.draft_create(ask, body),
        }
    }
}

/// What is applied must say what it is, and mean the object of the URL.
fn check_applied(ask: &Ask, applied: &Value) -> Result<(), Failure> {
    let kind = &ask.kind;
    let text = |at: &str| applied[at].as_str().unwrap_or_default();
    if text("apiVersion") != kind.api_version() || text("kind") != kind.kind {
        let (group, version) = match text("apiVersion").split_once('/') {
            Some(parts) => parts,
            None => ("", text("apiVersion")),
        };
        return Err(Failure::bad_request(format!(
            "invalid object type: {group}/{version}, Kind={}",
            text("kind")
        )));
    }
    Ok(())
}

/// The whole object that the body of a request means.
fn whole(ask: &Ask, before: &Value, body: Value) -> Result<Value, Failure> {
    match ask.subresource.as_str() {
        "scale" => scale::applied(ask, &convert::shown(&ask.kind, before), &body),
        _ => metadata::check_body(ask, body),
    }
}

/// The draft of an object in place of another.
fn replace(ask: &Ask, before: Arc<Value>, body: Value) -> Result<Draft, Failure> {
    let shown = convert::shown(&ask.kind, &before);
    let mut warnings = Vec::new();
    let after = update(ask, &shown, body, &mut warnings)?;
    Ok(Draft {
        key: ask.key(),
        before: Some(before),
        after: convert::kept(&ask.kind, after),
        warnings,
    })
}

fn apply_refused(ask: &Ask, error: ApplyError) -> Failure {
    match error {
        ApplyError::Conflict { message, causes } => {
            let causes: Vec<Value> = causes
                .iter()
                .map(|cause| {
                    json!({
                        "reason": "FieldManagerConflict",
                        "message": cause.message,
                        "field": cause.field,
                    })
                })
                .collect();
            let mut failure = Failure::conflict(&ask.kind, &ask.name, "");
            failure.message = message;
            failure.details = json!({"causes": causes});
            failure
        }
        ApplyError::BadRequest(message) => Failure::bad_request(message),
        ApplyError::Failed(message) => Failure::internal(message),
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
fn update(
    ask: &Ask,
    before: &Value,
    mut after: Value,
    warnings: &mut Vec<String>,
) -> Result<Value, Failure> {
    let kind = &ask.kind;
    check_precondition(ask, before, &after)?;
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
    if let Some(cause) = new_finalizers(before, &after) {
        return Err(Failure::invalid(kind, &ask.name, &[cause]));
    }
    let mut after = settle(ask, Some(before), after, warnings)?;
    if kind.counts_generations()
        && intent(before) != intent(&after)
        && let Some(generation) = before["metadata"]["generation"].as_u64()
    {
        after["metadata"]["generation"] = json!(generation + 1);
    }
    Ok(after)
}

/// The version that the client read must be the newest, where it names one.
fn check_precondition(ask: &Ask, before: &Value, after: &Value) -> Result<(), Failure> {
    let kind = &ask.kind;
    let text = |object: &Value, at: &str| {
        let text = object["metadata"][at].as_str();
        text.unwrap_or_default().to_owned()
    };
    let version = text(after, "resourceVersion");
    if version.is_empty() && kind.needs_version() && ask.method == "PUT" {
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
    if !wanted.is_empty() && wanted != uid && ask.method == "PATCH" {
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
    if kind.custom.is_none() {
        after["metadata"] = metadata;
    } else if let Some(managed) = metadata.get("managedFields") {
        after["metadata"]["managedFields"] = managed.clone();
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
