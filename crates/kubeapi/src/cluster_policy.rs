// SPDX-License-Identifier: Apache-2.0
//! GPU Operator's ClusterPolicy: the fields that are honoured, read leniently, as the object is
//! other people's; and the least of its definition where GPU Operator is not there.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// Label that says which program looks after an object (source: Kubernetes' recommended labels).
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
const MANAGER: &str = "slicewright";

/// For `kubectl explain clusterpolicy`.
const DESCRIPTION: &str = "GPU Operator's policy of a cluster. Slicewright reads \
    spec.mig.strategy, and the names of ConfigMaps and defaults in spec.migManager.config.{name,default}, \
    spec.migManager.gpuClientsConfig.name and spec.devicePlugin.config.{name,default}; it keeps every \
    other field.";

/// What of a ClusterPolicy matters here. Texts that are empty count as not set, and so do values of
/// another type but for the strategy, which is then told as wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterPolicySpec {
    /// `mig.strategy`.
    pub mig_strategy: Option<String>,
    /// `migManager.config.name`: ConfigMap with custom MIG configs.
    pub mig_config_map: Option<String>,
    /// `migManager.config.default`: MIG config of nodes without the label.
    pub mig_default: Option<String>,
    /// `migManager.gpuClientsConfig.name`: ConfigMap with services that keep GPUs open.
    pub gpu_clients_config_map: Option<String>,
    /// `devicePlugin.config.name`: ConfigMap with named sharing configs.
    pub device_plugin_config_map: Option<String>,
    /// `devicePlugin.config.default`: sharing config of nodes without the label.
    pub device_plugin_default: Option<String>,
}

impl ClusterPolicySpec {
    /// Reads a whole ClusterPolicy object.
    pub fn from_json(object: &Value) -> Self {
        let text = |path: &str| {
            let found = object.pointer(path).and_then(Value::as_str);
            let found = found.map(str::trim).filter(|text| !text.is_empty());
            found.map(str::to_owned)
        };
        // What is no text is no strategy, but whoever wrote it meant one.
        let word = |path: &str| {
            let other = object
                .pointer(path)
                .filter(|it| !it.is_string() && !it.is_null());
            text(path).or_else(|| other.map(Value::to_string))
        };
        Self {
            mig_strategy: word("/spec/mig/strategy"),
            mig_config_map: text("/spec/migManager/config/name"),
            mig_default: text("/spec/migManager/config/default"),
            gpu_clients_config_map: text("/spec/migManager/gpuClientsConfig/name"),
            device_plugin_config_map: text("/spec/devicePlugin/config/name"),
            device_plugin_default: text("/spec/devicePlugin/config/default"),
        }
    }
}

/// The least definition of the kind, for clusters without GPU Operator: every field is kept, none
/// is checked, so that a later install of the operator finds nothing in its way.
pub fn cluster_policy_crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "clusterpolicies.nvidia.com",
            "labels": { MANAGED_BY: MANAGER },
        },
        "spec": {
            "group": "nvidia.com",
            "names": {
                "kind": "ClusterPolicy",
                "listKind": "ClusterPolicyList",
                "plural": "clusterpolicies",
                "singular": "clusterpolicy",
            },
            "scope": "Cluster",
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "additionalPrinterColumns": [
                    { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
                ],
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "description": DESCRIPTION,
                        "x-kubernetes-preserve-unknown-fields": true,
                    },
                },
            }],
        },
    })
}

/// Whether an object with these labels was made by Slicewright.
pub fn is_managed_by_us(labels: &BTreeMap<String, String>) -> bool {
    labels
        .get(MANAGED_BY)
        .is_some_and(|manager| manager == MANAGER)
}

/// The policy of a new cluster: every path that people `replace` by JSON patch is there.
pub fn cluster_policy(strategy: &str) -> Value {
    json!({
        "apiVersion": "nvidia.com/v1",
        "kind": "ClusterPolicy",
        "metadata": { "name": "cluster-policy" },
        "spec": {
            "mig": { "strategy": strategy },
            "migManager": { "enabled": true, "config": { "name": "", "default": "" } },
            "devicePlugin": { "enabled": true, "config": { "name": "", "default": "" } },
        },
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

    use super::*;

    #[test]
    fn the_new_policy_says_nothing_but_its_strategy() {
        let read = ClusterPolicySpec::from_json(&cluster_policy("single"));
        let expected = ClusterPolicySpec {
            mig_strategy: Some("single".to_owned()),
            ..ClusterPolicySpec::default()
        };
        assert_eq!(read, expected);
        let crd: Result<CustomResourceDefinition, _> = serde_json::from_value(cluster_policy_crd());
        assert!(crd.is_ok(), "{crd:?}");
    }

    #[test]
    fn other_peoples_objects_are_read_leniently() {
        let odd = json!({ "spec": { "mig": { "strategy": 7 }, "migManager": "off" } });
        let expected = ClusterPolicySpec {
            mig_strategy: Some("7".to_owned()),
            ..ClusterPolicySpec::default()
        };
        assert_eq!(ClusterPolicySpec::from_json(&odd), expected);
        let object = json!({ "spec": {
            "migManager": { "config": { "name": "custom", "default": "all-disabled" } },
            "devicePlugin": { "config": { "name": "sharing", "default": "exclusive" } },
        } });
        let read = ClusterPolicySpec::from_json(&object);
        assert_eq!(read.mig_config_map.as_deref(), Some("custom"));
        assert_eq!(read.mig_default.as_deref(), Some("all-disabled"));
        assert_eq!(read.device_plugin_config_map.as_deref(), Some("sharing"));
        assert_eq!(read.device_plugin_default.as_deref(), Some("exclusive"));
    }
}
