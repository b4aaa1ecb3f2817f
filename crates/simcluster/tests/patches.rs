// SPDX-License-Identifier: Apache-2.0
//! JSON patch and merge patch: laws, and what Kubernetes reads otherwise than the RFC.

use proptest::prelude::*;
use serde_json::{Value, json};
use simcluster::patch::{self, PatchError};

/// Some JSON without null, as objects in a cluster are.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (0..9).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            any_object(inner),
        ]
    })
}

fn any_object(of: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    let members = prop::collection::btree_map("[a-d]", of, 0..4);
    members.prop_map(|members| Value::Object(members.into_iter().collect()))
}

/// The merge patch that leads from one object to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Some(from), Some(to_members)) = (from.as_object(), to.as_object()) else {
        return to.clone();
    };
    let gone = from.keys().filter(|key| !to_members.contains_key(*key));
    let gone = gone.map(|key| (key.clone(), Value::Null));
    let changed = to_members
        .iter()
        .filter(|(key, value)| from.get(*key) != Some(value));
    let changed = changed.map(|(key, value)| {
        let old = from.get(key).unwrap_or(&Value::Null);
        (key.clone(), difference(old, value))
    });
    gone.chain(changed).collect()
}

proptest! {
    #[test]
    fn a_merge_patch_twice_is_as_once(object in any_object(any_json()), patch in any_object(any_json())) {
        let once = patch::merge(&object, &patch);
        prop_assert_eq!(patch::merge(&once, &patch), once);
    }

    #[test]
    fn a_difference_leads_to_where_it_was_taken(from in any_object(any_json()), to in any_object(any_json())) {
        prop_assert_eq!(patch::merge(&from, &difference(&from, &to)), to);
    }

    #[test]
    fn a_json_patch_does_all_or_nothing(object in any_object(any_json()), value in any_json(), key in "[a-d]") {
        let path = format!("/{key}");
        let add = json!({"op": "add", "path": path, "value": value});
        let added = patch::json(&object, &json!([add])).unwrap();
        prop_assert_eq!(&added[&key], &value);
        let fails = json!({"op": "test", "path": path, "value": "never"});
        prop_assert_eq!(patch::json(&object, &json!([add, fails])), Err(PatchError::Refused));
    }
}

/// kube's finalizers begin with this test.
#[test]
fn a_test_for_null_passes_where_there_is_nothing() {
    let object = json!({"metadata": {"name": "a"}});
    let finalizers = |test: Value| {
        let test = json!({"op": "test", "path": "/metadata/finalizers", "value": test});
        let add = json!({"op": "add", "path": "/metadata/finalizers", "value": ["a/b"]});
        patch::json(&object, &json!([test, add]))
    };
    let expected = json!({"metadata": {"name": "a", "finalizers": ["a/b"]}});
    assert_eq!(finalizers(Value::Null), Ok(expected));
    assert_eq!(finalizers(json!([])), Err(PatchError::Refused));
}

#[test]
fn what_is_no_list_of_operations_is_named() {
    let error = patch::json(&json!({}), &json!({"op": "add"})).unwrap_err();
    let message = "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
    assert_eq!(error.to_string(), message);
}
