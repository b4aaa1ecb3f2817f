// SPDX-License-Identifier: Apache-2.0
//! Admission webhooks, the half that speaks: to a service that lives in the process, or to an address.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, header};
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::ApiServer;
use crate::admission::{self, Attempt, Phase, Target, Webhook};
use crate::failure::Failure;
use crate::state::Ask;

/// The longest answer that is read, in bytes.
const LIMIT: usize = 3 * 1024 * 1024;

impl ApiServer {
    /// Has a service of the cluster answered in this process: webhooks whose configuration names it
    /// are called there, without TLS. The last one of a name counts.
    pub fn add_service(&self, namespace: &str, name: &str, service: Router) {
        let mut services = self.services();
        services.insert((namespace.to_owned(), name.to_owned()), service);
    }

    /// What the webhooks of a phase make of an object, with their warnings.
    ///
    /// # Errors
    /// The refusal of a webhook, or 500 if one that is needed cannot be asked.
    pub(super) async fn ask_webhooks(
        &self,
        ask: &Ask,
        phase: Phase,
        mut attempt: Attempt,
        warnings: &mut Vec<String>,
    ) -> Result<Value, Failure> {
        let webhooks = self.state().webhooks(ask, phase, &attempt);
        for webhook in webhooks {
            let uid = self.state().random.uid();
            let review = admission::review(ask, &attempt, &uid, ask.is_dry_run()?);
            let call = tokio::time::timeout(
                Duration::from_secs(webhook.timeout),
                self.call(&webhook, &review),
            );
            let answer = match call.await {
                Ok(answer) => answer,
                Err(_) => Err("context deadline exceeded".to_owned()),
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(_) if webhook.may_fail => continue,
                Err(why) => return Err(Failure::webhook_failed(&webhook.name, &why)),
            };
            let judged = admission::judge(&webhook, phase, attempt.object, &answer)?;
            attempt.object = judged.0;
            warnings.extend(judged.1);
        }
        Ok(attempt.object)
    }

    /// A webhook's answer, or why there is none.
    async fn call(&self, webhook: &Webhook, review: &Value) -> Result<Value, String> {
        let bytes = match &webhook.target {
            Target::Service(namespace, name, path) => {
                let key = (namespace.clone(), name.clone());
                let service = self.services().get(&key).cloned();
                let service = service.ok_or_else(|| format!("service {name:?} not found"))?;
                let path = if path.is_empty() { "/" } else { path };
                let request = post(path, Body::from(review.to_string()))?;
                let response = service
                    .oneshot(request)
                    .await
                    .map_err(|error| error.to_string())?;
                to_bytes(response.into_body(), LIMIT)
                    .await
                    .map_err(|error| error.to_string())?
            }
            Target::Url(url) => {
                let client = client(url, &webhook.authority).await?;
                let path = url.splitn(4, '/').nth(3).unwrap_or_default();
                let body = kube::client::Body::from(review.to_string().into_bytes());
                let request = post(&format!("/{path}"), body)?;
                let response = client
                    .send(request)
                    .await
                    .map_err(|error| error.to_string())?;
                let body = Body::new(response.into_body());
                to_bytes(body, LIMIT)
                    .await
                    .map_err(|error| error.to_string())?
            }
        };
        serde_json::from_slice(&bytes).map_err(|error| error.to_string())
    }
}

fn post<B>(path: &str, body: B) -> Result<Request<B>, String> {
    Request::post(path)
        .header(header::CONTENT_TYPE, "application/json")
        .body(body)
        .map_err(|error| error.to_string())
}

/// A client of the host in an address. kube's own knows how to trust an authority that comes as a
/// `caBundle` does.
async fn client(url: &str, authority: &str) -> Result<kube::Client, String> {
    let host: Vec<&str> = url.splitn(4, '/').take(3).collect();
    let mut cluster = json!({"server": host.join("/")});
    if !authority.is_empty() {
        cluster["certificate-authority-data"] = json!(authority);
    }
    let file = json!({
        "clusters": [{"name": "webhook", "cluster": cluster}],
        "contexts": [{"name": "webhook", "context": {"cluster": "webhook"}}],
        "current-context": "webhook",
    });
    let file: Kubeconfig = serde_json::from_value(file).map_err(|error| error.to_string())?;
    let config = kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await;
    let mut config = config.map_err(|error| error.to_string())?;
    config.default_retry = false;
    kube::Client::try_from(config).map_err(|error| error.to_string())
}
