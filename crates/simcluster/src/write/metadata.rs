// SPDX-License-Identifier: Apache-2.0
//! What `metadata` of an object in a request must be (`apimachinery/pkg/api/validation`).

use serde_json::{Map, Value, json};

use crate::failure::{Cause, Failure};
use crate::kind::Kind;
use crate::selector;
use crate::state::Ask;

/// Words of the real server for a name that is none (RFC 1123 subdomain).
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
    characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', \
    regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";

/// Words for a namespace's name (RFC 1123 label).
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
    '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex \
    used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// A body must be an object of the right kind, with metadata, and named as the URL has it. Gives it a
/// `metadata` with the namespace of the URL.
///
/// # Errors
/// 400 where it is something else.
pub fn check_body(ask: &Ask, mut body: Value) -> Result<Value, Failure> {
    let kind = &ask.kind;
    let Some(members) = body.as_object_mut() else {
        return Err(Failure::bad_request("the body is no object"));
    };
    let text = |members: &Map<String, Value>, at: &str| {
        members
            .get(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let (api_version, named) = (text(members, "apiVersion"), text(members, "kind"));
    check_kind(kind, &api_version, &named, members)?;
    members.insert("apiVersion".to_owned(), json!(kind.api_version()));
    members.insert("kind".to_owned(), json!(kind.kind));
    if kind.custom.is_none() {
        check_types(members, &["spec", "status"], Value::is_object)?;
    }
    let metadata = members.entry("metadata").or_insert_with(|| json!({}));
    if metadata.is_null() {
        *metadata = json!({});
    }
    let Some(metadata) = metadata.as_object_mut() else {
        return Err(Failure::bad_request("metadata is no object"));
    };
    check_types(metadata, &["labels", "annotations"], Value::is_object)?;
    let lists = ["finalizers", "ownerReferences", "managedFields"];
    check_types(metadata, &lists, Value::is_array)?;
    let namespace = text(metadata, "namespace");
    if !namespace.is_empty() && namespace != ask.namespace {
        return Err(Failure::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    if ask.kind.is_namespaced {
        metadata.insert("namespace".to_owned(), json!(ask.namespace));
    }
    let name = text(metadata, "name");
    if !ask.name.is_empty() && name != ask.name {
        let message = format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            ask.name
        );
        return Err(Failure::bad_request(message));
    }
    metadata.remove("selfLink");
    drop_empty(metadata);
    Ok(body)
}

/// Some members must be of a type, where they are there.
fn check_types(
    members: &Map<String, Value>,
    names: &[&str],
    is_right: fn(&Value) -> bool,
) -> Result<(), Failure> {
    for name in names {
        let value = members.get(*name).unwrap_or(&Value::Null);
        if !value.is_null() && !is_right(value) {
            return Err(Failure::bad_request(format!("{name} is of the wrong type")));
        }
    }
    Ok(())
}

/// Members that mean the same as none, as the real server's types leave them out.
fn drop_empty(metadata: &mut Map<String, Value>) {
    metadata.retain(|_, value| match value {
        Value::Null => false,
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    });
}

/// Of a built-in kind the body need not say what it is.
fn check_kind(
    kind: &Kind,
    api_version: &str,
    named: &str,
    members: &Map<String, Value>,
) -> Result<(), Failure> {
    let expected = kind.api_version();
    if kind.custom.is_some() {
        if api_version != expected {
            return Err(Failure::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({expected})"
            )));
        }
        if named != kind.kind {
            let why = format!("must be {}", kind.kind);
            let cause = Cause::invalid("kind", &json!(named), &why);
            let other = Kind {
                kind: named.to_owned(),
                ..kind.clone()
            };
            let metadata = members.get("metadata").unwrap_or(&Value::Null);
            let name = metadata["name"].as_str().unwrap_or_default();
            return Err(Failure::invalid(&other, name, &[cause]));
        }
        return Ok(());
    }
    let is_right = (api_version.is_empty() || api_version == expected)
        && (named.is_empty() || named == kind.kind);
    if is_right {
        return Ok(());
    }
    let package = match kind.group.split('.').next() {
        None | Some("") => "core",
        Some(word) => word,
    };
    let version = api_version.rsplit('/').next().unwrap_or_default();
    Err(Failure::bad_request(format!(
        "{named} in version {version:?} cannot be handled as a {0}: converting \
         ({version}.{named}) to ({package}.{0}): unknown conversion",
        kind.kind,
    )))
}

/// Name, labels, annotations and finalizers.
pub fn causes(kind: &Kind, object: &Value) -> Vec<Cause> {
    let metadata = &object["metadata"];
    let mut causes = Vec::new();
    if let Some(name) = metadata["name"].as_str() {
        causes.extend(name_cause(kind, name));
    }
    for (key, value) in members(&metadata["labels"]) {
        for fault in selector::key_faults(key) {
            causes.push(Cause::invalid("metadata.labels", &json!(key), &fault));
        }
        for fault in selector::value_faults(value.as_str().unwrap_or_default()) {
            causes.push(Cause::invalid("metadata.labels", value, &fault));
        }
    }
    for (key, _) in members(&metadata["annotations"]) {
        for fault in selector::key_faults(&key.to_lowercase()) {
            causes.push(Cause::invalid("metadata.annotations", &json!(key), &fault));
        }
    }
    causes
}

fn name_cause(kind: &Kind, name: &str) -> Option<Cause> {
    let is_path = name == "." || name == ".." || name.contains(['/', '%']);
    if kind.group == "rbac.authorization.k8s.io" {
        let why = "may not contain '/' or '%', or be '.' or '..'";
        return is_path.then(|| Cause::invalid("metadata.name", &json!(name), why));
    }
    let is_label = |part: &str| {
        let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        !part.is_empty()
            && part.chars().all(inside)
            && !part.starts_with('-')
            && !part.ends_with('-')
    };
    let (longest, words, is_good) = match kind.kind.as_str() {
        "Namespace" => (63, LABEL, is_label(name)),
        _ => (253, SUBDOMAIN, name.split('.').all(is_label)),
    };
    if name.len() > longest {
        let why = format!("must be no more than {longest} bytes");
        return Some(Cause::invalid("metadata.name", &json!(name), &why));
    }
    (!is_good).then(|| Cause::invalid("metadata.name", &json!(name), words))
}

fn members(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}
