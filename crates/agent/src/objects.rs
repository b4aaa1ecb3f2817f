// SPDX-License-Identifier: Apache-2.0
//! Nodes, pods and ConfigMaps as far as the agent looks at them. The whole types of Kubernetes would
//! be a quarter of the program, and a node's would be read whole at each of its heartbeats.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, Object};
use kube::core::PartialObjectMeta;
use serde::{Deserialize, Serialize};

/// A node.
pub type Node = Object<NodeSpec, NodeStatus>;

/// `spec` of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeSpec {
    /// Taints in their order.
    #[serde(default)]
    pub taints: Vec<Taint>,
}

/// A taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taint {
    /// Its key.
    pub key: String,
}

/// `status` of a node.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Resources with their amounts.
    #[serde(default)]
    pub capacity: BTreeMap<String, String>,
}

/// A pod.
pub type Pod = Object<PodSpec, PodStatus>;

/// `spec` of a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PodSpec {
    /// Its containers.
    #[serde(default)]
    pub containers: Vec<Container>,
    /// Labels that its node must have.
    #[serde(default, rename = "nodeSelector")]
    pub node_selector: BTreeMap<String, String>,
}

/// A container.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Container {
    /// What it asks for.
    #[serde(default)]
    pub resources: Resources,
}

/// What a container asks for.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Resources {
    /// Limits, by resource.
    #[serde(default)]
    pub limits: BTreeMap<String, String>,
}

/// `status` of a pod.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PodStatus {
    /// Why it is in its phase, in a word.
    #[serde(default)]
    pub reason: String,
    /// The same in a sentence.
    #[serde(default)]
    pub message: String,
}

/// Access to an object kind of the core group that is the cluster's own.
pub fn nodes(client: &Client) -> Api<Node> {
    Api::all_with(client.clone(), &core("Node", "nodes"))
}

/// Pods of all namespaces.
pub fn pods(client: &Client) -> Api<Pod> {
    Api::all_with(client.clone(), &core("Pod", "pods"))
}

/// Pods of all namespaces, of which the API server sends the metadata only.
pub fn pods_by_name(client: &Client) -> Api<PartialObjectMeta<Pod>> {
    Api::all_with(client.clone(), &core("Pod", "pods"))
}

/// An object kind of the core group.
fn core(kind: &str, plural: &str) -> ApiResource {
    ApiResource {
        group: String::new(),
        version: "v1".to_owned(),
        api_version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
