// SPDX-License-Identifier: Apache-2.0
//! What the agent writes to the API server: its own node, its generated ConfigMap, its GpuNode and
//! events. `docs/permissions.md` lists the rights that this takes.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Resource;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kubeapi::{GpuNode, GpuNodeStatus, names};
use serde_json::{Map, Value, json};

use crate::cluster::{Cluster, NodeSeen};
use crate::decide::{LabelChange, PodOnNode, PodSeen};
use crate::objects::{self, Node, Pod};

/// Where events of objects without a namespace are.
const EVENTS_NAMESPACE: &str = "default";
/// The longest that the API server may take for an answer.
const ANSWER: Duration = Duration::from_secs(20);

/// A failed write: it is tried again with the next round.
#[derive(Debug, thiserror::Error)]
#[error("cannot {operation}: {}", in_words(source))]
pub struct WriteError {
    operation: &'static str,
    source: Box<kube::Error>,
}

/// What the API server said, without the form that it came in.
pub(crate) fn in_words(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

fn cannot(operation: &'static str) -> impl FnOnce(kube::Error) -> WriteError {
    move |source| WriteError {
        operation,
        source: Box::new(source),
    }
}

/// The answer of the API server. One that takes a call and never answers must not stop the agent.
async fn answer<T>(
    operation: &'static str,
    call: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, WriteError> {
    let late = |_| kube::Error::Service(format!("no answer within {ANSWER:?}").into());
    let answered = tokio::time::timeout(ANSWER, call).await;
    answered.map_err(late).flatten().map_err(cannot(operation))
}

/// Something that happened on the node, for `kubectl describe node`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// Whether it is a warning.
    pub is_warning: bool,
    /// Reason in one word.
    pub reason: &'static str,
    /// What happened, in a sentence.
    pub note: String,
}

impl Cluster {
    fn params() -> PatchParams {
        PatchParams::apply(names::FIELD_MANAGER).force()
    }

    fn nodes(&self) -> Api<Node> {
        objects::nodes(&self.client)
    }

    /// Sets and removes labels and annotations of the node.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn patch_node(
        &self,
        labels: &LabelChange,
        annotations: &LabelChange,
    ) -> Result<(), WriteError> {
        let mut metadata = Map::new();
        for (field, change) in [("labels", labels), ("annotations", annotations)] {
            if !change.is_empty() {
                metadata.insert(field.to_owned(), json!(change));
            }
        }
        if metadata.is_empty() {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "metadata": Value::Object(metadata) }));
        let params = PatchParams::default();
        let nodes = self.nodes();
        let done = nodes.patch(&self.about.node, &params, &patch);
        answer("label the node", done).await.map(|_| ())
    }

    /// Takes the agent's own taint from the node, if it is there.
    ///
    /// # Errors
    /// As the API server says; also if the taints changed meanwhile.
    pub async fn remove_taint(&self, node: &NodeSeen) -> Result<(), WriteError> {
        let mut taints = node.taints.iter();
        let Some(place) = taints.position(|taint| taint.key == names::NOT_READY_TAINT) else {
            return Ok(());
        };
        let path = format!("/spec/taints/{place}");
        let patch = json!([
            { "op": "test", "path": format!("{path}/key"), "value": names::NOT_READY_TAINT },
            { "op": "remove", "path": path },
        ]);
        let patch: json_patch::Patch = match serde_json::from_value(patch) {
            Ok(patch) => patch,
            Err(_) => return Ok(()),
        };
        let patch = Patch::<()>::Json(patch);
        let params = PatchParams::default();
        let nodes = self.nodes();
        let done = nodes.patch(&self.about.node, &params, &patch);
        answer("remove the taint", done).await.map(|_| ())
    }

    /// Removes names from the node's capacity that nobody registers any more.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn forget_resources(&self, gone: &[String]) -> Result<(), WriteError> {
        if gone.is_empty() {
            return Ok(());
        }
        let none: BTreeMap<&String, Option<()>> = gone.iter().map(|name| (name, None)).collect();
        let patch = json!({ "status": { "capacity": none, "allocatable": none } });
        let (nodes, params) = (self.nodes(), PatchParams::default());
        let patch = Patch::Merge(patch);
        let done = nodes.patch_status(&self.about.node, &params, &patch);
        let operation = "remove resources that are gone from the node's status";
        answer(operation, done).await.map(|_| ())
    }

    /// Writes the MIG configs of this node's hardware, as NVIDIA's manager does. It goes with the
    /// node.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn write_generated(&self, node: &NodeSeen, text: &str) -> Result<(), WriteError> {
        let name = names::generated_config_map(&self.about.node);
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "labels": {
                    "app.kubernetes.io/component": "nvidia-mig-manager",
                    "nvidia.com/node-name": self.about.node,
                },
                "ownerReferences": [{
                    "apiVersion": "v1",
                    "kind": "Node",
                    "name": self.about.node,
                    "uid": node.uid,
                }],
            },
            "data": { "config.yaml": text },
        });
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.about.namespace);
        let (params, patch) = (Self::params(), Patch::Apply(map));
        let done = api.patch(&name, &params, &patch);
        answer("write the generated MIG configs", done)
            .await
            .map(|_| ())
    }

    /// Writes what the node's snapshot says.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn write_gpu_node(
        &self,
        node: &NodeSeen,
        status: &GpuNodeStatus,
    ) -> Result<(), WriteError> {
        let api: Api<GpuNode> = Api::all(self.client.clone());
        let name = &self.about.node;
        let mut object = json!({
            "apiVersion": GpuNode::api_version(&()),
            "kind": GpuNode::kind(&()),
            "metadata": {
                "name": name,
                "ownerReferences": [
                    { "apiVersion": "v1", "kind": "Node", "name": name, "uid": node.uid },
                ],
            },
            "spec": {},
        });
        let params = Self::params();
        let patch = Patch::Apply(&object);
        answer("write the GpuNode", api.patch(name, &params, &patch)).await?;
        object["metadata"] = json!({ "name": name });
        object["status"] = json!(status);
        let patch = Patch::Apply(&object);
        let done = api.patch_status(name, &params, &patch);
        answer("write the GpuNode's status", done).await.map(|_| ())
    }

    /// The pods on this node.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn pods_on_node(&self) -> Result<Vec<PodOnNode>, WriteError> {
        let api = objects::pods(&self.client);
        let fields = format!("spec.nodeName={}", self.about.node);
        let params = ListParams::default().fields(&fields);
        let list = answer("list the pods of the node", api.list_metadata(&params)).await?;
        let pods = list.items.into_iter();
        Ok(pods.map(|pod| pod_on_node(pod.metadata)).collect())
    }

    /// The pods on this node of DaemonSets that select nodes by this label.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn pods_that_select(&self, label: &str) -> Result<Vec<String>, WriteError> {
        let api = objects::pods(&self.client);
        let fields = format!("spec.nodeName={}", self.about.node);
        let params = ListParams::default().fields(&fields);
        let list = answer("list the pods of the node", api.list(&params)).await?;
        let selects = |pod: &Pod| {
            let mut owners = pod.metadata.owner_references.iter().flatten();
            owners.any(|owner| owner.kind == "DaemonSet")
                && pod.spec.node_selector.contains_key(label)
        };
        let pods = list.items.into_iter().filter(selects).map(seen);
        Ok(pods.map(|pod| pod.name).collect())
    }

    /// The pods that run on this node and ask for NVIDIA's devices, each as `NAMESPACE/NAME`.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn pods_with_devices(&self) -> Result<Vec<String>, WriteError> {
        let api = objects::pods(&self.client);
        let fields = format!("spec.nodeName={},status.phase=Running", self.about.node);
        let params = ListParams::default().fields(&fields);
        let list = answer("list the running pods of the node", api.list(&params)).await?;
        let pods = list.items.into_iter().map(seen);
        let has_devices = |pod: &PodSeen| {
            let mut resources = pod.resources.iter();
            resources.any(|name| name.starts_with(names::RESOURCE_PREFIX))
        };
        Ok(pods.filter(has_devices).map(|pod| pod.name).collect())
    }

    /// The pods on this node that failed.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn failed_pods(&self) -> Result<Vec<PodSeen>, WriteError> {
        let api = objects::pods(&self.client);
        let fields = format!("spec.nodeName={},status.phase=Failed", self.about.node);
        let params = ListParams::default().fields(&fields);
        let list = answer("list the failed pods of the node", api.list(&params)).await?;
        Ok(list.items.into_iter().map(seen).collect())
    }

    /// Tells of something on the node, in an event of its own: what is the same was told before.
    ///
    /// # Errors
    /// As the API server says.
    pub async fn tell(&self, told: &Told, now: Timestamp) -> Result<(), WriteError> {
        let node = &self.about.node;
        let kind = if told.is_warning { "Warning" } else { "Normal" };
        // The longest note that the API server takes.
        let note: String = told.note.chars().take(1000).collect();
        let event = json!({
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": { "generateName": format!("{node}-") },
            "eventTime": MicroTime(now),
            "reportingController": names::FIELD_MANAGER,
            "reportingInstance": node,
            "action": "Reconcile",
            "reason": told.reason,
            "type": kind,
            "note": note,
            // kubectl describe looks for events of nodes by their name in the place of the UID.
            "regarding": { "apiVersion": "v1", "kind": "Node", "name": node, "uid": node },
        });
        let event: Event = serde_json::from_value(event)
            .map_err(kube::Error::SerdeError)
            .map_err(cannot("make an event"))?;
        let api: Api<Event> = Api::namespaced(self.client.clone(), EVENTS_NAMESPACE);
        let params = PostParams::default();
        let done = api.create(&params, &event);
        answer("write an event", done).await.map(|_| ())
    }
}

