// SPDX-License-Identifier: Apache-2.0
//! ClusterPolicy where GPU Operator is not there: kind and object are created, once for a cluster,
//! and never changed. `kubectl apply` could not promise that: it changes what is there.

use std::time::Duration;

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use kube::{Client, Config};
use serde_json::Value;
use tokio::time::{Instant, sleep};

/// Longest time for all of it: rights and new kinds need a moment until the API server knows them.
const LONGEST: Duration = Duration::from_secs(60);
/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// What became of ClusterPolicy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterPolicyIs {
    /// Kind and object are ours, created now or earlier.
    Ours,
    /// The kind is another's, such as GPU Operator's: nothing was touched.
    Anothers,
}

/// ClusterPolicy could not be created: a sentence says why.
#[derive(Debug, thiserror::Error)]
#[error("cannot create ClusterPolicy: {0}")]
pub struct ClusterPolicyError(String);

fn fail(error: impl std::fmt::Display) -> ClusterPolicyError {
    ClusterPolicyError(error.to_string())
}

/// Creates the least kind ClusterPolicy and an object with that strategy, if there is no such kind.
/// The API server is found as kubectl finds it, or by the service account of a pod.
///
/// # Errors
/// If there is no way to the API server, or it refuses for a minute.
pub fn create_cluster_policy(strategy: &str) -> Result<ClusterPolicyIs, ClusterPolicyError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.map_err(fail)?.block_on(async {
        let config = Config::infer().await.map_err(fail)?;
        let client = Client::try_from(config).map_err(fail)?;
        ensure_cluster_policy(&client, strategy).await
    })
}

/// As [`create_cluster_policy`], by this client.
///
/// # Errors
/// If the API server refuses for a minute.
pub async fn ensure_cluster_policy(
    client: &Client,
    strategy: &str,
) -> Result<ClusterPolicyIs, ClusterPolicyError> {
    let start = Instant::now();
    loop {
        match attempt(client, strategy).await {
            Ok(is) => return Ok(is),
            Err(error) if start.elapsed() >= LONGEST => return Err(fail(error)),
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn attempt(client: &Client, strategy: &str) -> kube::Result<ClusterPolicyIs> {
    let kind = kubeapi::cluster_policy_crd();
    if !create(client, "customresourcedefinitions", kind.clone()).await? {
        let name = kind["metadata"]["name"].as_str().unwrap_or_default();
        let there = api(client, "customresourcedefinitions", &kind);
        let labels = there.get_metadata(name).await?.metadata.labels;
        if !labels.is_some_and(|labels| kubeapi::is_managed_by_us(&labels)) {
            return Ok(ClusterPolicyIs::Anothers);
        }
    }
    // Refused until the kind is served; so the next attempt finds it there.
    let object = kubeapi::cluster_policy(strategy);
    create(client, "clusterpolicies", object).await?;
    Ok(ClusterPolicyIs::Ours)
}

/// Creates an object; `false` if one of that name is there.
async fn create(client: &Client, plural: &str, object: Value) -> kube::Result<bool> {
    let api = api(client, plural, &object);
    let object: DynamicObject = serde_json::from_value(object).map_err(kube::Error::SerdeError)?;
    match api.create(&PostParams::default(), &object).await {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(false),
        Err(error) => Err(error),
    }
}

fn api(client: &Client, plural: &str, object: &Value) -> Api<DynamicObject> {
    let text = |field: &str| object[field].as_str().unwrap_or_default();
    let (group, version) = text("apiVersion").split_once('/').unwrap_or_default();
    let kind = GroupVersionKind::gvk(group, version, text("kind"));
    Api::all_with(
        client.clone(),
        &ApiResource::from_gvk_with_plural(&kind, plural),
    )
}
