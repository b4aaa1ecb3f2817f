// SPDX-License-Identifier: Apache-2.0
//! OpenAPI v3, as much as kubectl asks it for: whether fields are validated, and the schemas of custom
//! resources for `explain`. Of built-in kinds it tells only what every object has.

use serde_json::{Map, Value, json};

use crate::failure::Failure;
use crate::kind::{Kind, Kinds};

/// The reference to the schema of metadata.
const METADATA: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// Parameters that writes have.
const PARAMETERS: &[&str] = &["dryRun", "fieldManager", "fieldValidation", "force"];

/// The list of documents, or the one of a group version, such as `apis/apps/v1`.
///
/// # Errors
/// 404 if there is no such group version.
pub fn answer(kinds: &Kinds, document: &str) -> Result<Value, Failure> {
    let of_document: Vec<&Kind> = kinds
        .all()
        .map(|kind| &**kind)
        .filter(|kind| root(kind).trim_start_matches('/') == document)
        .collect();
    match (document, of_document.is_empty()) {
        ("", _) => Ok(list(kinds)),
        (_, true) => Err(Failure::no_page()),
        _ => Ok(describe(&of_document)),
    }
}

fn list(kinds: &Kinds) -> Value {
    let mut paths = Map::new();
    for kind in kinds.all() {
        let root = root(kind);
        // Clients keep a document as long as its hash is the same.
        let hash = kinds.digest(&kind.group, &kind.version);
        let link = json!({"serverRelativeURL": format!("/openapi/v3{root}?hash={hash:X}")});
        paths.insert(root.trim_start_matches('/').to_owned(), link);
    }
    json!({ "paths": paths })
}

fn root(kind: &Kind) -> String {
    match kind.group.as_str() {
        "" => format!("/api/{}", kind.version),
        group => format!("/apis/{group}/{}", kind.version),
    }
}

fn describe(kinds: &[&Kind]) -> Value {
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for kind in kinds {
        let space = if kind.is_namespaced {
            "/namespaces/{namespace}"
        } else {
            ""
        };
        let collection = format!("{}{space}/{}", root(kind), kind.plural);
        let identity = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
        let operation = |action: &str| operation(action, &identity);
        paths.insert(
            format!("{collection}/{{name}}"),
            json!({
                "get": operation("get"),
                "put": operation("put"),
                "patch": operation("patch"),
                "delete": operation("delete"),
            }),
        );
        paths.insert(
            collection,
            json!({"get": operation("list"), "post": operation("post")}),
        );
        schemas.insert(schema_name(kind), schema(kind, &identity));
    }
    schemas.insert(METADATA.to_owned(), metadata());
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes (simulated)", "version": "v1"},
        "paths": paths,
        "components": {"schemas": schemas},
    })
}

fn operation(action: &str, identity: &Value) -> Value {
    let parameters: Vec<Value> = PARAMETERS
        .iter()
        .map(|name| json!({"name": name, "in": "query", "schema": {"type": "string"}}))
        .collect();
    json!({
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": identity,
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
    })
}

/// `dev.slicewright.v1.GpuNode`: the group from behind, as the real server names custom resources.
fn schema_name(kind: &Kind) -> String {
    let group = match kind.group.as_str() {
        "" => "core",
        group => group,
    };
    let mut parts: Vec<&str> = group.split('.').rev().collect();
    parts.extend([kind.version.as_str(), kind.kind.as_str()]);
    parts.join(".")
}

fn schema(kind: &Kind, identity: &Value) -> Value {
    let mut schema = match &kind.custom {
        Some(custom) => custom.schema.clone(),
        None => json!({
            "type": "object",
            "description": "The simulated API server does not describe the fields of built-in kinds.",
            "x-kubernetes-preserve-unknown-fields": true,
        }),
    };
    let reference = format!("#/components/schemas/{METADATA}");
    let text = |words: &str| json!({"type": "string", "description": words});
    schema["properties"]["apiVersion"] = text("Group and version of this object.");
    schema["properties"]["kind"] = text("What this object is.");
    schema["properties"]["metadata"] =
        json!({"description": "Standard object's metadata.", "allOf": [{"$ref": reference}]});
    schema["x-kubernetes-group-version-kind"] = json!([identity]);
    schema
}

fn metadata() -> Value {
    let map = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let text = json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "name": text,
            "namespace": text,
            "labels": map,
            "annotations": map,
            "uid": text,
            "resourceVersion": text,
        },
    })
}
