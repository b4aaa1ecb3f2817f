// SPDX-License-Identifier: Apache-2.0
//! Objects whose lists and maps are known: merged, compared, taken apart. What managers own is told
//! from these four functions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::keys::{Items, Node};
use super::set::{Element, Path, Set, item, member, shown};

/// Fields that differ between two objects.
#[derive(Debug, Default)]
pub(super) struct Difference {
    pub(super) removed: Set,
    pub(super) modified: Set,
    pub(super) added: Set,
}

/// Whether a value with this node has parts that managers own one by one.
fn is_whole(value: &Value, node: &Node) -> bool {
    match value {
        Value::Object(_) => node.atomic,
        Value::Array(_) => node.items == Items::Atomic,
        _ => true,
    }
}

/// Whether it is a map, and whether a list.
fn shape(value: &Value) -> (bool, bool) {
    (value.is_object(), value.is_array())
}

fn is_bare(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(members)) => members.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

/// Whether two values can be looked at part by part.
fn have_parts(left: Option<&Value>, right: Option<&Value>, node: &Node) -> bool {
    let both = [left, right];
    let mut there = both.into_iter().flatten().filter(|value| !value.is_null());
    let first = there.next();
    let same = there.all(|other| first.map(shape) == Some(shape(other)));
    let whole = first.is_none_or(|value| is_whole(value, node));
    same && !whole && !(is_bare(left) && is_bare(right))
}

fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What is applied laid over an object: applied values win, nothing is removed.
///
/// # Errors
/// If items of a list cannot be told apart.
pub(super) fn merge(live: &Value, applied: &Value, node: &Node) -> Result<Value, String> {
    if !have_parts(Some(live), Some(applied), node) {
        return Ok(applied.clone());
    }
    if live.is_object() || applied.is_object() {
        let mut merged = live.as_object().cloned().unwrap_or_default();
        for (name, value) in members(Some(applied)).into_iter().flatten() {
            let value = match merged.get(name) {
                Some(live) => merge(live, value, node.member(name))?,
                None => value.clone(),
            };
            merged.insert(name.clone(), value);
        }
        return Ok(Value::Object(merged));
    }
    merge_lists(items(Some(live)), items(Some(applied)), node).map(Value::Array)
}

/// Applied items come in the order in which they are applied; others stay where they are before them.
fn merge_lists(live: &[Value], applied: &[Value], node: &Node) -> Result<Vec<Value>, String> {
    let named = |list: &[Value]| {
        list.iter()
            .map(|value| item(value, node))
            .collect::<Result<Vec<_>, _>>()
    };
    let (live_names, applied_names) = (named(live)?, named(applied)?);
    let wanted: BTreeSet<&Element> = applied_names.iter().collect();
    let mut shared = applied_names
        .iter()
        .filter(|name| live_names.contains(name))
        .peekable();
    let (mut merged, mut done) = (Vec::new(), BTreeSet::new());
    let (mut left, mut right) = (0, 0);
    while left < live.len() || right < applied.len() {
        let next = applied_names.get(right);
        if let Some(name) = live_names.get(left) {
            if !wanted.contains(name) {
                merged.push(live[left].clone());
                left += 1;
                continue;
            }
            if next == Some(name) {
                left += 1;
            } else if next.is_some() && shared.peek().is_some_and(|shared| *shared != name) {
                // It comes where it is applied.
                left += 1;
                continue;
            } else if done.contains(name) {
                left += 1;
            }
        }
        let Some(name) = next else { continue };
        let mut there = live_names
            .iter()
            .enumerate()
            .filter(|(_, live)| *live == name);
        merged.push(match (there.next(), there.next()) {
            (Some((at, _)), None) => merge(&live[at], &applied[right], node.others())?,
            // Of several that are alike none can be merged into.
            _ => applied[right].clone(),
        });
        done.insert(name);
        shared.next_if(|shared| *shared == name);
        right += 1;
    }
    Ok(merged)
}

/// What differs between an object before and after.
///
/// # Errors
/// If items of a list cannot be told apart.
pub(super) fn compare(before: &Value, after: &Value, node: &Node) -> Result<Difference, String> {
    let mut found = Difference::default();
    found.compare(Some(before), Some(after), node, &mut Vec::new())?;
    Ok(found)
}

