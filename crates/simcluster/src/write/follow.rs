// SPDX-License-Identifier: Apache-2.0
//! What follows from a write, drawn at once where a real cluster has controllers for it: resources
//! that a definition brings, the end of a namespace, and objects whose owners are gone.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::delete::{Deletion, FOREGROUND, ORPHAN};
use super::is_finished;
use crate::kind::Place;
use crate::owners;
use crate::state::{Event, State, time};
use crate::store::Key;

/// The finalizer that keeps a definition until its objects are gone.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

impl State {
    /// Draws the consequences of all writes that are open, and of those that they bring.
    pub fn follow(&mut self, now: Timestamp) {
        while let Some(event) = self.next_event() {
            if event.place.1 == "customresourcedefinitions" {
                self.follow_definition(&event, now);
            }
            if event.place == namespaces() && !event.is_removal {
                self.give_account(&event.key, now);
            }
            if let Some((namespace, _)) = event.key.split_once('/') {
                self.count_quotas(namespace);
            }
            match event.is_removal {
                true => self.follow_removal(&event, now),
                false => self.follow_deletion(&event, now),
            }
        }
    }

    /// Every namespace has the account `default`.
    fn give_account(&mut self, namespace: &str, now: Timestamp) {
        let place = (String::new(), "serviceaccounts".to_owned());
        let key = format!("{namespace}/default");
        let is_leaving = self
            .store
            .get(&namespaces(), namespace)
            .is_none_or(|it| !it["metadata"]["deletionTimestamp"].is_null());
        if is_leaving || self.store.get(&place, &key).is_some() {
            return;
        }
        let account = json!({
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {
                "name": "default",
                "namespace": namespace,
                "uid": self.random.uid(),
                "creationTimestamp": time(now),
            },
        });
        self.put(&place, &key, account);
    }

    fn follow_definition(&mut self, event: &Event, now: Timestamp) {
        let definition = &event.object;
        if event.is_removal {
            self.kinds.forget(definition);
            return;
        }
        if !definition["metadata"]["deletionTimestamp"].is_null() {
            let text = |at: &str| definition["spec"].pointer(at).and_then(Value::as_str);
            let group = text("/group").unwrap_or_default().to_owned();
            let plural = text("/names/plural").unwrap_or_default().to_owned();
            let place = (group, plural);
            self.delete_all(&place, "", now);
            if self.store.list(&place, "").next().is_none() {
                self.release(&event.place, &event.key, CLEANUP);
            }
            return;
        }
        self.kinds.define(definition);
        if definition["status"]["storedVersions"].is_null() {
            let mut established = Value::clone(definition);
            establish(&mut established, now);
            self.put(&event.place, &event.key, established);
        }
    }

    /// An object is gone: so are those that had only it as an owner, and what waited for it.
    fn follow_removal(&mut self, event: &Event, now: Timestamp) {
        for (place, key) in self.owners().dependents(&owners::uid(&event.object)) {
            let dependent = self.store.get(&place, &key);
            if dependent.is_some_and(|dependent| self.owners().is_left_behind(dependent)) {
                self.delete_by_itself(&place, &key, &Deletion::default(), now);
            }
        }
        let references = event.object["metadata"]["ownerReferences"].as_array();
        for owner in references.into_iter().flatten() {
            self.wake_owner(event, owner);
        }
        if let Some((namespace, _)) = event.key.split_once('/') {
            self.wake(&namespaces(), namespace);
        }
        let definition = format!("{}.{}", event.place.1, event.place.0);
        let place = (
            "apiextensions.k8s.io".to_owned(),
            "customresourcedefinitions".to_owned(),
        );
        self.wake(&place, &definition);
    }

    /// An owner that waits for its dependents is looked at again.
    fn wake_owner(&mut self, event: &Event, owner: &Value) {
        let text = |at: &str| owner[at].as_str().unwrap_or_default();
        let Some(kind) = self.kinds.of_object(text("apiVersion"), text("kind")) else {
            return;
        };
        let key = match (kind.is_namespaced, event.key.split_once('/')) {
            (true, Some((namespace, _))) => format!("{namespace}/{}", text("name")),
            _ => text("name").to_owned(),
        };
        let place = kind.place();
        self.wake(&place, &key);
    }

    /// Looks at an object again if it is being deleted.
    fn wake(&mut self, place: &Place, key: &str) {
        if let Some(object) = self.store.get(place, key).cloned()
            && !object["metadata"]["deletionTimestamp"].is_null()
        {
            self.look_at(place, key, object);
        }
    }

