// SPDX-License-Identifier: Apache-2.0
//! What holds of any apply and any strategic merge, whatever the objects are.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::LazyLock;

use proptest::prelude::*;
use proptest::sample::subsequence;
use serde_json::{Value, json};
use simcluster::patch::{self, ApplyError, Manager, MergeKeys};

static KEYS: LazyLock<MergeKeys> = LazyLock::new(|| {
    let numbers = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let item = json!({"type": "object", "properties": {
        "name": {"type": "string"},
        "value": {"type": "integer"},
        "labels": numbers,
    }});
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "tags": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": item,
        },
        "box": {"type": "object", "x-kubernetes-map-type": "atomic"},
        "list": {"type": "array"},
        "numbers": numbers,
        "size": {"type": "integer"},
    }}}});
    MergeKeys::custom(&schema, false)
});

fn numbers() -> impl Strategy<Value = Value> {
    let members = prop::collection::btree_map("[a-c]", 0..3, 1..4);
    members.prop_map(|members| json!(members))
}

fn parts() -> impl Strategy<Value = Value> {
    let part = (prop::option::of(0..3), prop::option::of(numbers()));
    let parts = prop::collection::btree_map("[p-r]", part, 1..4);
    parts.prop_map(|parts| {
        let part = |(name, (value, labels))| {
            let mut part = json!({"name": name});
            if let Some(value) = value {
                part["value"] = json!(value);
            }
            if let Some(labels) = labels {
                part["labels"] = labels;
            }
            part
        };
        parts.into_iter().map(part).collect()
    })
}

/// Something to apply: never a list or map that is empty, as that owns nothing or itself.
fn wish() -> impl Strategy<Value = Value> {
    let spec = (
        prop::option::of(subsequence(vec!["a", "b", "c"], 1..4)),
        prop::option::of(parts()),
        prop::option::of(numbers()),
        prop::option::of(prop::collection::vec(0..3, 1..3)),
        prop::option::of(numbers()),
        0..3,
    );
    let some = |spec: &mut Value, key: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec[key] = value;
        }
    };
    spec.prop_map(move |(tags, parts, atomic, list, numbers, size)| {
        let mut spec = json!({"size": size});
        some(&mut spec, "tags", tags.map(|tags| json!(tags)));
        some(&mut spec, "parts", parts);
        some(&mut spec, "box", atomic);
        some(&mut spec, "list", list.map(|list| json!(list)));
        some(&mut spec, "numbers", numbers);
        json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}, "spec": spec})
    })
}

fn manager(name: &str, force: bool) -> Manager<'_> {
    Manager {
        name,
        force,
        now: "2026-01-01T00:00:00Z",
        api_version: "example.org/v1",
        subresource: "",
    }
}

fn apply(live: Option<&Value>, wish: &Value, name: &str, force: bool) -> Result<Value, ApplyError> {
    patch::apply(live, wish, &manager(name, force), &KEYS)
}

/// The fields that a manager applies, as `fieldsV1`.
fn owned(object: &Value, name: &str) -> Value {
    let entries = object["metadata"]["managedFields"].as_array().unwrap();
    let entry = entries.iter().find(|entry| entry["manager"] == name);
    entry
        .map(|entry| entry["fieldsV1"].clone())
        .unwrap_or_default()
}

fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("managedFields");
    object
}

/// An object that three managers have applied to, each by force.
fn history() -> impl Strategy<Value = Value> {
    let writes = prop::collection::vec((subsequence(vec!["a", "b", "c"], 1), wish()), 1..5);
    writes.prop_map(|writes| {
        let written = writes
            .iter()
            .fold(None, |live: Option<Value>, (name, wish)| {
                Some(apply(live.as_ref(), wish, name[0], true).unwrap())
            });
        written.unwrap()
    })
}