impl Difference {
    /// Fields whose value is another now.
    pub(super) fn changed(&self) -> Set {
        self.modified.clone().union(&self.added)
    }

    /// Without the paths and what is below them.
    pub(super) fn without(self, tops: &[Path]) -> Self {
        Self {
            removed: self.removed.without(tops),
            modified: self.modified.without(tops),
            added: self.added.without(tops),
        }
    }

    fn note(&mut self, before: Option<&Value>, after: Option<&Value>, path: &Path) {
        let set = match (before, after) {
            (None, _) => &mut self.added,
            (_, None) => &mut self.removed,
            (Some(before), Some(after)) if before != after => &mut self.modified,
            _ => return,
        };
        if !path.is_empty() {
            set.0.insert(path.clone());
        }
    }

    fn compare(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        node: &Node,
        path: &mut Path,
    ) -> Result<(), String> {
        if before == after {
            return Ok(());
        }
        if let (Some(left), Some(right)) = (before, after)
            && !left.is_null()
            && !right.is_null()
            && shape(left) != shape(right)
        {
            self.modified.0.insert(path.clone());
            self.compare_parts(before, None, node, path)?;
            return self.compare_parts(None, after, node, path);
        }
        self.compare_parts(before, after, node, path)?;
        let has_parts = have_parts(before, after, node);
        if !has_parts || before.is_none() || after.is_none() {
            self.note(before, after, path);
        }
        Ok(())
    }

    fn compare_parts(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        node: &Node,
        path: &mut Path,
    ) -> Result<(), String> {
        if !have_parts(before, after, node) {
            return Ok(());
        }
        if members(before).or(members(after)).is_some() {
            self.compare_members(before, after, node, path)
        } else {
            self.compare_items(items(before), items(after), node, path)
        }
    }

    fn compare_members(
        &mut self,
        before: Option<&Value>,
        after: Option<&Value>,
        node: &Node,
        path: &mut Path,
    ) -> Result<(), String> {
        let (no_list, no_map) = (Value::Null, Value::Object(Map::new()));
        let names = |side| members(side).into_iter().flat_map(Map::keys);
        let all: BTreeSet<&String> = names(before)
            .chain(names(after))
            .chain(node.always())
            .collect();
        for name in all {
            let inner = node.member(name);
            let empty = match inner.items {
                Items::Atomic => &no_map,
                _ => &no_list,
            };
            let [before, after] = [before, after].map(|side| {
                let found = side?.get(name);
                found.or_else(|| inner.always.then_some(empty))
            });
            path.push(member(name));
            self.compare(before, after, inner, path)?;
            path.pop();
        }
        Ok(())
    }

    fn compare_items(
        &mut self,
        before: &[Value],
        after: &[Value],
        node: &Node,
        path: &mut Path,
    ) -> Result<(), String> {
        let mut found: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for value in before {
            found.entry(item(value, node)?).or_default().0.push(value);
        }
        for value in after {
            found.entry(item(value, node)?).or_default().1.push(value);
        }
        for (name, (before, after)) in found {
            path.push(name);
            match (before.as_slice(), after.as_slice()) {
                ([] | [_], [] | [_]) => {
                    self.compare(
                        before.first().copied(),
                        after.first().copied(),
                        node.others(),
                        path,
                    )?;
                }
                // Items that are alike are one field.
                ([_, _, ..], [_, _, ..]) => {
                    if before != after {
                        self.modified.0.insert(path.clone());
                    }
                }
                ([_, _, ..], single) => {
                    if let Some(single) = single.first() {
                        self.compare(None, Some(*single), node.others(), path)?;
                    }
                    self.removed.0.insert(path.clone());
                }
                (single, _) => {
                    if let Some(single) = single.first() {
                        self.compare(Some(*single), None, node.others(), path)?;
                    }
                    self.added.0.insert(path.clone());
                }
            }
            path.pop();
        }
        Ok(())
    }
}

/// Every field that a value mentions.
///
/// # Errors
/// If items of a list cannot be told apart.
pub(super) fn fields(value: &Value, node: &Node) -> Result<Set, String> {
    let mut set = Set::default();
    add_fields(value, node, &mut Vec::new(), &mut set)?;
    Ok(set)
}

