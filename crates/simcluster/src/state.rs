// SPDX-License-Identifier: Apache-2.0
//! What the API server knows: objects, resources, and the source of new names. Pure: time comes in
//! with each request.

use std::collections::VecDeque;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::failure::{Cause, Failure};
use crate::kind::{Kind, Kinds, Place};
use crate::owners::Owners;
use crate::random::Random;
use crate::request::{Query, Url};
use crate::store::{self, Key, Store};

/// Namespaces that are there from the start, as on a new cluster.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Everything that is known.
#[derive(Debug)]
pub struct State {
    /// Objects.
    pub store: Store,
    /// Resources.
    pub kinds: Kinds,
    /// New uids and names.
    pub random: Random,
    /// Who belongs to whom.
    owners: Owners,
    /// Writes whose consequences are not drawn yet.
    open: VecDeque<Event>,
}

/// A write whose consequences are to be drawn.
#[derive(Clone, Debug)]
pub struct Event {
    /// Its resource.
    pub place: Place,
    /// Its key.
    pub key: Key,
    /// The object, or its last state.
    pub object: Arc<Value>,
    /// Whether it was removed.
    pub is_removal: bool,
}

/// One request about objects.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Which resource.
    pub kind: Arc<Kind>,
    /// Empty where there is none.
    pub namespace: String,
    /// Empty where the whole collection is meant.
    pub name: String,
    /// Empty for the object itself.
    pub subresource: String,
    /// The HTTP method.
    pub method: String,
    /// Parameters.
    pub query: Query,
    /// Who writes, for `metadata.managedFields`.
    pub manager: String,
    /// Whether the body is applied: its managed fields are settled already.
    pub has_applied: bool,
    /// When it came.
    pub now: Timestamp,
}

impl Ask {
    /// The key of the object that is meant.
    pub fn key(&self) -> Key {
        store::key(&self.namespace, &self.name)
    }

    /// Whether nothing may be kept.
    ///
    /// # Errors
    /// 422 for another word than `All`.
    pub fn is_dry_run(&self) -> Result<bool, Failure> {
        let options = match self.method.as_str() {
            "POST" => "CreateOptions",
            "PUT" => "UpdateOptions",
            "PATCH" => "PatchOptions",
            _ => "DeleteOptions",
        };
        match self.query.get("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let cause = Cause::unsupported("dryRun", &json!([other]), &["All"]);
                Err(Failure::invalid_options(options, &[cause]))
            }
        }
    }
}

impl State {
    /// A new cluster: nothing but the first namespaces. Remembers `kept_changes` changes of each
    /// resource; uids and generated names follow from `seed`.
    pub fn new(kept_changes: usize, seed: u64, now: Timestamp) -> Self {
        let mut state = Self {
            store: Store::new(kept_changes),
            kinds: Kinds::built_in(),
            random: Random::new(seed),
            owners: Owners::default(),
            open: VecDeque::new(),
        };
        let place = (String::new(), "namespaces".to_owned());
        for name in NAMESPACES {
            let namespace = json!({
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {
                    "name": name,
                    "uid": state.random.uid(),
                    "creationTimestamp": time(now),
                    "labels": {"kubernetes.io/metadata.name": name},
                },
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            });
            state.put(&place, name, namespace);
        }
        state.follow(now);
        state
    }

    /// Writes an object.
    pub fn put(&mut self, place: &Place, key: &str, object: Value) -> Arc<Value> {
        let before = self.store.get(place, key).cloned();
        let object = self.store.put(place, key, object);
        self.note(place, key, before.as_deref(), &object, false);
        object
    }

    /// Removes an object; its last state.
    pub fn remove(&mut self, place: &Place, key: &str) -> Option<Arc<Value>> {
        let before = self.store.get(place, key).cloned();
        let object = self.store.remove(place, key)?;
        self.note(place, key, before.as_deref(), &object, true);
        Some(object)
    }

    fn note(
        &mut self,
        place: &Place,
        key: &str,
        before: Option<&Value>,
        object: &Arc<Value>,
        is_removal: bool,
    ) {
        let after = (!is_removal).then_some(&**object);
        self.owners.note(place, key, before, after);
        self.open.push_back(Event {
            place: place.clone(),
            key: key.to_owned(),
            object: Arc::clone(object),
            is_removal,
        });
    }

    /// Has an object looked at once more, though nothing was written.
    pub fn look_at(&mut self, place: &Place, key: &str, object: Arc<Value>) {
        self.open.push_back(Event {
            place: place.clone(),
            key: key.to_owned(),
            object,
            is_removal: false,
        });
    }

    /// The next write whose consequences are to be drawn.
    pub fn next_event(&mut self) -> Option<Event> {
        self.open.pop_front()
    }

    /// Who belongs to whom.
    pub fn owners(&self) -> &Owners {
        &self.owners
    }

    /// The resource that a URL means.
    ///
    /// # Errors
    /// 404 if there is none, or if it does not live where the URL says.
    pub fn kind(&self, url: &Url) -> Result<Arc<Kind>, Failure> {
        let kind = self.kinds.find(&url.group, &url.version, &url.plural);
        let is_built_in = |known: &Arc<Kind>| {
            known.custom.is_none() && known.group == url.group && known.version == url.version
        };
        let kind = kind.ok_or_else(|| match self.kinds.all().any(is_built_in) {
            true => Failure::unknown_resource(),
            false => Failure::no_page(),
        })?;
        let is_right_place = match kind.is_namespaced {
            true => url.name.is_empty() || !url.namespace.is_empty(),
            false => url.namespace.is_empty(),
        };
        if !is_right_place {
            return Err(Failure::unknown_resource());
        }
        if !url.subresource.is_empty() && !kind.has(&url.subresource) {
            return Err(Failure::unknown_resource());
        }
        Ok(Arc::clone(kind))
    }

    /// The object that is meant.
    ///
    /// # Errors
    /// 404 if there is none.
    pub fn live(&self, ask: &Ask) -> Result<&Arc<Value>, Failure> {
        self.store
            .get(&ask.kind.place(), &ask.key())
            .ok_or_else(|| Failure::not_found(&ask.kind, &ask.name))
    }
}

/// A moment as `metadata` has it: to the second.
pub fn time(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
