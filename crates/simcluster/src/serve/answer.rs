// SPDX-License-Identifier: Apache-2.0
//! Answers, in the form that the client asked for.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::request::Form;
use crate::table::{self, Include};

/// A JSON answer.
pub fn json(code: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// A plain text.
pub fn text(code: u16, text: &str) -> Response {
    let mut response = Response::new(Body::from(format!("{text}\n")));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    response
}

/// In which form an answer is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// What clients take.
    pub form: Form,
    /// How much of an object goes with its row in a table.
    pub include: Include,
    /// From when ages are counted.
    pub now: Timestamp,
}

/// One object, or a `Status` in its place.
pub fn object(kind: &Kind, wanted: Wanted, code: u16, object: Value) -> Response {
    json(code, &formed(kind, wanted, object, true))
}

/// Adds warnings, which clients show to people.
pub fn warn(response: &mut Response, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
}

/// One object in a form. `has_header` says whether a table tells its columns.
pub fn formed(kind: &Kind, wanted: Wanted, object: Value, has_header: bool) -> Value {
    let is_of_kind = object["kind"] == kind.kind.as_str();
    match wanted.form {
        Form::Metadata if is_of_kind => table::partial(&object),
        Form::Table if is_of_kind => {
            let version = &object["metadata"]["resourceVersion"];
            let metadata = json!({"resourceVersion": version});
            let objects = [object];
            table::table(
                kind,
                &objects,
                &metadata,
                wanted.include,
                has_header,
                wanted.now,
            )
        }
        _ => object,
    }
}

/// A list of objects.
pub fn list(kind: &Kind, wanted: Wanted, objects: Vec<Value>, metadata: &Value) -> Response {
    let body = match wanted.form {
        Form::Table => table::table(kind, &objects, metadata, wanted.include, true, wanted.now),
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(table::partial).collect();
            json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            })
        }
        _ => json!({
            "kind": format!("{}List", kind.kind),
            "apiVersion": kind.api_version(),
            "metadata": metadata,
            "items": bare(kind, objects),
        }),
    };
    json(200, &body)
}

/// The items of a list. Those of built-in kinds do not say what they are.
fn bare(kind: &Kind, mut objects: Vec<Value>) -> Vec<Value> {
    if kind.custom.is_none() {
        for object in &mut objects {
            if let Some(members) = object.as_object_mut() {
                members.remove("kind");
                members.remove("apiVersion");
            }
        }
    }
    objects
}
