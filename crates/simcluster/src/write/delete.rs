// SPDX-License-Identifier: Apache-2.0
//! Deletions: at once, after a time of grace, or when the last finalizer is gone.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::{Written, is_finished};
use crate::convert;
use crate::failure::{Cause, Failure};
use crate::kind::{Kind, Place};
use crate::list::Filter;
use crate::owners;
use crate::state::{Ask, State, time};

/// Kinds whose deletion answers with the object (`ReturnDeletedObject` in `pkg/registry`).
const ANSWERED_WHOLE: &[&str] = &[
    "Namespace",
    "PersistentVolumeClaim",
    "Pod",
    "ResourceQuota",
    "Service",
    "ServiceAccount",
];

/// Seconds of grace of a pod that says nothing.
const POD_GRACE: u64 = 30;

/// The finalizer of a deletion that waits for the dependents.
pub(super) const FOREGROUND: &str = "foregroundDeletion";
/// The finalizer of a deletion that leaves the dependents alone.
pub(super) const ORPHAN: &str = "orphan";

/// How something is to be deleted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Deletion {
    /// Seconds until a pod is killed; `None` for what the object says.
    pub grace: Option<u64>,
    /// The finalizer of the wanted propagation; `None` in the background.
    pub finalizer: Option<&'static str>,
    /// The object must have this uid, if not empty.
    pub uid: String,
    /// The object must have this version, if not empty.
    pub version: String,
}

impl Deletion {
    /// Reads `DeleteOptions` of a body, null for none, and those in the query.
    ///
    /// # Errors
    /// 422 for a policy that there is none.
    pub fn of(ask: &Ask, options: &Value) -> Result<Self, Failure> {
        let text = |at: &str| {
            options
                .pointer(at)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let policy = match text("/propagationPolicy") {
            "" => ask.query.get("propagationPolicy"),
            policy => policy,
        };
        let finalizer = match policy {
            "" if options["orphanDependents"] == true => Some(ORPHAN),
            "" | "Background" => None,
            "Foreground" => Some(FOREGROUND),
            "Orphan" => Some(ORPHAN),
            other => {
                let known = ["Foreground", "Background", "Orphan", "nil"];
                let cause = Cause::unsupported("propagationPolicy", &json!(other), &known);
                return Err(Failure::invalid_options("DeleteOptions", &[cause]));
            }
        };
        Ok(Self {
            grace: match options["gracePeriodSeconds"].as_u64() {
                Some(grace) => Some(grace),
                None => ask.query.number("gracePeriodSeconds")?,
            },
            finalizer,
            uid: text("/preconditions/uid").to_owned(),
            version: text("/preconditions/resourceVersion").to_owned(),
        })
    }
}

impl State {
    /// Deletes an object, or begins to.
    ///
    /// # Errors
    /// 404 if there is none, 409 where a precondition does not hold.
    pub fn delete(&mut self, ask: &Ask, deletion: &Deletion) -> Result<Written, Failure> {
        let kind = Arc::clone(&ask.kind);
        let live = Arc::clone(self.live(ask)?);
        check_preconditions(ask, deletion, &live)?;
        let place = kind.place();
        let left = deleted(&kind, &live, deletion, ask.now);
        let is_gone = left.is_none();
        let object = match (ask.is_dry_run()?, left) {
            (true, left) => left.unwrap_or_else(|| Value::clone(&live)),
            (false, Some(left)) if left == *live => left,
            (false, Some(left)) => Value::clone(&self.put(&place, &ask.key(), left)),
            (false, None) => {
                let last = self.remove(&place, &ask.key());
                Value::clone(&last.unwrap_or(live))
            }
        };
        self.follow(ask.now);
        let is_whole = !is_gone || ANSWERED_WHOLE.contains(&kind.kind.as_str());
        Ok(Written {
            code: 200,
            object: match is_whole {
                true => convert::shown(&kind, &object),
                false => success(&kind, &object),
            },
            warnings: Vec::new(),
        })
    }

    /// Deletes what the selectors of a request mean. The objects as they were.
    ///
    /// # Errors
    /// 400 for selectors that cannot be read.
    pub fn delete_collection(
        &mut self,
        ask: &Ask,
        deletion: &Deletion,
    ) -> Result<Vec<Value>, Failure> {
        let filter = Filter::of(ask)?;
        let objects: Vec<Value> = self
            .store
            .list(&ask.kind.place(), &ask.namespace)
            .map(|(_, object)| convert::shown(&ask.kind, object))
            .filter(|shown| filter.takes(shown))
            .collect();
        for object in &objects {
            let text = |at: &str| object["metadata"][at].as_str().unwrap_or_default();
            let one = Ask {
                namespace: text("namespace").to_owned(),
                name: text("name").to_owned(),
                ..ask.clone()
            };
            // Another of them may have taken this one along.
            match self.delete(&one, deletion) {
                Err(failure) if failure.code != 404 => return Err(failure),
                _ => {}
            }
        }
        Ok(objects)
    }

