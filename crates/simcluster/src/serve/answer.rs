// SPDX-License-Identifier: Apache-2.0
//! Answers, in the form that the client asked for.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::{Value, json};

use crate::kind::Kind;
use crate::request::Form;

/// A JSON answer.
pub fn json(code: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::OK);
    let media = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, media);
    response
}

/// One object, or a `Status` in its place.
pub fn object(kind: &Kind, form: Form, code: u16, object: Value) -> Response {
    json(code, &formed(kind, form, object))
}

/// One object in a form.
pub fn formed(_kind: &Kind, form: Form, object: Value) -> Value {
    match form {
        Form::Metadata if object["kind"] != "Status" => metadata_only(&object),
        _ => object,
    }
}

/// A list of objects.
pub fn list(kind: &Kind, form: Form, objects: Vec<Value>, metadata: Value) -> Response {
    let body = match form {
        Form::Metadata => {
            let items: Vec<Value> = objects.iter().map(metadata_only).collect();
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
    if !kind.is_custom {
        for object in &mut objects {
            if let Some(members) = object.as_object_mut() {
                members.remove("kind");
                members.remove("apiVersion");
            }
        }
    }
    objects
}

fn metadata_only(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}
