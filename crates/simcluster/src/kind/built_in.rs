// SPDX-License-Identifier: Apache-2.0
//! The table of built-in resources: those that the product and its tutorial touch. Facts from
//! `kubectl api-resources` of Kubernetes 1.37.

use std::sync::Arc;

use super::Kind;
use crate::patch::MergeKeys;
use crate::selector::Selectable;

/// One resource.
struct Row {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    is_namespaced: bool,
    /// What can follow a name in the URL.
    subresources: &'static [&'static str],
}

const fn row(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    is_namespaced: bool,
    subresources: &'static [&'static str],
) -> Row {
    Row {
        group,
        version: "v1",
        kind,
        plural,
        short_names,
        is_namespaced,
        subresources,
    }
}

const STATUS: &[&str] = &["status"];
const SCALED: &[&str] = &["scale", "status"];
const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("", "ConfigMap", "configmaps", &["cm"], true, &[]),
    row("", "Event", "events", &["ev"], true, &[]),
    row("", "LimitRange", "limitranges", &["limits"], true, &[]),
    row("", "Namespace", "namespaces", &["ns"], false, &["finalize", "status"]),
    row("", "Node", "nodes", &["no"], false, STATUS),
    row("", "PersistentVolumeClaim", "persistentvolumeclaims", &["pvc"], true, STATUS),
    row("", "Pod", "pods", &["po"], true, &["binding", "eviction", "exec", "log", "status"]),
    row("", "ResourceQuota", "resourcequotas", &["quota"], true, STATUS),
    row("", "Secret", "secrets", &[], true, &[]),
    row("", "Service", "services", &["svc"], true, STATUS),
    row("", "ServiceAccount", "serviceaccounts", &["sa"], true, &[]),
    row(ADMISSION, "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", &[], false, &[]),
    row(ADMISSION, "ValidatingAdmissionPolicy", "validatingadmissionpolicies", &[], false, STATUS),
    row(ADMISSION, "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", &[], false, &[]),
    row(ADMISSION, "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", &[], false, &[]),
    row("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", &["crd", "crds"], false, STATUS),
    row("apps", "ControllerRevision", "controllerrevisions", &[], true, &[]),
    row("apps", "DaemonSet", "daemonsets", &["ds"], true, STATUS),
    row("apps", "Deployment", "deployments", &["deploy"], true, SCALED),
    row("apps", "ReplicaSet", "replicasets", &["rs"], true, SCALED),
    row("apps", "StatefulSet", "statefulsets", &["sts"], true, SCALED),
    row("batch", "Job", "jobs", &[], true, STATUS),
    row("coordination.k8s.io", "Lease", "leases", &[], true, &[]),
    row("events.k8s.io", "Event", "events", &["ev"], true, &[]),
    row("node.k8s.io", "RuntimeClass", "runtimeclasses", &[], false, &[]),
    row("policy", "PodDisruptionBudget", "poddisruptionbudgets", &["pdb"], true, STATUS),
    row(RBAC, "ClusterRole", "clusterroles", &[], false, &[]),
    row(RBAC, "ClusterRoleBinding", "clusterrolebindings", &[], false, &[]),
    row(RBAC, "Role", "roles", &[], true, &[]),
    row(RBAC, "RoleBinding", "rolebindings", &[], true, &[]),
    row("scheduling.k8s.io", "PriorityClass", "priorityclasses", &["pc"], false, &[]),
];

/// Kinds that are asked and answered, never kept.
#[rustfmt::skip]
const REVIEWS: &[Row] = &[
    row("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews", &[], false, &[]),
    row("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews", &[], false, &[]),
];

/// Kinds that `kubectl get all` shows.
const ALL: &[&str] = &[
    "DaemonSet",
    "Deployment",
    "Job",
    "Pod",
    "ReplicaSet",
    "Service",
    "StatefulSet",
];

/// Every built-in kind.
pub fn kinds() -> impl Iterator<Item = Kind> {
    let kept = ROWS.iter().map(|row| (row, false));
    let asked = REVIEWS.iter().map(|row| (row, true));
    kept.chain(asked).map(|(row, is_review)| Kind {
        group: row.group.to_owned(),
        version: row.version.to_owned(),
        kind: row.kind.to_owned(),
        plural: row.plural.to_owned(),
        singular: row.kind.to_lowercase(),
        short_names: owned(row.short_names),
        categories: categories(row.kind),
        is_namespaced: row.is_namespaced,
        subresources: owned(row.subresources),
        is_review,
        selectable: Selectable::built_in(row.group, row.kind),
        merge_keys: Arc::new(MergeKeys::built_in(row.group, row.kind)),
        custom: None,
    })
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn categories(kind: &str) -> Vec<String> {
    if ALL.contains(&kind) {
        return vec!["all".to_owned()];
    }
    match kind {
        "CustomResourceDefinition"
        | "MutatingWebhookConfiguration"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding"
        | "ValidatingWebhookConfiguration" => vec!["api-extensions".to_owned()],
        _ => Vec::new(),
    }
}
