// SPDX-License-Identifier: Apache-2.0
//! Who belongs to whom: an index over owner references, for the collection of what is left behind.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::kind::Place;
use crate::store::Key;

/// The uids that are there, and the dependents of each uid that is named as an owner.
#[derive(Debug, Default)]
pub struct Owners {
    present: BTreeSet<String>,
    dependents: BTreeMap<String, BTreeSet<(Place, Key)>>,
}

impl Owners {
    /// Takes note of a write.
    pub fn note(
        &mut self,
        place: &Place,
        key: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) {
        if let Some(object) = before {
            self.present.remove(&uid(object));
            for owner in owners(object) {
                if let Some(dependents) = self.dependents.get_mut(owner) {
                    dependents.remove(&(place.clone(), key.to_owned()));
                    if dependents.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
        }
        if let Some(object) = after {
            self.present.insert(uid(object));
            for owner in owners(object) {
                let dependents = self.dependents.entry(owner.to_owned()).or_default();
                dependents.insert((place.clone(), key.to_owned()));
            }
        }
    }

    /// What belongs to an object.
    pub fn dependents(&self, uid: &str) -> Vec<(Place, Key)> {
        let dependents = self.dependents.get(uid);
        dependents.into_iter().flatten().cloned().collect()
    }

    /// Whether an object had owners and none of them is left.
    pub fn is_left_behind(&self, object: &Value) -> bool {
        let mut owners = owners(object).peekable();
        owners.peek().is_some() && owners.all(|owner| !self.present.contains(owner))
    }
}

/// The uid of an object.
pub fn uid(object: &Value) -> String {
    let uid = object["metadata"]["uid"].as_str();
    uid.unwrap_or_default().to_owned()
}

fn owners(object: &Value) -> impl Iterator<Item = &str> {
    let references = object["metadata"]["ownerReferences"].as_array();
    references
        .into_iter()
        .flatten()
        .filter_map(|owner| owner["uid"].as_str())
}
