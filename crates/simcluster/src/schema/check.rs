// SPDX-License-Identifier: Apache-2.0
//! Whether an object fits its schema, and what does not, in the words of the real server
//! (`kube-openapi/pkg/validation` and `apiextensions-apiserver/pkg/apiserver/validation`).

use serde_json::{Value, json};

use super::{OBJECT, join, properties};
use crate::failure::Cause;

const INVALID: &str = "FieldValueInvalid";
/// Faults after which the real server does not look at rules in CEL, and says so.
const BLOCKING: [&str; 5] = [
    "FieldValueNotSupported",
    "FieldValueRequired",
    "FieldValueTooLong",
    "FieldValueTooMany",
    "FieldValueTypeInvalid",
];
const UNCHECKED: &str = "Invalid value: null: some validation rules were not checked because the object \
    was invalid; correct the existing errors to complete validation";
const INT_OR_STRING: &str = "x-kubernetes-int-or-string";

/// Everything that does not fit.
pub fn causes(schema: &Value, object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    for (name, known) in properties(schema) {
        if let Some(value) = object.get(name)
            && !OBJECT.contains(&name.as_str())
        {
            check(known, value, name, &mut causes);
        }
    }
    required(schema, object, "", &mut causes);
    if causes.iter().any(|cause| BLOCKING.contains(&cause.reason)) {
        causes.push(Cause {
            reason: INVALID,
            field: "<nil>".to_owned(),
            message: UNCHECKED.to_owned(),
        });
    }
    causes
}

/// A value as messages show it: objects and lists by their type.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        other => other.to_string(),
    }
}

fn check(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    if value.is_null() && schema["nullable"] == true {
        return;
    }
    if let Some(cause) = wrong_type(schema, value, path) {
        causes.push(cause);
        return;
    }
    match value {
        Value::Object(members) => {
            check_size(
                schema,
                "Properties",
                "properties",
                members.len(),
                path,
                causes,
            );
            for (name, value) in members {
                let known = schema["properties"].get(name);
                let others = &schema["additionalProperties"];
                let known = known.or_else(|| others.is_object().then_some(others));
                if let Some(known) = known {
                    check(known, value, &join(path, name), causes);
                }
            }
            required(schema, value, path, causes);
        }
        Value::Array(items) => {
            check_size(schema, "Items", "items", items.len(), path, causes);
            for (number, item) in items.iter().enumerate() {
                check(&schema["items"], item, &format!("{path}[{number}]"), causes);
            }
            duplicates(schema, items, path, causes);
        }
        Value::String(text) => check_text(schema, text, path, causes),
        Value::Number(_) => check_number(schema, value, path, causes),
        _ => {}
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            field: path.to_owned(),
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                known.join(", ")
            ),
        });
    }
}

fn required(schema: &Value, object: &Value, path: &str, causes: &mut Vec<Cause>) {
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if object.get(name).is_none() {
            causes.push(Cause::required(join(path, name), ""));
        }
    }
}

fn wrong_type(schema: &Value, value: &Value, path: &str) -> Option<Cause> {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    if schema[INT_OR_STRING] == true {
        let fits = matches!(found, "integer" | "string");
        return (!fits).then(|| type_cause(path, "integer,string", found));
    }
    let wanted = schema["type"].as_str()?;
    let fits = wanted == found || wanted == "number" && found == "integer";
    (!fits).then(|| type_cause(path, wanted, found))
}

fn type_cause(path: &str, wanted: &str, found: &str) -> Cause {
    Cause {
        reason: "FieldValueTypeInvalid",
        field: path.to_owned(),
        message: format!(
            "Invalid value: \"{found}\": {path} in body must be of type {wanted}: \"{found}\""
        ),
    }
}

/// `maxItems` and its like.
fn check_size(
    schema: &Value,
    what: &str,
    word: &str,
    count: usize,
    path: &str,
    causes: &mut Vec<Cause>,
) {
    let bound = |side: &str| schema[format!("{side}{what}")].as_u64();
    let count = count as u64;
    if let Some(most) = bound("max").filter(|most| count > *most) {
        causes.push(Cause {
            reason: "FieldValueTooMany",
            field: path.to_owned(),
            message: format!("Too many: {count}: must have at most {most} {word}"),
        });
    }
    if let Some(least) = bound("min").filter(|least| count < *least) {
        let why = format!("{path} in body should have at least {least} {word}");
        causes.push(invalid(path, &json!(count), &why));
    }
}

fn check_text(schema: &Value, text: &str, path: &str, causes: &mut Vec<Cause>) {
    let count = text.chars().count() as u64;
    let value = json!(text);
    if let Some(most) = schema["maxLength"].as_u64().filter(|most| count > *most) {
        causes.push(Cause {
            reason: "FieldValueTooLong",
            field: path.to_owned(),
            message: format!("Too long: may not be more than {most} bytes"),
        });
    }
    if let Some(least) = schema["minLength"].as_u64().filter(|least| count < *least) {
        let why = format!("{path} in body should be at least {least} chars long");
        causes.push(invalid(path, &value, &why));
    }
    if let Some(pattern) = schema["pattern"].as_str()
        && regex::Regex::new(pattern).is_ok_and(|regex| !regex.is_match(text))
    {
        let why = format!("{path} in body should match '{pattern}'");
        causes.push(invalid(path, &value, &why));
    }
}

fn check_number(schema: &Value, value: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(number) = value.as_f64() else { return };
    let mut refuse = |bound: &Value, words: &str| {
        let why = format!("{path} in body should be {words} {bound}");
        causes.push(invalid(path, value, &why));
    };
    let (least, most) = (&schema["minimum"], &schema["maximum"]);
    let (above, below) = (
        schema["exclusiveMinimum"] == true,
        schema["exclusiveMaximum"] == true,
    );
    match least.as_f64() {
        Some(bound) if above && number <= bound => refuse(least, "greater than"),
        Some(bound) if number < bound => refuse(least, "greater than or equal to"),
        _ => {}
    }
    match most.as_f64() {
        Some(bound) if below && number >= bound => refuse(most, "less than"),
        Some(bound) if number > bound => refuse(most, "less than or equal to"),
        _ => {}
    }
}

/// Items of a set or a map must differ in their value or keys.
fn duplicates(schema: &Value, items: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let keys = schema["x-kubernetes-list-map-keys"].as_array();
    let identity = |item: &Value| match (schema["x-kubernetes-list-type"].as_str(), keys) {
        (Some("set"), _) => Some(item.clone()),
        (Some("map"), Some(keys)) => {
            let pairs = keys.iter().filter_map(Value::as_str);
            Some(
                pairs
                    .map(|key| (key.to_owned(), item[key].clone()))
                    .collect(),
            )
        }
        _ => None,
    };
    let mut seen = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let Some(identity) = identity(item) else {
            return;
        };
        if seen.contains(&identity) {
            causes.push(Cause {
                reason: "FieldValueDuplicate",
                field: format!("{path}[{number}]"),
                message: format!("Duplicate value: {identity}"),
            });
        }
        seen.push(identity);
    }
}

fn invalid(path: &str, value: &Value, why: &str) -> Cause {
    Cause {
        reason: INVALID,
        field: path.to_owned(),
        message: format!("Invalid value: {}: {why}", shown(value)),
    }
}
