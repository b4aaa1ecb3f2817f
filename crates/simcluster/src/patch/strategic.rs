// SPDX-License-Identifier: Apache-2.0
//! Strategic merge patch: a merge patch that knows which lists have keys, with orders in it that
//! begin with `$`.

use serde_json::{Map, Value};

use super::PatchError;
use super::json::kind;
use super::keys::{MergeKeys, Node};

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const DELETE: &str = "$deleteFromPrimitiveList/";
const ORDER: &str = "$setElementOrder/";

/// The object after a strategic merge patch.
///
/// # Errors
/// If the patch is no object, has an order that is none, or an item without its key.
pub fn strategic(object: &Value, patch: &Value, keys: &MergeKeys) -> Result<Value, PatchError> {
    let Value::Object(patch) = patch else {
        let kind = kind(patch);
        let target = "Go value of type map[string]interface {}";
        let message = format!("json: cannot unmarshal {kind} into {target}");
        return Err(PatchError::Malformed(message));
    };
    let object = object.as_object().cloned().unwrap_or_default();
    merge_map(object, patch, &keys.root).map(Value::Object)
}

fn merge_map(
    mut object: Map<String, Value>,
    patch: &Map<String, Value>,
    node: &Node,
) -> Result<Map<String, Value>, PatchError> {
    match patch.get(PATCH).map(|order| (order, order.as_str())) {
        None => {}
        Some((_, Some("replace"))) => {
            return Ok(raw_members(patch));
        }
        Some((_, Some("delete"))) => return Ok(Map::new()),
        Some((order, _)) => return Err(unknown(order, patch)),
    }
    retain(&mut object, patch)?;
    for (order, values) in patch {
        let Some(name) = order.strip_prefix(DELETE) else {
            continue;
        };
        if let (Some(Value::Array(there)), Value::Array(gone)) = (object.get_mut(name), values) {
            there.retain(|value| !gone.contains(value));
        }
    }
    let key = |name: &str| node.member(name).merge.as_deref().unwrap_or_default();
    let mut orders = Vec::new();
    for (order, wanted) in patch {
        let Some(name) = order.strip_prefix(ORDER) else {
            continue;
        };
        let wanted = list(wanted, "invalid patch format of setElementOrder list")?;
        let server = object.get(name).and_then(Value::as_array);
        let server = server.map_or_else(Vec::new, |server| names(server, key(name)));
        orders.push((name, names(wanted, key(name)), server));
    }
    for (name, wanted) in patch.iter().filter(|(name, _)| !name.starts_with('$')) {
        let value = match (object.remove(name), wanted) {
            (_, Value::Null) => continue,
            (Some(Value::Object(there)), Value::Object(wanted)) => {
                Value::Object(merge_map(there, wanted, node.member(name))?)
            }
            (Some(Value::Array(there)), Value::Array(wanted)) => {
                Value::Array(merge_list(there, wanted, node.member(name))?)
            }
            (_, wanted) => match clean(wanted) {
                Some(value) => value,
                None => continue,
            },
        };
        object.insert(name.clone(), value);
    }
    for (name, wanted, server) in orders {
        if let Some(Value::Array(there)) = object.get_mut(name) {
            *there = in_order(std::mem::take(there), &wanted, &server, key(name));
        }
    }
    Ok(object)
}

/// Follows `$retainKeys`: only these members stay.
fn retain(object: &mut Map<String, Value>, patch: &Map<String, Value>) -> Result<(), PatchError> {
    const WRONG: &str = "invalid patch format of retainKeys";
    let Some(kept) = patch.get(RETAIN) else {
        return Ok(());
    };
    let kept = list(kept, WRONG)?;
    let is_kept = |name: &String| kept.iter().any(|kept| kept == name);
    let mut set = patch
        .iter()
        .filter(|(name, value)| !name.starts_with('$') && !value.is_null());
    if !set.all(|(name, _)| is_kept(name)) {
        return Err(PatchError::Malformed(WRONG.to_owned()));
    }
    object.retain(|name, _| is_kept(name));
    Ok(())
}

fn merge_list(there: Vec<Value>, wanted: &[Value], node: &Node) -> Result<Vec<Value>, PatchError> {
    match node.merge.as_deref() {
        None => Ok(wanted.iter().map(raw).collect()),
        Some("") => {
            let mut merged: Vec<Value> = Vec::new();
            for value in there.iter().chain(wanted) {
                if !merged.contains(value) {
                    merged.push(value.clone());
                }
            }
            Ok(in_order(merged, wanted, &there, ""))
        }
        Some(key) => merge_items(there, wanted, key, node.others()),
    }
}

