// SPDX-License-Identifier: Apache-2.0
//! Admission webhooks that live in the process are asked, may change, refuse and warn.

#![allow(clippy::unwrap_used, clippy::panic)]

use axum::routing::post;
use axum::{Router, body};
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use simcluster::{ApiServer, Settings};

/// Base64 of `[{"op":"add","path":"/data","value":{"k":"set"}}]`.
const PATCH: &str = "W3sib3AiOiJhZGQiLCJwYXRoIjoiL2RhdGEiLCJ2YWx1ZSI6eyJrIjoic2V0In19XQ==";

/// Changes what is created, refuses what is named `bad`, and every deletion.
async fn decide(body: body::Bytes) -> String {
    let review: Value = serde_json::from_slice(&body).unwrap();
    let request = &review["request"];
    let mut response = json!({"uid": request["uid"], "allowed": true, "warnings": ["seen"]});
    if request["operation"] == "CREATE" {
        response["patchType"] = json!("JSONPatch");
        response["patch"] = json!(PATCH);
    }
    if request["name"] == "bad" {
        response["allowed"] = json!(false);
        response["status"] = json!({"message": "not this one", "code": 403, "reason": "Forbidden"});
    }
    if request["operation"] == "DELETE" {
        assert_eq!(request["oldObject"]["kind"], "ConfigMap");
        response["allowed"] = json!(false);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
        .to_string()
}

async fn configure(client: &Client, kind: &str, policy: &str, service: &str) {
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": format!("test-{service}")},
        "webhooks": [{
            "name": "decide.slicewright.dev",
            "clientConfig": {"service": {"namespace": "default", "name": service, "path": "/decide"}},
            "rules": [{
                "operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
            }],
            "failurePolicy": policy,
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }],
    });
    let plural = format!("{}s", kind.to_lowercase());
    let request =
        axum::http::Request::post(format!("/apis/admissionregistration.k8s.io/v1/{plural}"))
            .body(configuration.to_string().into_bytes())
            .unwrap();
    let made: Value = client.request(request).await.unwrap();
    assert_eq!(made["kind"], kind);
}

fn config_map(name: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.name = Some(name.to_owned());
    map
}

fn server() -> ApiServer {
    let server = ApiServer::new(&Settings::default());
    let service = Router::new().route("/decide", post(decide));
    server.add_service("default", "decider", service);
    server
}

#[tokio::test]
async fn a_webhook_changes_refuses_and_warns() {
    let client = server().client("default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    configure(&client, "MutatingWebhookConfiguration", "Fail", "decider").await;
    let made = maps
        .create(&PostParams::default(), &config_map("good"))
        .await
        .unwrap();
    assert_eq!(made.data.unwrap()["k"], "set");
    let patch = Patch::Merge(json!({"data": {"k": "other"}}));
    let changed = maps
        .patch("good", &PatchParams::default(), &patch)
        .await
        .unwrap();
    assert_eq!(changed.data.unwrap()["k"], "other");

    let error = maps
        .create(&PostParams::default(), &config_map("bad"))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}")
    };
    assert_eq!((status.code, status.reason.as_str()), (403, "Forbidden"));
    assert_eq!(
        status.message,
        "admission webhook \"decide.slicewright.dev\" denied the request: not this one"
    );
    let error = maps
        .delete("good", &DeleteParams::default())
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}")
    };
    assert_eq!(
        status.message,
        "admission webhook \"decide.slicewright.dev\" denied the request without explanation"
    );
}

#[tokio::test]
async fn a_webhook_that_is_not_there_fails_or_not() {
    let client = server().client("default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    configure(
        &client,
        "ValidatingWebhookConfiguration",
        "Ignore",
        "nobody",
    )
    .await;
    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    configure(&client, "MutatingWebhookConfiguration", "Fail", "nobody").await;
    let error = maps
        .create(&PostParams::default(), &config_map("b"))
        .await
        .unwrap_err();
    let kube::Error::Api(status) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (status.code, status.reason.as_str()),
        (500, "InternalError")
    );
    assert!(
        status
            .message
            .contains("failed calling webhook \"decide.slicewright.dev\"")
    );

    // Nothing keeps a broken one from being removed.
    let hooks: Api<ValidatingWebhookConfiguration> = Api::all(client);
    hooks
        .delete("test-nobody", &DeleteParams::default())
        .await
        .unwrap();
}