fn add_fields(value: &Value, node: &Node, path: &mut Path, set: &mut Set) -> Result<(), String> {
    if is_whole(value, node) {
        if !value.is_null() && !path.is_empty() {
            set.0.insert(path.clone());
        }
        return Ok(());
    }
    for (name, value) in members(Some(value)).into_iter().flatten() {
        path.push(member(name));
        add_fields(value, node.member(name), path, set)?;
        let bare = value.is_null() || members(Some(value)).is_some_and(Map::is_empty);
        if bare || !node.declares(name) {
            set.0.insert(path.clone());
        }
        path.pop();
    }
    let mut names = BTreeMap::new();
    for value in items(Some(value)) {
        let name = item(value, node)?;
        let again = names.contains_key(&name);
        names.insert(name, (value, again));
    }
    for (name, (value, again)) in names {
        path.push(name);
        // Items that are alike are one field.
        if !again {
            add_fields(value, node.others(), path, set)?;
        }
        set.0.insert(path.clone());
        path.pop();
    }
    Ok(())
}

/// The value without these fields. What has nothing left in it is null, as in the real API server,
/// where it makes a custom resource invalid.
pub(super) fn remove(value: &Value, gone: &Set, node: &Node) -> Value {
    remove_at(value, gone, node, &mut Vec::new())
}

fn remove_at(value: &Value, gone: &Set, node: &Node, path: &mut Path) -> Value {
    let mut keep = |element: Element, value: &Value, node: &Node| {
        path.push(element);
        let kept = match gone.0.contains(path) {
            true => None,
            false if gone.reaches_below(path) => Some(remove_at(value, gone, node, path)),
            false => Some(value.clone()),
        };
        path.pop();
        kept
    };
    let kept: Value = match value {
        _ if is_whole(value, node) => Value::Null,
        Value::Object(members) => {
            let kept = members.iter().filter_map(|(name, value)| {
                let value = keep(member(name), value, node.member(name))?;
                Some((name.clone(), value))
            });
            kept.collect()
        }
        _ => {
            let kept = items(Some(value))
                .iter()
                .filter_map(|value| match item(value, node) {
                    Ok(name) => keep(name, value, node.others()),
                    Err(_) => Some(value.clone()),
                });
            kept.collect()
        }
    };
    if is_bare(Some(&kept)) {
        Value::Null
    } else {
        kept
    }
}

/// Whether the items of all lists can be told apart.
///
/// # Errors
/// The first list where they cannot, and why.
pub(super) fn check(value: &Value, node: &Node, path: &mut Path) -> Result<(), String> {
    if is_whole(value, node) {
        return Ok(());
    }
    let fail = |path: &Path, error: String| Err(format!("{}: {error}", shown(path)));
    for (name, value) in members(Some(value)).into_iter().flatten() {
        path.push(member(name));
        check(value, node.member(name), path)?;
        path.pop();
    }
    let mut names = BTreeSet::new();
    for (at, value) in items(Some(value)).iter().enumerate() {
        let name = match item(value, node) {
            Ok(name) => name,
            Err(error) => return fail(path, format!("element {at}: {error}")),
        };
        if !names.insert(name.clone()) {
            let key = shown(&[name]);
            return fail(path, format!("duplicate entries for key {key}"));
        }
        path.push(name);
        check(value, node.others(), path)?;
        path.pop();
    }
    Ok(())
}

/// The value as the real API server's types keep it: without members that are null, but for times,
/// and without lists and maps that are empty. What is kept to the letter stays.
pub(super) fn settled(value: Value, node: &Node) -> Value {
    match value {
        Value::Object(members) => {
            let settled = members.into_iter().filter_map(|(name, value)| {
                let inner = node.member(&name);
                let is_emptied = value.is_null() && inner.always && inner.items == Items::Atomic;
                let value = match is_emptied {
                    true => Value::Object(Map::new()),
                    false if inner.raw => value,
                    false => settled(value, inner),
                };
                let is_left_out = match &value {
                    Value::Object(members) => inner.free && members.is_empty(),
                    Value::Null => !name.ends_with("Time"),
                    other => is_bare(Some(other)),
                };
                (!is_left_out).then_some((name, value))
            });
            settled.collect()
        }
        Value::Array(items) => {
            let items = items.into_iter();
            items.map(|item| settled(item, node.others())).collect()
        }
        plain => plain,
    }
}