    /// Deletes an object on behalf of the server itself.
    pub(super) fn delete_by_itself(
        &mut self,
        place: &Place,
        key: &str,
        deletion: &Deletion,
        now: Timestamp,
    ) {
        let Some(live) = self.store.get(place, key).cloned() else {
            return;
        };
        let text = |at: &str| live[at].as_str().unwrap_or_default();
        let Some(kind) = self
            .kinds
            .of_object(text("apiVersion"), text("kind"))
            .cloned()
        else {
            return;
        };
        match deleted(&kind, &live, deletion, now) {
            Some(left) if left == *live => {}
            Some(left) => drop(self.put(place, key, left)),
            None => drop(self.remove(place, key)),
        }
    }
}

fn check_preconditions(ask: &Ask, deletion: &Deletion, live: &Value) -> Result<(), Failure> {
    let version = live["metadata"]["resourceVersion"]
        .as_str()
        .unwrap_or_default();
    let uid = owners::uid(live);
    let refuse = |what: &str, wanted: &str, found: &str, what_then: &str| {
        let why = format!(
            "the {what} in the precondition ({wanted}) does not match the {what} in record \
             ({found}). The object might have been {what_then}"
        );
        Err(Failure::other_meant(&ask.kind, &ask.name, &why))
    };
    if !deletion.uid.is_empty() && deletion.uid != uid {
        return refuse("UID", &deletion.uid, &uid, "deleted and then recreated");
    }
    if !deletion.version.is_empty() && deletion.version != version {
        return refuse("ResourceVersion", &deletion.version, version, "modified");
    }
    Ok(())
}

/// What is left of an object after a deletion; `None` if nothing.
fn deleted(kind: &Kind, live: &Value, deletion: &Deletion, now: Timestamp) -> Option<Value> {
    let grace = grace(kind, live, deletion);
    let mut left = live.clone();
    let metadata = &mut left["metadata"];
    if metadata["deletionTimestamp"].is_null() {
        if let Some(finalizer) = deletion.finalizer {
            add_finalizer(metadata, finalizer);
        }
        let seconds = SignedDuration::from_secs(i64::try_from(grace).unwrap_or(0));
        let end = now.checked_add(seconds).unwrap_or(now);
        metadata["deletionTimestamp"] = json!(time(end));
        metadata["deletionGracePeriodSeconds"] = json!(grace);
        if let Some(generation) = metadata["generation"].as_u64() {
            metadata["generation"] = json!(generation + 1);
        }
        if kind.kind == "Namespace" {
            left["status"]["phase"] = json!("Terminating");
        }
    } else if metadata["deletionGracePeriodSeconds"].as_u64().unwrap_or(0) > grace {
        // Only ever sooner.
        metadata["deletionGracePeriodSeconds"] = json!(grace);
    }
    (!is_finished(&left)).then_some(left)
}

/// Seconds that an object gets. Only a pod that a node may run gets any.
fn grace(kind: &Kind, live: &Value, deletion: &Deletion) -> u64 {
    let is_bound = live["spec"]["nodeName"]
        .as_str()
        .is_some_and(|node| !node.is_empty());
    let is_over = matches!(
        live["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if kind.kind != "Pod" || !is_bound || is_over {
        return 0;
    }
    let own = live["spec"]["terminationGracePeriodSeconds"].as_u64();
    deletion.grace.or(own).unwrap_or(POD_GRACE)
}

fn add_finalizer(metadata: &mut Value, finalizer: &str) {
    let mut list = metadata["finalizers"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    if !list.iter().any(|known| known == finalizer) {
        list.push(json!(finalizer));
    }
    metadata["finalizers"] = json!(list);
}

/// The answer for an object that is gone.
fn success(kind: &Kind, object: &Value) -> Value {
    let mut details = json!({
        "name": object["metadata"]["name"],
        "kind": kind.plural,
        "uid": object["metadata"]["uid"],
    });
    if !kind.group.is_empty() {
        details["group"] = json!(kind.group);
    }
    json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    })
}