/// A pod on this node by its metadata.
pub(crate) fn pod_on_node(metadata: ObjectMeta) -> PodOnNode {
    let namespace = metadata.namespace.unwrap_or_default();
    let name = metadata.name.unwrap_or_default();
    let labels = metadata.labels.unwrap_or_default();
    PodOnNode::new(format!("{namespace}/{name}"), &labels)
}

fn seen(pod: Pod) -> PodSeen {
    let status = pod.status.unwrap_or_default();
    let owners = pod.metadata.owner_references.unwrap_or_default();
    let containers = pod.spec.containers.into_iter();
    let limits = containers.flat_map(|container| container.resources.limits);
    PodSeen {
        name: format!(
            "{}/{}",
            pod.metadata.namespace.unwrap_or_default(),
            pod.metadata.name.unwrap_or_default()
        ),
        reason: status.reason,
        message: status.message,
        has_controller: owners.iter().any(|owner| owner.controller == Some(true)),
        // None of something is nothing that a kubelet gives out or keeps account of.
        resources: limits
            .filter(|(_, amount)| amount != "0")
            .map(|(name, _)| name)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_that_asks_for_no_gpu_has_none() {
        let pod = json!({
            "metadata": { "name": "none", "namespace": "default" },
            "spec": { "containers": [
                { "resources": { "limits": { "cpu": "1", "nvidia.com/gpu": "0" } } },
                { "resources": { "limits": { "nvidia.com/mig-1g.10gb": "2" } } },
            ] },
        });
        let pod: Pod = serde_json::from_value(pod).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(seen(pod).resources, ["cpu", "nvidia.com/mig-1g.10gb"]);
    }
}