proptest! {
    #[test]
    fn an_apply_twice_is_as_once(live in history(), wish in wish()) {
        let once = apply(Some(&live), &wish, "a", true).unwrap();
        prop_assert_eq!(apply(Some(&once), &wish, "a", false).unwrap(), once);
    }

    #[test]
    fn what_is_applied_is_there_and_owned(live in history(), wish in wish()) {
        let after = apply(Some(&live), &wish, "a", true).unwrap();
        let merged = apply(Some(&after), &wish, "new", false).unwrap();
        // Laid over what is there it changes nothing, and another owns the same by it.
        prop_assert_eq!(bare(&merged), bare(&after));
        prop_assert_eq!(owned(&merged, "new"), owned(&after, "a"));
    }

    #[test]
    fn equal_values_are_no_conflict(wish in wish()) {
        let first = apply(None, &wish, "a", false).unwrap();
        let second = apply(Some(&first), &wish, "b", false).unwrap();
        prop_assert_eq!(bare(&second), bare(&first));
        // What two want stays when one no longer wants it, and goes with the other.
        let nothing = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "x"}});
        let kept = apply(Some(&second), &nothing, "a", false).unwrap();
        prop_assert_eq!(bare(&kept), bare(&first));
        let gone = apply(Some(&kept), &nothing, "b", false).unwrap();
        prop_assert_eq!(gone, nothing);
    }

    #[test]
    fn a_single_manager_has_what_it_applied_last(first in wish(), last in wish()) {
        let live = apply(None, &first, "a", false).unwrap();
        let live = apply(Some(&live), &last, "a", false).unwrap();
        prop_assert_eq!(bare(&live), last);
    }

    #[test]
    fn nobody_is_named_who_owns_nothing(live in history()) {
        let entries = live["metadata"]["managedFields"].as_array().unwrap();
        for entry in entries {
            prop_assert!(!entry["fieldsV1"].as_object().unwrap().is_empty(), "{entry}");
        }
        let names: BTreeSet<&str> = entries.iter().map(|entry| entry["manager"].as_str().unwrap()).collect();
        prop_assert_eq!(names.len(), entries.len());
    }

    #[test]
    fn conflicts_are_what_force_takes(live in history(), wish in wish()) {
        let forced = apply(Some(&live), &wish, "new", true).unwrap();
        let lost = ["a", "b", "c"].iter().filter(|name| owned(&live, name) != owned(&forced, name));
        let lost: BTreeSet<String> = lost.map(|name| format!("conflict with {name:?}")).collect();
        match apply(Some(&live), &wish, "new", false) {
            Ok(after) => {
                prop_assert_eq!(after, forced);
                prop_assert_eq!(lost, BTreeSet::new());
            }
            Err(ApplyError::Conflict { causes, .. }) => {
                let named: BTreeSet<String> = causes.into_iter().map(|cause| cause.message).collect();
                prop_assert_eq!(lost, named);
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn an_update_gives_to_its_manager_what_it_changed(live in history(), wish in wish()) {
        let mut after = bare(&live);
        after["spec"] = wish["spec"].clone();
        let updated = patch::record_update(Some(&live), after.clone(), &manager("u", false), &KEYS);
        prop_assert_eq!(bare(&updated), after.clone());
        // The same again changes nothing.
        let again = patch::record_update(Some(&updated), after.clone(), &manager("v", false), &KEYS);
        prop_assert_eq!(&again, &updated);
        // Where something was set, it can be applied without a conflict by whoever wants the same.
        let same = apply(Some(&updated), &wish, "w", false).unwrap();
        prop_assert_eq!(bare(&same), after);
    }

    #[test]
    fn a_strategic_merge_twice_is_as_once(
        labels in numbers(), images in prop::collection::btree_map("[a-d]", 0..3, 1..4),
        gone in "[a-d]", finalizers in subsequence(vec!["x/a", "x/b", "x/c"], 0..4),
    ) {
        let keys = MergeKeys::built_in("", "Pod");
        let object = json!({
            "metadata": {"name": "x", "finalizers": ["x/a", "x/d"], "labels": {"a": 7, "z": 8}},
            "spec": {"containers": [{"name": "c", "image": "c", "args": ["1"]}, {"name": "a", "image": "a"}]},
        });
        let mut containers: Vec<Value> =
            images.iter().map(|(name, image)| json!({"name": name, "image": image})).collect();
        if !images.contains_key(&gone) {
            containers.push(json!({"name": gone, "$patch": "delete"}));
        }
        let change = json!({
            "metadata": {"labels": labels, "finalizers": finalizers},
            "spec": {"containers": containers},
        });
        let once = patch::strategic(&object, &change, &keys).unwrap();
        prop_assert_eq!(&patch::strategic(&once, &change, &keys).unwrap(), &once);
        // Items that are named are as they are named, others are as they were, but for the one that goes.
        let names: BTreeSet<&str> = ["a", "c"].into_iter().chain(images.keys().map(String::as_str)).collect();
        let names: BTreeSet<&str> = names.into_iter().filter(|name| images.contains_key(*name) || *name != gone).collect();
        let found = once["spec"]["containers"].as_array().unwrap();
        let found: BTreeSet<&str> = found.iter().map(|item| item["name"].as_str().unwrap()).collect();
        prop_assert_eq!(found, names);
    }
}
