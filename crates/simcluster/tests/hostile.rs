// SPDX-License-Identifier: Apache-2.0
//! Bodies that are wrong in every place get an answer, and the server goes on.

#![allow(clippy::unwrap_used)]

use axum::http::Request;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use simcluster::{ApiServer, Settings};

/// Where something wrong is put.
const PLACES: &[&str] = &[
    "/metadata",
    "/metadata/name",
    "/metadata/namespace",
    "/metadata/labels",
    "/metadata/labels/x",
    "/metadata/annotations",
    "/metadata/finalizers",
    "/metadata/ownerReferences",
    "/metadata/ownerReferences/0",
    "/metadata/managedFields",
    "/spec",
    "/spec/hard",
    "/spec/containers",
    "/spec/containers/0",
    "/spec/containers/0/image",
    "/spec/containers/0/ports",
    "/spec/containers/0/resources",
    "/spec/containers/0/resources/limits",
    "/spec/containers/0/resources/requests",
    "/spec/finalizers",
    "/spec/names",
    "/spec/selector",
    "/spec/template",
    "/spec/template/spec",
    "/spec/versions",
    "/spec/versions/0/schema/openAPIV3Schema",
    "/status",
    "/status/conditions",
    "/webhooks",
    "/webhooks/0",
    "/webhooks/0/clientConfig",
    "/webhooks/0/rules",
];

fn wrong() -> [Value; 4] {
    [
        json!(null),
        json!("x"),
        json!([null]),
        json!({"x": {"y": []}}),
    ]
}

/// An object with something in every place.
fn whole(kind: &str, api_version: &str, name: &str) -> Value {
    json!({
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "labels": {"x": "y"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        },
        "spec": {
            "hard": {"pods": "100"},
            "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1"}}}],
            "names": {"kind": "K", "plural": "ks"},
            "group": "x.slicewright.dev",
            "template": {"spec": {"containers": [{"name": "c"}]}},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {}}}],
        },
        "status": {"conditions": []},
        "webhooks": [],
    })
}

/// Puts a value at a pointer, where there is a place for it.
fn put(object: &mut Value, pointer: &str, value: &Value) {
    let (parent, last) = pointer.rsplit_once('/').unwrap();
    match object.pointer_mut(parent) {
        Some(Value::Object(members)) => drop(members.insert(last.to_owned(), value.clone())),
        Some(Value::Array(items)) if !items.is_empty() => items[0] = value.clone(),
        _ => {}
    }
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    media: &str,
    body: &Value,
) -> (u16, Value) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Body::from(body.to_string().into_bytes()))
        .unwrap();
    let response = client.send(request).await.unwrap();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&body).unwrap_or_default())
}

#[tokio::test]
async fn what_is_wrong_is_answered() {
    let server = ApiServer::new(&Settings::default());
    let client = server.client("default");
    let (_, groups) = send(&client, "GET", "/apis", "", &Value::Null).await;
    let groups = groups["groups"].as_array().unwrap().iter();
    let mut roots: Vec<String> = groups
        .map(|group| {
            format!(
                "/apis/{}",
                group["preferredVersion"]["groupVersion"].as_str().unwrap()
            )
        })
        .collect();
    roots.push("/api/v1".to_owned());
    let mut asked = 0;
    for root in roots {
        let (_, list) = send(&client, "GET", &root, "", &Value::Null).await;
        let api_version = list["groupVersion"].as_str().unwrap();
        for resource in list["resources"].as_array().unwrap() {
            let plural = resource["name"].as_str().unwrap();
            if plural.contains('/') {
                continue;
            }
            let space = if resource["namespaced"] == true {
                "/namespaces/default"
            } else {
                ""
            };
            let path = format!("{root}{space}/{plural}");
            let kind = resource["kind"].as_str().unwrap();
            for (number, (place, value)) in PLACES
                .iter()
                .flat_map(|place| wrong().map(|value| (place, value)))
                .enumerate()
            {
                let name = format!("n{number}");
                let mut object = whole(kind, api_version, &name);
                put(&mut object, place, &value);
                let one = format!("{path}/{name}");
                for (method, path, media) in [
                    ("POST", &path, "application/json"),
                    ("PUT", &one, "application/json"),
                    ("PATCH", &one, "application/merge-patch+json"),
                    (
                        "PATCH",
                        &format!("{one}?fieldManager=x"),
                        "application/apply-patch+yaml",
                    ),
                    ("PATCH", &one, "application/strategic-merge-patch+json"),
                    ("DELETE", &one, "application/json"),
                ] {
                    let (code, answer) = send(&client, method, path, media, &object).await;
                    assert!(code >= 200, "{method} {path} {object} {answer}");
                    asked += 1;
                }
            }
        }
    }
    assert!(asked > 10_000, "{asked}");
    let (code, _) = send(&client, "GET", "/readyz", "", &Value::Null).await;
    assert_eq!(code, 200);
}
