// SPDX-License-Identifier: Apache-2.0
//! `GpuNode`: what the snapshot of a node says, written by the node's agent alone.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{CustomResource, CustomResourceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Nothing is wished for here: labels of the node say what is wanted.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, CustomResource,
)]
#[kube(
    group = "slicewright.dev",
    version = "v1alpha1",
    kind = "GpuNode",
    plural = "gpunodes",
    shortname = "gn",
    status = "GpuNodeStatus",
    doc = "GPUs of a node: layout, resources, and what a person should know. The node's agent writes it.",
    printcolumn = r#"{"name":"GPUs","type":"integer","jsonPath":".status.gpuCount"}"#,
    printcolumn = r#"{"name":"Config","type":"string","jsonPath":".status.migConfig.wanted"}"#,
    printcolumn = r#"{"name":"State","type":"string","jsonPath":".status.migConfig.state"}"#,
    printcolumn = r#"{"name":"Strategy","type":"string","jsonPath":".status.strategy"}"#,
    printcolumn = r#"{"name":"Sharing","type":"string","jsonPath":".status.sharing"}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#
)]
pub struct GpuNodeSpec {}

/// What the snapshot of the node says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuNodeStatus {
    /// Version of the NVIDIA driver, such as 580.95.05; empty while it cannot be asked.
    pub driver_version: String,
    /// Newest CUDA version that the driver supports, such as 13.0; empty while it cannot be asked.
    pub cuda_version: String,
    /// How many GPUs the driver shows.
    pub gpu_count: u32,
    /// How slices are named: none, single or mixed.
    pub strategy: String,
    /// Name of the sharing config in force; `exclusive` if none is.
    pub sharing: String,
    /// The MIG layout that is wanted, and what became of it.
    pub mig_config: MigConfigStatus,
    /// The GPUs, by index.
    pub gpus: Vec<GpuStatus>,
    /// Resources that are offered, by name.
    pub resources: Vec<ResourceStatus>,
    /// What a person should know.
    pub findings: Vec<Finding>,
    /// Ready: the others are all true. DriverReady: the driver answers. LayoutApplied: the MIG
    /// layout is as wanted. SharingApplied: the sharing config is in force.
    pub conditions: Vec<Condition>,
}

/// The MIG layout that is wanted, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MigConfigStatus {
    /// Name of the MIG config, from the label nvidia.com/mig.config or a default; empty: none is
    /// wanted, and the layout stays as it is.
    pub wanted: String,
    /// pending, rebooting, success or failed; empty: none is wanted.
    pub state: String,
    /// Why the state is what it is, in a sentence: object, cause, next step.
    pub reason: String,
    /// Stable code of the reason: `slicewright explain CODE`.
    pub code: String,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GpuStatus {
    /// Index, as nvidia-smi counts.
    pub index: u32,
    /// UUID, such as GPU-5f0f1a2b-...
    pub uuid: String,
    /// Product name, as the driver tells it.
    pub product: String,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// MIG mode: on, off, pending on, pending off; empty on a GPU without MIG.
    pub mode: String,
    /// The slices, by their place on the GPU.
    pub slices: Vec<SliceStatus>,
    /// What is broken, one sentence each; none: the GPU is healthy.
    pub faults: Vec<String>,
}

/// A slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SliceStatus {
    /// UUID, such as MIG-5f0f1a2b-...; empty where the driver shows none.
    pub uuid: String,
    /// Profile, such as 1g.10gb.
    pub profile: String,
    /// Resource that it is offered as, such as nvidia.com/mig-1g.10gb; empty: it is not offered.
    pub resource: String,
    /// First placement unit of its GPU instance, from 0.
    pub start: u8,
    /// How many placement units its GPU instance takes.
    pub size: u8,
    /// Whether a container has it, or a process uses it.
    pub in_use: bool,
}

/// An extended resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceStatus {
    /// Full name, such as nvidia.com/mig-1g.10gb.
    pub name: String,
    /// How many devices of it there are, replicas included.
    pub count: u32,
    /// How many of them pods may get.
    pub healthy: u32,
    /// How many of them containers have.
    pub allocated: u32,
}

/// Something that a person should know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Finding {
    /// Stable code: `slicewright explain CODE`.
    pub code: String,
    /// Object, cause and next step.
    pub message: String,
}

/// A condition in the form that `kubectl wait`, Argo CD and Flux understand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Condition {
    /// Ready, DriverReady, LayoutApplied or SharingApplied.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// When the status changed last, RFC 3339.
    pub last_transition_time: String,
}

/// The definition of the kind.
pub fn gpu_node_crd() -> CustomResourceDefinition {
    GpuNode::crd()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The fields below a schema that `kubectl explain` has nothing to say of.
    fn undescribed(path: &str, schema: &Value, found: &mut Vec<String>) {
        if !schema["description"].is_string() {
            found.push(path.to_owned());
        }
        for owner in [schema, &schema["items"]] {
            for (name, field) in owner["properties"].as_object().into_iter().flatten() {
                undescribed(&format!("{path}.{name}"), field, found);
            }
        }
    }

    #[test]
    fn kubectl_explains_every_field() {
        let crd = serde_json::to_value(gpu_node_crd()).unwrap_or_default();
        let schema = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        assert!(schema["properties"]["status"]["properties"]["gpus"].is_object());
        let mut found = Vec::new();
        undescribed("gpunode", schema, &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