fn merge_items(
    mut there: Vec<Value>,
    wanted: &[Value],
    key: &str,
    node: &Node,
) -> Result<Vec<Value>, PatchError> {
    let (mut items, mut replaces) = (Vec::new(), false);
    for item in wanted {
        let Value::Object(members) = item else {
            let message = format!("expected a map, but received {item}");
            return Err(PatchError::Failed(message));
        };
        let name = || members.get(key).ok_or_else(|| no_key(members, key));
        match members.get(PATCH).map(|order| (order, order.as_str())) {
            None => items.push((name()?, members)),
            Some((_, Some("replace"))) => replaces = true,
            Some((_, Some("delete"))) => {
                let gone = name()?;
                there.retain(|item| item.get(key) != Some(gone));
            }
            Some((_, Some("merge"))) => {
                let message = "merging lists cannot yet be specified in the patch";
                return Err(PatchError::Failed(message.to_owned()));
            }
            Some((order, _)) => return Err(unknown(order, members)),
        }
    }
    if replaces {
        return Ok(items
            .into_iter()
            .map(|(_, item)| Value::Object(raw_members(item)))
            .collect());
    }
    let server = names(&there, key);
    let order: Vec<Value> = items.iter().map(|(name, _)| (*name).clone()).collect();
    for (name, members) in items {
        let found = there.iter_mut().find(|item| item.get(key) == Some(name));
        match found {
            Some(found) => {
                let old = found.as_object().cloned().unwrap_or_default();
                *found = Value::Object(merge_map(old, members, node)?);
            }
            None => there.push(Value::Object(raw_members(members))),
        }
    }
    Ok(in_order(there, &order, &server, key))
}

/// The items that the patch names in the order of the patch, the others in that of the server; where
/// both orders know two of them, as the server has them.
fn in_order(items: Vec<Value>, patch: &[Value], server: &[Value], key: &str) -> Vec<Value> {
    let at = |order: &[Value], item: &Value| {
        let name = name(item, key);
        order.iter().position(|known| *known == name)
    };
    let (mut named, mut others): (Vec<Value>, Vec<Value>) = items
        .into_iter()
        .partition(|item| at(patch, item).is_some());
    named.sort_by_key(|item| at(patch, item));
    others.sort_by_key(|item| at(server, item));
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    let mut sorted = Vec::new();
    while let (Some(left), Some(right)) = (others.peek(), named.peek()) {
        let first = match (at(server, left), at(server, right)) {
            (Some(left), Some(right)) if left < right => others.next(),
            _ => named.next(),
        };
        sorted.extend(first);
    }
    sorted.extend(named);
    sorted.extend(others);
    sorted
}

fn names(items: &[Value], key: &str) -> Vec<Value> {
    items.iter().map(|item| name(item, key)).collect()
}

/// What tells an item from others: its key, or itself.
fn name(item: &Value, key: &str) -> Value {
    match key {
        "" => item.clone(),
        key => item.get(key).cloned().unwrap_or_default(),
    }
}

/// A new member without orders and nulls; `None` if it is an order itself.
fn clean(value: &Value) -> Option<Value> {
    match value {
        Value::Object(members) if members.contains_key(PATCH) => None,
        Value::Object(members) => {
            let kept = members
                .iter()
                .filter(|(name, value)| !is_order(name) && !value.is_null());
            let kept = kept.filter_map(|(name, value)| Some((name.clone(), clean(value)?)));
            Some(kept.collect())
        }
        Value::Array(items) => Some(items.iter().filter_map(clean).collect()),
        plain => Some(plain.clone()),
    }
}

/// A new item as it is: orders in it are not followed, as the real API server does not, only left out.
fn raw(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(raw_members(members)),
        Value::Array(items) => items.iter().map(raw).collect(),
        plain => plain.clone(),
    }
}

fn raw_members(members: &Map<String, Value>) -> Map<String, Value> {
    let kept = members
        .iter()
        .filter(|(name, value)| !is_order(name) && !value.is_null());
    kept.map(|(name, value)| (name.clone(), raw(value)))
        .collect()
}

fn is_order(name: &str) -> bool {
    name == PATCH || name == RETAIN || name.starts_with(DELETE) || name.starts_with(ORDER)
}

fn list<'a>(value: &'a Value, wrong: &str) -> Result<&'a Vec<Value>, PatchError> {
    value
        .as_array()
        .ok_or_else(|| PatchError::Malformed(wrong.to_owned()))
}

fn unknown(order: &Value, members: &Map<String, Value>) -> PatchError {
    let order = order
        .as_str()
        .map_or_else(|| order.to_string(), str::to_owned);
    PatchError::Failed(format!(
        "unknown patch type: {order} in map: {}",
        go(members)
    ))
}

fn no_key(members: &Map<String, Value>, key: &str) -> PatchError {
    let members = go(members);
    PatchError::Failed(format!(
        "map: {members} does not contain declared merge key: {key}"
    ))
}

/// A map as Go prints it in errors.
fn go(members: &Map<String, Value>) -> String {
    fn shown(value: &Value) -> String {
        match value {
            Value::Null => "<nil>".to_owned(),
            Value::String(text) => text.clone(),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(shown).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Object(members) => go(members),
            plain => plain.to_string(),
        }
    }
    let members = members
        .iter()
        .map(|(name, value)| format!("{name}:{}", shown(value)));
    format!("map[{}]", members.collect::<Vec<_>>().join(" "))
}
