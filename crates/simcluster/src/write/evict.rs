// SPDX-License-Identifier: Apache-2.0
//! What is asked of a pod by way of a subresource: its eviction, which disruption budgets may refuse,
//! and its binding to a node (`pkg/registry/core/pod/storage` of Kubernetes 1.37).

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Deletion, Written};
use crate::failure::Failure;
use crate::list::selects;
use crate::state::{Ask, State, time};
use crate::store::Key;

const BUDGETS: (&str, &str) = ("policy", "poddisruptionbudgets");

impl State {
    /// Deletes a pod unless a budget says that it is needed.
    ///
    /// # Errors
    /// 429 where a budget refuses, 500 where two budgets mean the pod, and those of a deletion.
    pub fn evict(&mut self, ask: &Ask, eviction: &Value) -> Result<Written, Failure> {
        let pod = Arc::clone(self.live(ask)?);
        let is_over = matches!(
            pod["status"]["phase"].as_str(),
            Some("Succeeded" | "Failed")
        );
        let is_leaving = !pod["metadata"]["deletionTimestamp"].is_null();
        let is_pending = pod["status"]["phase"] == "Pending";
        let place = (BUDGETS.0.to_owned(), BUDGETS.1.to_owned());
        let mut paid: Option<(Key, Value)> = None;
        if !is_over && !is_leaving && !is_pending {
            match self.budgets(&pod).as_slice() {
                [] => {}
                [(key, budget)] => paid = Some((key.clone(), spend(ask, budget)?)),
                _ => {
                    let message = "This pod has more than one PodDisruptionBudget, which the eviction \
                                   subresource does not support.";
                    return Err(Failure::internal(message));
                }
            }
        }
        let deletion = Deletion::of(ask, &eviction["deleteOptions"])?;
        if let (Some((key, budget)), false) = (paid, ask.is_dry_run()?) {
            self.put(&place, &key, budget);
        }
        self.delete(ask, &deletion)?;
        Ok(done())
    }

    /// The budgets that mean a pod.
    fn budgets(&self, pod: &Value) -> Vec<(Key, Arc<Value>)> {
        let namespace = pod["metadata"]["namespace"].as_str().unwrap_or_default();
        let place = (BUDGETS.0.to_owned(), BUDGETS.1.to_owned());
        self.store
            .list(&place, namespace)
            .filter(|(_, budget)| selects(&budget["spec"]["selector"], pod))
            .map(|(key, budget)| (key.clone(), Arc::clone(budget)))
            .collect()
    }

    /// Gives a pod its node.
    ///
    /// # Errors
    /// 404 if there is no such pod, 409 if it has a node.
    pub fn bind(&mut self, ask: &Ask, binding: &Value) -> Result<Written, Failure> {
        let mut pod = Value::clone(self.live(ask)?);
        let node = pod["spec"]["nodeName"].as_str().unwrap_or_default();
        if !node.is_empty() {
            let why = format!("pod {} is already assigned to node {node:?}", ask.name);
            let mut failure = Failure::conflict(&ask.kind, &ask.name, &why);
            failure.message = failure.message.replacen("pods", "pods/binding", 1);
            failure.details["kind"] = json!("pods/binding");
            return Err(failure);
        }
        pod["spec"]["nodeName"] = binding["target"]["name"].clone();
        let scheduled = json!({
            "type": "PodScheduled",
            "status": "True",
            "lastTransitionTime": time(ask.now),
        });
        match pod["status"]["conditions"].as_array_mut() {
            Some(conditions) => {
                conditions.retain(|known| known["type"] != "PodScheduled");
                conditions.push(scheduled);
            }
            None => pod["status"]["conditions"] = json!([scheduled]),
        }
        if !ask.is_dry_run()? {
            self.put(&ask.kind.place(), &ask.key(), pod);
            self.follow(ask.now);
        }
        Ok(done())
    }
}

/// The budget with one disruption less.
fn spend(ask: &Ask, budget: &Value) -> Result<Value, Failure> {
    let number = |at: &str| budget.pointer(at).and_then(Value::as_i64).unwrap_or(0);
    let refuse = |cause: String| {
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        let causes = json!([{"reason": "DisruptionBudget", "message": cause}]);
        Err(Failure::too_many_requests(message, &causes))
    };
    let name = budget["metadata"]["name"].as_str().unwrap_or_default();
    if number("/status/observedGeneration") < number("/metadata/generation") {
        return refuse(format!(
            "The disruption budget {name} is still being processed by the server."
        ));
    }
    if number("/status/disruptionsAllowed") < 1 {
        return refuse(format!(
            "The disruption budget {name} needs {} healthy pods and has {} currently",
            number("/status/desiredHealthy"),
            number("/status/currentHealthy"),
        ));
    }
    let mut budget = budget.clone();
    budget["status"]["disruptionsAllowed"] = json!(number("/status/disruptionsAllowed") - 1);
    budget["status"]["disruptedPods"][&ask.name] = json!(time(ask.now));
    Ok(budget)
}

fn done() -> Written {
    Written {
        code: 201,
        object: json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "code": 201,
        }),
        warnings: Vec::new(),
    }
}
