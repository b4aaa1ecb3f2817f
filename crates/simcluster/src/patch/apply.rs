// SPDX-License-Identifier: Apache-2.0
//! Server-side apply, and who owns what after any write.
//!
//! ```text
//!  applied ──merge──> live + applied ──prune what the manager no longer sends──> new object
//!                                                                                    │
//!  others' fields ∩ (live differs from new) = conflicts, or taken away by force <────┘
//! ```

use std::cmp::Ordering;

use serde_json::Value;

use super::keys::{MergeKeys, Node};
use super::kubectl;
use super::managed::{self, Entry, Who, bare, nothing, without_identity};
use super::set::{Path, Set, shown};
use super::typed::{check, compare, fields, merge, remove};

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Manager<'a> {
    /// `fieldManager` of the request, or what the server makes of the client's name.
    pub name: &'a str,
    /// Take fields from others, for an apply.
    pub force: bool,
    /// The time in UTC, whole seconds, such as `2026-01-31T10:00:00Z`.
    pub now: &'a str,
    /// Group and version of the request, such as `apps/v1`.
    pub api_version: &'a str,
    /// The subresource that is written, or nothing.
    pub subresource: &'a str,
}

/// Why an apply changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Others own fields and want other values: 409, `Conflict`.
    #[error("{message}")]
    Conflict {
        /// In the words of the real API server.
        message: String,
        /// Each field, with the one it belongs to.
        causes: Vec<Cause>,
    },
    /// The request is not one: 400, `BadRequest`.
    #[error("{0}")]
    BadRequest(String),
    /// The object does not fit its lists: the real API server answers 500.
    #[error("{0}")]
    Failed(String),
}

/// One of the `causes` of a conflict; its `reason` is `FieldManagerConflict`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The field, such as `.spec.replicas`.
    pub field: String,
    /// Whose it is.
    pub message: String,
}

/// The object after `manager` applies what it wants, with `managedFields`. What it applied before and
/// does not any more is removed, unless another has set it too.
///
/// It is equal to `live` if nothing changes, times included. Subresources are not kept apart: what
/// may not be written through this one is for the caller to restore.
///
/// # Errors
/// If others own what would change and `manager` does not force, or the request is not one.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    manager: &Manager<'_>,
    keys: &MergeKeys,
) -> Result<Value, ApplyError> {
    if !applied["metadata"]["managedFields"].is_null() {
        let message = "metadata.managedFields must be nil";
        return Err(ApplyError::BadRequest(message.to_owned()));
    }
    let node = &keys.root;
    let before = live.map_or_else(nothing, bare);
    let owners = owners(live, &before, manager, keys)?;
    let who = Who::of(manager, true);
    let (last, mut others): (Vec<Entry>, Vec<Entry>) =
        owners.into_iter().partition(|entry| entry.who == who);
    let last = last.into_iter().next();

    let resets = managed::paths(keys.resets(manager.subresource));
    check(applied, node, &mut Vec::new()).map_err(|error| typed_error(applied, &error))?;
    let wanted = fields(applied, node)
        .map_err(ApplyError::Failed)?
        .without(&resets);
    let mut after = merge(&before, applied, node).map_err(ApplyError::Failed)?;
    if let Some(last) = &last {
        let all = |owned: Set, entry: &Entry| owned.union(&entry.fields);
        let owned = others.iter().fold(wanted.clone(), all);
        after = prune(&after, &last.fields, &owned, node).map_err(ApplyError::Failed)?;
    }
    let difference = compare(&before, &after, node).map_err(ApplyError::Failed)?;
    let difference = difference.without(&resets);
    if !manager.force {
        let taken = match manager.name {
            kubectl::NAME => kubectl::may_take(&before, manager.api_version, keys),
            _ => Set::default(),
        };
        refuse_conflicts(&others, &difference.changed().difference(&taken))?;
    }
    managed::take(&mut others, &difference);
    let time = match (after == before, &last) {
        (false, _) => manager.now,
        (true, Some(last)) => &last.time,
        (true, None) => "",
    };
    let wanted = without_identity(wanted);
    if !wanted.is_empty() {
        others.push(Entry::new(manager, true, time, wanted));
    }
    let mut after = managed::write(keys.settle(after), others);
    if manager.name == kubectl::NAME {
        kubectl::remember(&mut after, applied);
    }
    Ok(match live {
        Some(live) if managed::are_alike(live, &after) => live.clone(),
        _ => after,
    })
}

/// Who owns what before an apply. An object that nobody owns is that of one who came before.
fn owners(
    live: Option<&Value>,
    before: &Value,
    manager: &Manager<'_>,
    keys: &MergeKeys,
) -> Result<Vec<Entry>, ApplyError> {
    let read = live.map_or_else(|| Some(Vec::new()), managed::read);
    let failed = || ApplyError::Failed("failed to decode managed fields".to_owned());
    let mut entries = read.ok_or_else(failed)?;
    if entries.is_empty() && live.is_some() {
        let name = "before-first-apply";
        let first = Manager { name, ..*manager };
        record(&mut entries, &nothing(), before, &first, keys).map_err(ApplyError::Failed)?;
    }
    Ok(entries)
}

