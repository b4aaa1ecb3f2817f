// SPDX-License-Identifier: Apache-2.0
//! What resources there are, and what is true of each: facts of the built-in ones, and those that
//! custom resource definitions add.

mod built_in;
mod custom;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use crate::patch::MergeKeys;
use crate::selector::Selectable;

pub use custom::{Custom, Scale};

/// Where objects of a kind are kept: API group and plural. Versions of one resource share it.
pub type Place = (String, String);

/// Built-in kinds whose generations are counted.
const COUNTED: &[&str] = &[
    "CustomResourceDefinition",
    "DaemonSet",
    "Deployment",
    "Job",
    "MutatingWebhookConfiguration",
    "Pod",
    "PodDisruptionBudget",
    "PriorityClass",
    "ReplicaSet",
    "StatefulSet",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Kinds of the core group that a PUT makes.
const MADE_BY_PUT: [&str; 3] = ["Event", "LimitRange", "Service"];

/// One resource in one version.
#[derive(Clone, Debug)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: String,
    /// `v1`.
    pub version: String,
    /// `ConfigMap`.
    pub kind: String,
    /// `configmaps`, as in URLs.
    pub plural: String,
    /// `configmap`.
    pub singular: String,
    /// `cm`.
    pub short_names: Vec<String>,
    /// Such as `all`.
    pub categories: Vec<String>,
    /// Whether its objects live in a namespace.
    pub is_namespaced: bool,
    /// `status`, `scale` and others that can follow a name in a URL.
    pub subresources: Vec<String>,
    /// Whether it is only asked and never kept, such as a `SelfSubjectAccessReview`.
    pub is_review: bool,
    /// What its field selectors may name.
    pub selectable: Selectable,
    /// How its lists are merged.
    pub merge_keys: Arc<MergeKeys>,
    /// What a custom resource definition says of it; `None` for a built-in one.
    pub custom: Option<Arc<Custom>>,
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// `deployments.apps`, or `pods` for the core group.
    pub fn resource(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// `Deployment.apps`, or `Pod` for the core group.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.kind.clone(),
            group => format!("{}.{group}", self.kind),
        }
    }

    /// Where its objects are kept. Events of both groups are the same objects.
    pub fn place(&self) -> Place {
        match (self.group.as_str(), self.plural.as_str()) {
            ("events.k8s.io", "events") => (String::new(), "events".to_owned()),
            (group, plural) => (group.to_owned(), plural.to_owned()),
        }
    }

    /// Whether `metadata.generation` counts the changes of what is wanted. Always of custom resources;
    /// of built-in ones where their strategy does (`pkg/registry/*/strategy.go` of Kubernetes 1.37).
    pub fn counts_generations(&self) -> bool {
        self.custom.is_some() || COUNTED.contains(&self.kind.as_str())
    }

    /// Whether all its objects can be deleted in one request.
    pub fn deletes_many(&self) -> bool {
        !(self.group.is_empty() && self.kind == "Namespace")
    }

    /// Whether a PUT makes an object that is not there (`AllowCreateOnUpdate` in `pkg/registry`).
    pub fn is_made_by_put(&self) -> bool {
        match self.group.as_str() {
            "" => MADE_BY_PUT.contains(&self.kind.as_str()),
            "coordination.k8s.io" | "events.k8s.io" | "node.k8s.io" => true,
            group => group == "rbac.authorization.k8s.io",
        }
    }

    /// Whether a PUT must name the version that it replaces (`AllowUnconditionalUpdate`).
    pub fn needs_version(&self) -> bool {
        match self.group.as_str() {
            "admissionregistration.k8s.io" | "coordination.k8s.io" | "node.k8s.io" => true,
            _ => self.custom.is_some() || self.kind == "PodDisruptionBudget",
        }
    }

    /// Whether `name` can follow an object's name in a URL.
    pub fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|known| known == subresource)
    }
}

/// All resources that are served.
#[derive(Clone, Debug)]
pub struct Kinds {
    /// By group, version and plural.
    all: BTreeMap<(String, String, String), Arc<Kind>>,
}

impl Kinds {
    /// The built-in ones.
    pub fn built_in() -> Self {
        let all = built_in::kinds()
            .map(|kind| (key(&kind), Arc::new(kind)))
            .collect();
        Self { all }
    }

    /// The resource of a URL.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Kind>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.all.get(&key)
    }

    /// The resource of an object's `apiVersion` and `kind`.
    pub fn of_object(&self, api_version: &str, kind: &str) -> Option<&Arc<Kind>> {
        self.all()
            .find(|known| known.kind == kind && known.api_version() == api_version)
    }

    /// A number that changes when a group's version does.
    pub fn digest(&self, group: &str, version: &str) -> u64 {
        let of_version = |kind: &&Arc<Kind>| kind.group == group && kind.version == version;
        let texts = self.all().filter(of_version).map(|kind| {
            let schema = kind.custom.as_ref().map(|custom| custom.schema.to_string());
            format!("{}{}", kind.kind, schema.unwrap_or_default())
        });
        // FNV-1a.
        texts.fold(0xcbf2_9ce4_8422_2325, |hash, text| {
            text.bytes().fold(hash, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            })
        })
    }

    /// All of them, by group, version and plural.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Kind>> {
        self.all.values()
    }

    /// Takes what a `CustomResourceDefinition` defines, in place of what it defined before.
    pub fn define(&mut self, definition: &Value) {
        self.forget(definition);
        for kind in custom::kinds(definition) {
            self.all.insert(key(&kind), Arc::new(kind));
        }
    }

    /// Takes back what a `CustomResourceDefinition` defined.
    pub fn forget(&mut self, definition: &Value) {
        let text = |at: &str| definition.pointer(at).and_then(Value::as_str);
        let group = text("/spec/group").unwrap_or_default().to_owned();
        let plural = text("/spec/names/plural").unwrap_or_default().to_owned();
        self.all.retain(|_, kind| {
            kind.custom.is_none() || kind.group != group || kind.plural != plural
        });
    }
}

fn key(kind: &Kind) -> (String, String, String) {
    (
        kind.group.clone(),
        kind.version.clone(),
        kind.plural.clone(),
    )
}