    /// An object is being deleted: what it waits for is done.
    fn follow_deletion(&mut self, event: &Event, now: Timestamp) {
        let object = &event.object;
        if object["metadata"]["deletionTimestamp"].is_null() {
            return;
        }
        let dependents = self.owners().dependents(&owners::uid(object));
        if has_finalizer(object, ORPHAN) {
            for (place, key) in &dependents {
                self.disown(place, key, &owners::uid(object));
            }
            self.release(&event.place, &event.key, ORPHAN);
        }
        if has_finalizer(object, FOREGROUND) {
            let deletion = Deletion {
                finalizer: Some(FOREGROUND),
                ..Deletion::default()
            };
            for (place, key) in &dependents {
                self.delete_by_itself(place, key, &deletion, now);
            }
            if !self.is_blocked(&owners::uid(object)) {
                self.release(&event.place, &event.key, FOREGROUND);
            }
        }
        if event.place == namespaces() {
            self.empty_namespace(&event.key, now);
        }
    }

    /// Whether a dependent that blocks the deletion of its owner is left.
    fn is_blocked(&self, uid: &str) -> bool {
        let dependents = self.owners().dependents(uid);
        dependents.iter().any(|(place, key)| {
            let object = self.store.get(place, key);
            let references = object.and_then(|it| it["metadata"]["ownerReferences"].as_array());
            let mut references = references.into_iter().flatten();
            references.any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
        })
    }

    fn disown(&mut self, place: &Place, key: &str, uid: &str) {
        let Some(mut object) = self.store.get(place, key).map(|it| Value::clone(it)) else {
            return;
        };
        take_out(&mut object, "ownerReferences", |owner| owner["uid"] == uid);
        self.put(place, key, object);
    }

    /// Takes a finalizer away, and the object if that was the last thing that held it.
    fn release(&mut self, place: &Place, key: &str, finalizer: &str) {
        let Some(mut object) = self.store.get(place, key).map(|it| Value::clone(it)) else {
            return;
        };
        if !has_finalizer(&object, finalizer) {
            return;
        }
        take_out(&mut object, "finalizers", |known| known == finalizer);
        let is_finished = is_finished(&object);
        self.put(place, key, object);
        if is_finished {
            self.remove(place, key);
        }
    }

    fn empty_namespace(&mut self, name: &str, now: Timestamp) {
        let places: Vec<Place> = self
            .kinds
            .all()
            .filter(|kind| kind.is_namespaced)
            .map(|kind| kind.place())
            .collect();
        for place in &places {
            self.delete_all(place, name, now);
        }
        let is_empty = |place: &Place| self.store.list(place, name).next().is_none();
        if !places.iter().all(is_empty) {
            return;
        }
        let place = namespaces();
        if let Some(mut namespace) = self.store.get(&place, name).map(|it| Value::clone(it))
            && namespace["spec"]["finalizers"] == json!(["kubernetes"])
        {
            namespace["spec"] = json!({});
            let is_finished = is_finished(&namespace);
            self.put(&place, name, namespace);
            if is_finished {
                self.remove(&place, name);
            }
        }
    }

    fn delete_all(&mut self, place: &Place, namespace: &str, now: Timestamp) {
        let keys: Vec<Key> = self
            .store
            .list(place, namespace)
            .map(|(key, _)| key.clone())
            .collect();
        for key in keys {
            self.delete_by_itself(place, &key, &Deletion::default(), now);
        }
    }
}

fn namespaces() -> Place {
    (String::new(), "namespaces".to_owned())
}

/// Takes items out of a list in the metadata, and the list if nothing is left.
fn take_out(object: &mut Value, list: &str, is_out: impl Fn(&Value) -> bool) {
    let Some(metadata) = object["metadata"].as_object_mut() else {
        return;
    };
    if let Some(items) = metadata.get_mut(list).and_then(Value::as_array_mut) {
        items.retain(|item| !is_out(item));
        if items.is_empty() {
            metadata.remove(list);
        }
    }
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let list = object["metadata"]["finalizers"].as_array();
    list.is_some_and(|list| list.iter().any(|known| known == finalizer))
}

/// Gives a definition the status of one that is served.
fn establish(definition: &mut Value, now: Timestamp) {
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind,
            "status": "True",
            "lastTransitionTime": time(now),
            "reason": reason,
            "message": message,
        })
    };
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().cloned().unwrap_or_default();
    let stored: Vec<Value> = versions
        .iter()
        .filter(|version| version["storage"] == true)
        .map(|version| version["name"].clone())
        .collect();
    let status = json!({
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
        "acceptedNames": spec["names"],
        "storedVersions": stored,
    });
    definition["status"] = status;
    definition["metadata"]["finalizers"] = json!([CLEANUP]);
}