/// The object after an ordinary write, with `managedFields`: what differs from before is the
/// manager's now. `before` is none for an object that is new. `after` is the object as it will
/// be stored, but for what the server adds to a new one by itself, as addresses: nobody owns that. If it brings `managedFields` of its own, these are taken, and an empty list ends all
/// ownership.
pub fn record_update(
    before: Option<&Value>,
    after: Value,
    manager: &Manager<'_>,
    keys: &MergeKeys,
) -> Value {
    let old = before.and_then(managed::read).unwrap_or_default();
    let brought = &after["metadata"]["managedFields"];
    let is_end = match brought.as_array().map(Vec::as_slice) {
        Some([]) => true,
        Some([only]) => only.as_object().is_some_and(serde_json::Map::is_empty),
        _ => false,
    };
    let mut entries = match managed::read(&after) {
        _ if !manager.subresource.is_empty() => old.clone(),
        _ if is_end => Vec::new(),
        Some(brought) if !brought.is_empty() => brought,
        _ => old.clone(),
    };
    let after = keys.settle(bare(&after));
    if entries.is_empty() && before.is_some() {
        return after;
    }
    let before = before.map_or_else(nothing, bare);
    // An object that does not fit its lists keeps the owners that it has.
    if record(&mut entries, &before, &after, manager, keys).is_err() {
        entries = old;
    }
    managed::write(after, entries)
}

/// Gives to `manager` what differs.
fn record(
    entries: &mut Vec<Entry>,
    before: &Value,
    after: &Value,
    manager: &Manager<'_>,
    keys: &MergeKeys,
) -> Result<(), String> {
    let resets = managed::paths(keys.resets(manager.subresource));
    let difference = compare(before, after, &keys.root)?.without(&resets);
    let set = without_identity(difference.changed());
    managed::take(entries, &difference);
    if set.is_empty() {
        return Ok(());
    }
    let who = Who::of(manager, false);
    match entries.iter_mut().find(|entry| entry.who == who) {
        Some(entry) => {
            entry.fields = std::mem::take(&mut entry.fields).union(&set);
            entry.time = manager.now.to_owned();
        }
        None => entries.push(Entry::new(manager, false, manager.now, set)),
    }
    managed::limit(entries);
    Ok(())
}

/// The object without what was applied last and is owned by nobody now.
fn prune(merged: &Value, last: &Set, owned: &Set, node: &Node) -> Result<Value, String> {
    if last.0.is_subset(&owned.0) {
        return Ok(merged.clone());
    }
    let all = fields(merged, node)?.with_parents(node);
    let last = last.with_parents(node);
    let rest = |gone: &Set| remove(merged, gone, node);
    // What goes with a field that goes may be owned, or never have been this manager's.
    let kept = fields(&rest(&last), node)?.with_parents(node);
    let kept = rest(
        &all.clone()
            .difference(&kept.union(&owned.with_parents(node))),
    );
    let kept = fields(&kept, node)?.with_parents(node);
    Ok(rest(&all.difference(&kept).intersection(&last)))
}

fn typed_error(applied: &Value, error: &str) -> ApplyError {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, metadata) = (text(&applied["kind"]), &applied["metadata"]);
    let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
    let version = text(&applied["apiVersion"]);
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    ApplyError::Failed(format!(
        "failed to create typed patch object ({namespace}/{name}; {group}/{version}, Kind={kind}): {error}"
    ))
}

fn refuse_conflicts(entries: &[Entry], changed: &Set) -> Result<(), ApplyError> {
    let mut entries: Vec<&Entry> = entries.iter().collect();
    entries.sort_by_key(|entry| &entry.who);
    let mut causes = Vec::new();
    let mut lines = Vec::new();
    for entry in entries {
        let who = entry.who.shown();
        let fields = entry.fields.clone().intersection(changed);
        let mut paths: Vec<&Path> = fields.0.iter().collect();
        paths.sort_by(|one, other| leaves_first(one, other));
        if !paths.is_empty() {
            lines.push(format!("conflicts with {who}:"));
        }
        for field in paths.into_iter().map(|path| shown(path)) {
            lines.push(format!("- {field}"));
            let message = format!("conflict with {who}");
            causes.push(Cause { field, message });
        }
    }
    let message = match causes.as_slice() {
        [] => return Ok(()),
        [Cause { field, message }] => format!("Apply failed with 1 conflict: {message}: {field}"),
        several => {
            let (count, lines) = (several.len(), lines.join("\n"));
            format!("Apply failed with {count} conflicts: {lines}")
        }
    };
    Err(ApplyError::Conflict { message, causes })
}

/// The order in which conflicts are told: of the fields of a value first those that are whole.
fn leaves_first(one: &Path, other: &Path) -> Ordering {
    let same = one
        .iter()
        .zip(other)
        .take_while(|(one, other)| one == other)
        .count();
    let ends = |path: &Path| path.len() == same + 1;
    let ends = ends(other).cmp(&ends(one));
    ends.then_with(|| one.get(same).cmp(&other.get(same)))
}
