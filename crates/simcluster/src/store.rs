// SPDX-License-Identifier: Apache-2.0
//! Objects and their history: one rising version for all of them, and for each resource the last
//! changes, from which a watch goes on and an older list is made. Knows no rule of any kind.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use crate::kind::Place;

/// The version of an empty store. A real server has made some hundreds before anybody asks.
const FIRST_VERSION: u64 = 1000;

/// Name of an object within its resource: `namespace/name`, or only the name where there are no
/// namespaces. Sorts as the real server's keys do.
pub type Key = String;

/// The key of an object; `namespace` is empty where there is none.
pub fn key(namespace: &str, name: &str) -> Key {
    match namespace {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    }
}

/// One write.
#[derive(Clone, Debug)]
pub struct Change {
    /// The version that it made.
    pub version: u64,
    /// What is changed.
    pub key: Key,
    /// As it was; `None` where it is created.
    pub before: Option<Arc<Value>>,
    /// As it is; the last state, with this change's version, where it is removed.
    pub object: Arc<Value>,
    /// Whether it is removed.
    pub is_removal: bool,
}

/// The history back to a version is forgotten: 410.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The oldest version from which a watch can still go on.
    pub oldest: u64,
}

#[derive(Debug, Default)]
struct Collection {
    objects: BTreeMap<Key, Arc<Value>>,
    changes: VecDeque<Change>,
    /// Version of the newest change that is forgotten.
    oldest: u64,
}

/// All objects.
#[derive(Debug)]
pub struct Store {
    version: u64,
    kept_changes: usize,
    collections: BTreeMap<Place, Collection>,
}

impl Store {
    /// An empty one that remembers `kept_changes` changes of each resource.
    pub fn new(kept_changes: usize) -> Self {
        Self {
            version: FIRST_VERSION,
            kept_changes,
            collections: BTreeMap::new(),
        }
    }

    /// The version of the newest change.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// One object.
    pub fn get(&self, place: &Place, key: &str) -> Option<&Arc<Value>> {
        self.collections.get(place)?.objects.get(key)
    }

    /// The objects of a resource in a namespace, or all with an empty one, in the order of keys.
    pub fn list(
        &self,
        place: &Place,
        namespace: &str,
    ) -> impl Iterator<Item = (&Key, &Arc<Value>)> {
        let prefix = prefix(namespace);
        let objects = self.collections.get(place).map(|known| &known.objects);
        objects.into_iter().flat_map(move |objects| {
            let from = prefix.clone();
            objects
                .range(from.clone()..)
                .take_while(move |(key, _)| key.starts_with(&from))
        })
    }

    /// The objects as they were at a version.
    ///
    /// # Errors
    /// If the changes since then are no longer all known.
    pub fn list_at(
        &self,
        place: &Place,
        namespace: &str,
        version: u64,
    ) -> Result<BTreeMap<Key, Arc<Value>>, Forgotten> {
        let mut objects: BTreeMap<Key, Arc<Value>> = self
            .list(place, namespace)
            .map(|(key, object)| (key.clone(), Arc::clone(object)))
            .collect();
        let prefix = prefix(namespace);
        let undone: Vec<&Change> = self.changes_since(place, version)?.collect();
        for change in undone.into_iter().rev() {
            if !change.key.starts_with(&prefix) {
                continue;
            }
            match &change.before {
                Some(before) => objects.insert(change.key.clone(), Arc::clone(before)),
                None => objects.remove(&change.key),
            };
        }
        Ok(objects)
    }

    /// The changes of a resource after a version, oldest first.
    ///
    /// # Errors
    /// If some of them are forgotten.
    pub fn changes_since(
        &self,
        place: &Place,
        version: u64,
    ) -> Result<impl Iterator<Item = &Change>, Forgotten> {
        let collection = self.collections.get(place);
        let oldest = collection.map_or(0, |known| known.oldest);
        if version < oldest {
            return Err(Forgotten { oldest });
        }
        let changes = collection.map(|known| {
            let first = known
                .changes
                .partition_point(|change| change.version <= version);
            known.changes.range(first..)
        });
        Ok(changes.into_iter().flatten())
    }

    /// Writes an object under the next version, which is put into its metadata.
    pub fn put(&mut self, place: &Place, key: &str, object: Value) -> Arc<Value> {
        self.change(place, key, object, false)
    }

    /// Removes an object. Its last state, under the next version; `None` if there is none.
    pub fn remove(&mut self, place: &Place, key: &str) -> Option<Arc<Value>> {
        let object = self.get(place, key)?;
        let object = Value::clone(object);
        Some(self.change(place, key, object, true))
    }

    fn change(
        &mut self,
        place: &Place,
        key: &str,
        mut object: Value,
        is_removal: bool,
    ) -> Arc<Value> {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        let object = Arc::new(object);
        let collection = self.collections.entry(place.clone()).or_default();
        let before = match is_removal {
            true => collection.objects.remove(key),
            false => collection
                .objects
                .insert(key.to_owned(), Arc::clone(&object)),
        };
        collection.changes.push_back(Change {
            version: self.version,
            key: key.to_owned(),
            before,
            object: Arc::clone(&object),
            is_removal,
        });
        while collection.changes.len() > self.kept_changes {
            if let Some(forgotten) = collection.changes.pop_front() {
                collection.oldest = forgotten.version;
            }
        }
        object
    }
}

fn prefix(namespace: &str) -> String {
    match namespace {
        "" => String::new(),
        namespace => format!("{namespace}/"),
    }
}
