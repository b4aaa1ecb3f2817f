// SPDX-License-Identifier: Apache-2.0
//! What the schema of a custom resource makes of an object: fields that it does not know go, missing
//! ones get their default, and the rest must fit.

mod check;
mod rules;

use serde_json::Value;

pub use check::causes;
pub use rules::Rules;

const KEEPS_UNKNOWN: &str = "x-kubernetes-preserve-unknown-fields";
const IS_OBJECT: &str = "x-kubernetes-embedded-resource";
/// What every object has, whatever its schema says.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Takes away what the schema does not know; the paths of what went, such as `spec.more`.
pub fn prune(schema: &Value, object: &mut Value) -> Vec<String> {
    let mut unknown = Vec::new();
    prune_at(schema, object, "", true, &mut unknown);
    unknown
}

fn prune_at(
    schema: &Value,
    value: &mut Value,
    path: &str,
    is_root: bool,
    unknown: &mut Vec<String>,
) {
    match value {
        Value::Object(members) => {
            let others = &schema["additionalProperties"];
            let keeps = schema[KEEPS_UNKNOWN] == true || schema.is_null() || *others == true;
            let is_object = is_root || schema[IS_OBJECT] == true;
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if is_object && OBJECT.contains(&name.as_str()) {
                    continue;
                }
                let below = join(path, &name);
                let known = schema["properties"].get(&name);
                let known = known.or_else(|| others.is_object().then_some(others));
                match (known, members.get_mut(&name)) {
                    (Some(known), Some(value)) => prune_at(known, value, &below, false, unknown),
                    (None, _) if !keeps => {
                        members.remove(&name);
                        unknown.push(below);
                    }
                    _ => {}
                }
            }
        }
        Value::Array(items) => {
            let schema = &schema["items"];
            for (number, item) in items.iter_mut().enumerate() {
                prune_at(schema, item, &format!("{path}[{number}]"), false, unknown);
            }
        }
        _ => {}
    }
}

/// Fills in the defaults of the schema. A null where none may be counts as missing.
pub fn fill(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, value| {
                let known = &schema["properties"][name];
                !value.is_null() || known.is_null() || known["nullable"] == true
            });
            for (name, known) in properties(schema) {
                if let Some(default) = known.get("default") {
                    let missing = members.entry(name.clone());
                    missing.or_insert_with(|| default.clone());
                }
                if let Some(value) = members.get_mut(name) {
                    fill(known, value);
                }
            }
            let others = &schema["additionalProperties"];
            if others.is_object() {
                members.values_mut().for_each(|value| fill(others, value));
            }
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| fill(&schema["items"], item)),
        _ => {}
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn join(path: &str, name: &str) -> String {
    match path {
        "" => name.to_owned(),
        path => format!("{path}.{name}"),
    }
}
