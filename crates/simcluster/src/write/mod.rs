// SPDX-License-Identifier: Apache-2.0
//! Writes: from a request to the object as it will be, and then into the store.
//!
//! ```text
//!  request ──draft──> Draft ──(admission)──> Draft ──commit──> store ──> what follows from it
//!             │                                  │
//!             └── refused                        └── stale: somebody wrote in between
//! ```
//!
//! Two halves, since admission webhooks are asked in between, without the state being locked.

mod create;
mod delete;
mod evict;
mod follow;
mod metadata;
pub mod scale;
mod settle;
mod update;

use std::sync::Arc;

use serde_json::Value;

use crate::convert;
use crate::failure::Failure;
use crate::state::{Ask, State};
use crate::store::Key;

pub use delete::Deletion;
pub use settle::settle;

/// A body that changes an object, by its media type.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// `application/json-patch+json`.
    Json(Value),
    /// `application/merge-patch+json`.
    Merge(Value),
    /// `application/strategic-merge-patch+json`.
    Strategic(Value),
    /// `application/apply-patch+yaml`.
    Apply(Value),
}

/// A write that is asked for.
#[derive(Clone, Debug, PartialEq)]
pub enum Write {
    /// POST.
    Create(Value),
    /// PUT.
    Update(Value),
    /// PATCH.
    Patch(Patch),
}

/// An object as it will be.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Where it is kept.
    pub key: Key,
    /// As it is; `None` if it is created.
    pub before: Option<Arc<Value>>,
    /// As it will be, in the form that is kept.
    pub after: Value,
    /// What the client should know.
    pub warnings: Vec<String>,
}

/// What became of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// HTTP status code.
    pub code: u16,
    /// The object as its kind shows it, or a `Status`.
    pub object: Value,
    /// What the client should know.
    pub warnings: Vec<String>,
}

impl State {
    /// What a write makes of the object.
    ///
    /// # Errors
    /// The refusal that the client gets.
    pub fn draft(&mut self, ask: &Ask, write: Write) -> Result<Draft, Failure> {
        let draft = match write {
            Write::Create(body) => self.draft_create(ask, body),
            Write::Update(body) => self.draft_update(ask, body),
            Write::Patch(patch) => self.draft_patch(ask, patch),
        }?;
        if ask.kind.is_namespaced && ask.subresource.is_empty() {
            self.check_quotas(ask, draft.before.as_deref(), &draft.after)?;
        }
        Ok(draft)
    }

    /// Keeps a draft, unless it is a dry run or changes nothing. What was written since it was
    /// drafted makes it stale: `None`.
    ///
    /// # Errors
    /// 422 for a dry run of an unknown kind.
    pub fn commit(&mut self, ask: &Ask, draft: Draft) -> Result<Option<Written>, Failure> {
        let place = ask.kind.place();
        let live = self.store.get(&place, &draft.key);
        let is_fresh = match (live, &draft.before) {
            (None, None) => true,
            (Some(live), Some(before)) => Arc::ptr_eq(live, before),
            _ => false,
        };
        if !is_fresh {
            return Ok(None);
        }
        let code = if draft.before.is_some() { 200 } else { 201 };
        let shown = |object: &Value| Written {
            code,
            object: shown(ask, object),
            warnings: draft.warnings.clone(),
        };
        if let Some(before) = &draft.before
            && **before == draft.after
        {
            return Ok(Some(shown(before)));
        }
        if ask.is_dry_run()? {
            return Ok(Some(shown(&draft.after)));
        }
        let kept = match is_finished(&draft.after) {
            true => {
                self.put(&place, &draft.key, draft.after);
                self.remove(&place, &draft.key)
            }
            false => Some(self.put(&place, &draft.key, draft.after)),
        };
        let written = kept.as_ref().map(|object| shown(object));
        self.follow(ask.now);
        Ok(written)
    }
}

/// An object as the URL of a request shows it.
pub fn shown(ask: &Ask, object: &Value) -> Value {
    match ask.subresource.as_str() {
        "scale" => scale::shown(&ask.kind, object),
        _ => convert::shown(&ask.kind, object),
    }
}

/// Whether an object is being deleted and nothing holds it any more.
fn is_finished(object: &Value) -> bool {
    let metadata = &object["metadata"];
    let is_held = |list: &Value| list.as_array().is_some_and(|list| !list.is_empty());
    let is_deleted = !metadata["deletionTimestamp"].is_null();
    let has_grace = metadata["deletionGracePeriodSeconds"].as_u64() > Some(0);
    let is_held = is_held(&metadata["finalizers"])
        || object["kind"] == "Namespace" && is_held(&object["spec"]["finalizers"]);
    is_deleted && !has_grace && !is_held
}
