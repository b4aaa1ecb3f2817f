// SPDX-License-Identifier: Apache-2.0
//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386).

use json_patch::PatchOperation;
use json_patch::jsonptr::Pointer;
use serde_json::{Map, Value};

use super::PatchError;

/// The object after the operations of a JSON patch, or none of them.
///
/// Where the RFC lets an operation fail, the real API server reads a missing member of an object
/// that is there as null: a `test` for null passes, `replace` adds, `copy` copies null. A missing
/// `value` is null too. Clients rely on the first: kube's finalizers test that there are none.
/// Unlike there, an index does not count from the end.
///
/// # Errors
/// If `operations` is no list of operations, or one of them fails.
pub fn json(object: &Value, operations: &Value) -> Result<Value, PatchError> {
    let Some(operations) = operations.as_array() else {
        let kind = kind(operations);
        let message = format!(
            "error decoding patch: json: cannot unmarshal {kind} into Go value of type []handlers.jsonPatchOp"
        );
        return Err(PatchError::Malformed(message));
    };
    let mut object = object.clone();
    for operation in operations {
        let operation = read(operation).ok_or(PatchError::Refused)?;
        if let Some(operation) = lenient(&object, operation) {
            json_patch::patch(&mut object, &[operation]).map_err(|_| PatchError::Refused)?;
        }
    }
    Ok(object)
}

/// The object after a JSON merge patch: members that are null there are removed, objects are merged,
/// all else is replaced.
pub fn merge(object: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch.clone();
    };
    let mut merged = object.as_object().cloned().unwrap_or_default();
    for (key, wanted) in patch {
        if wanted.is_null() {
            merged.remove(key);
        } else {
            let there = merged.get(key).unwrap_or(&Value::Null);
            let value = merge(there, wanted);
            merged.insert(key.clone(), value);
        }
    }
    Value::Object(merged)
}

fn read(operation: &Value) -> Option<PatchOperation> {
    let mut members: Map<String, Value> = operation.as_object()?.clone();
    members.entry("value").or_insert(Value::Null);
    serde_json::from_value(Value::Object(members)).ok()
}

/// The operation that does what the real API server does, by the RFC; `None` if that is nothing.
fn lenient(object: &Value, operation: PatchOperation) -> Option<PatchOperation> {
    use json_patch::AddOperation;
    match operation {
        PatchOperation::Test(test) if test.value.is_null() && is_free(object, &test.path) => None,
        PatchOperation::Replace(replace) if is_free(object, &replace.path) => {
            let (path, value) = (replace.path, replace.value);
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        PatchOperation::Copy(copy) if is_free(object, &copy.from) => {
            let (path, value) = (copy.path, Value::Null);
            Some(PatchOperation::Add(AddOperation { path, value }))
        }
        other => Some(other),
    }
}

/// Whether this names a member that an object has not, though the object is there.
fn is_free(object: &Value, path: &Pointer) -> bool {
    let Some((parent, _)) = path.split_back() else {
        return false;
    };
    let parent = object.pointer(parent.as_str());
    parent.is_some_and(Value::is_object) && object.pointer(path.as_str()).is_none()
}

/// What Go calls a JSON value in its errors.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
