// SPDX-License-Identifier: Apache-2.0
//! New objects.

use serde_json::{Value, json};

use super::settle::settle;
use super::{Draft, metadata};
use crate::convert;
use crate::failure::{Cause, Failure};
use crate::kind::Kind;
use crate::state::{Ask, State, time};
use crate::store;

impl State {
    /// A new object from the body of a request.
    pub(super) fn draft_create(&mut self, ask: &Ask, body: Value) -> Result<Draft, Failure> {
        let kind = &ask.kind;
        let mut object = metadata::check_body(ask, body)?;
        if !object["metadata"]["resourceVersion"].is_null() {
            let message = "resourceVersion should not be set on objects to be created";
            return Err(Failure::internal(message));
        }
        let name = self.name(ask, &object)?;
        self.check_namespace(ask, &name)?;
        let key = store::key(&ask.namespace, &name);
        let uid = self.random.uid();
        let members = &mut object["metadata"];
        members["name"] = json!(name);
        members["uid"] = json!(uid);
        members["creationTimestamp"] = json!(time(ask.now));
        if let Some(members) = members.as_object_mut() {
            members.remove("deletionTimestamp");
            members.remove("deletionGracePeriodSeconds");
            members.remove("generation");
        }
        start(kind, &mut object);
        let mut warnings = Vec::new();
        let object = settle(ask, None, object, &mut warnings)?;
        if self.store.get(&kind.place(), &key).is_some() {
            return Err(Failure::already_exists(kind, &name));
        }
        Ok(Draft {
            key,
            before: None,
            after: convert::kept(kind, object),
            warnings,
        })
    }

    /// The namespace must be there, and not on its way out.
    fn check_namespace(&self, ask: &Ask, name: &str) -> Result<(), Failure> {
        if !ask.kind.is_namespaced {
            return Ok(());
        }
        let place = (String::new(), "namespaces".to_owned());
        let namespace = self.store.get(&place, &ask.namespace);
        let namespaces = self.kinds.find("", "v1", "namespaces");
        match (namespace, namespaces) {
            (None, Some(kind)) => Err(Failure::not_found(kind, &ask.namespace)),
            (Some(namespace), _) if !namespace["metadata"]["deletionTimestamp"].is_null() => {
                let why = format!(
                    "unable to create new content in namespace {} because it is being terminated",
                    ask.namespace
                );
                let mut failure = Failure::forbidden(&ask.kind, name, &why);
                failure.details["causes"] = json!([{
                    "reason": "NamespaceTerminating",
                    "message": format!("namespace {} is being terminated", ask.namespace),
                    "field": "metadata.namespace",
                }]);
                Err(failure)
            }
            _ => Ok(()),
        }
    }

    /// The name in the body, or a new one after `generateName`.
    fn name(&mut self, ask: &Ask, object: &Value) -> Result<String, Failure> {
        let text = |at: &str| object["metadata"][at].as_str().unwrap_or_default();
        match (text("name"), text("generateName")) {
            ("", "") => {
                let cause = Cause::required("metadata.name", "name or generateName is required");
                Err(Failure::invalid(&ask.kind, "", &[cause]))
            }
            // The real server keeps 58 letters of it, so that the name has at most 63.
            ("", start) => {
                let kept: String = start.chars().take(58).collect();
                Ok(format!("{kept}{}", self.random.suffix()))
            }
            (name, _) => Ok(name.to_owned()),
        }
    }
}

/// What a kind's objects have from the start, whatever the request says.
fn start(kind: &Kind, object: &mut Value) {
    if kind.counts_generations() {
        object["metadata"]["generation"] = json!(1);
    }
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Namespace") => {
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] =
                object["metadata"]["name"].clone();
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            object["status"] = json!({"phase": "Active"});
        }
        // The kubelet registers its node with a status.
        ("", "Node") => {}
        ("", "Pod") => object["status"] = json!({"phase": "Pending"}),
        _ if kind.has("status") => {
            if let Some(members) = object.as_object_mut() {
                members.remove("status");
            }
        }
        _ => {}
    }
}
