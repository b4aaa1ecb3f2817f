// SPDX-License-Identifier: Apache-2.0
//! `metadata.managedFields`: who set which fields, and when.

use serde_json::{Map, Value, json};

use super::Manager;
use super::set::{Path, Set, member};
use super::typed::Difference;

/// What a manager set by one kind of write.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) who: Who,
    /// The version in which it was set.
    api_version: String,
    /// When it last changed something; empty if it never did.
    pub(super) time: String,
    pub(super) fields: Set,
}

/// Whose an entry is. There is one for each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Who {
    name: String,
    /// By any write but server-side apply.
    updates: bool,
    /// Empty for an applier: it may go from version to version.
    version: String,
    subresource: String,
}

impl Who {
    /// Who writes now.
    pub(super) fn of(manager: &Manager<'_>, applies: bool) -> Self {
        let name = if manager.name.is_empty() {
            "unknown"
        } else {
            manager.name
        };
        Self {
            name: name.to_owned(),
            updates: !applies,
            version: if applies {
                String::new()
            } else {
                manager.api_version.to_owned()
            },
            subresource: manager.subresource.to_owned(),
        }
    }

    /// As conflicts name it.
    pub(super) fn shown(&self) -> String {
        let mut shown = format!("{:?}", self.name);
        if !self.subresource.is_empty() {
            shown += &format!(" with subresource {:?}", self.subresource);
        }
        if self.updates {
            shown += &format!(" using {}", self.version);
        }
        shown
    }
}

/// The entries of an object; `None` if they are not understood.
pub(super) fn read(object: &Value) -> Option<Vec<Entry>> {
    let entries = object["metadata"]["managedFields"].as_array();
    entries.into_iter().flatten().map(read_entry).collect()
}

fn read_entry(entry: &Value) -> Option<Entry> {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let applies = match entry["operation"].as_str()? {
        "Apply" => true,
        "Update" => false,
        _ => return None,
    };
    let api_version = text("apiVersion");
    if api_version.is_empty() || entry["fieldsType"] != "FieldsV1" {
        return None;
    }
    Some(Entry {
        who: Who {
            name: text("manager"),
            updates: !applies,
            version: if applies {
                String::new()
            } else {
                api_version.clone()
            },
            subresource: text("subresource"),
        },
        api_version,
        time: text("time"),
        fields: Set::of_json(&entry["fieldsV1"]),
    })
}

/// The object with these entries, in the order of the real API server; without any if there are none.
pub(super) fn write(mut object: Value, mut entries: Vec<Entry>) -> Value {
    entries.sort_by(|one, other| {
        let key = |entry: &Entry| (entry.who.updates, entry.time.clone(), entry.who.clone());
        key(one).cmp(&key(other))
    });
    let entries: Vec<Value> = entries.iter().map(Entry::to_json).collect();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if !entries.is_empty() {
            metadata.insert("managedFields".to_owned(), Value::Array(entries));
        }
    }
    object
}

impl Entry {
    /// What `manager` writes now.
    pub(super) fn new(manager: &Manager<'_>, applies: bool, time: &str, fields: Set) -> Self {
        Self {
            who: Who::of(manager, applies),
            api_version: manager.api_version.to_owned(),
            time: time.to_owned(),
            fields,
        }
    }

    fn to_json(&self) -> Value {
        let mut entry = json!({
            "manager": self.who.name,
            "operation": if self.who.updates { "Update" } else { "Apply" },
            "apiVersion": self.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": self.fields.to_json(),
        });
        for (key, text) in [("time", &self.time), ("subresource", &self.who.subresource)] {
            if !text.is_empty() {
                entry[key] = Value::from(text.as_str());
            }
        }
        entry
    }
}

/// Takes from all what the writer sets to another value, and what is no more.
pub(super) fn take(entries: &mut Vec<Entry>, difference: &Difference) {
    let gone = difference.changed().union(&difference.removed);
    for entry in entries.iter_mut() {
        entry.fields = std::mem::take(&mut entry.fields).difference(&gone);
    }
    entries.retain(|entry| !entry.fields.is_empty());
}

/// Fields that nobody owns, as they say what the object is.
pub(super) fn without_identity(fields: Set) -> Set {
    const METADATA: &[&str] = &[
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let top = ["apiVersion", "kind", "metadata"].map(|name| vec![member(name)]);
    let inner = METADATA
        .iter()
        .map(|name| vec![member("metadata"), member(name)]);
    fields.difference(&Set(top.into_iter().chain(inner).collect()))
}

/// The paths as a set writes them.
pub(super) fn paths(paths: impl Iterator<Item = &'static [&'static str]>) -> Vec<Path> {
    paths
        .map(|path| path.iter().map(|name| member(name)).collect())
        .collect()
}

/// The object without its entries.
pub(super) fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    object
}

/// The object that there is before the first write.
pub(super) fn nothing() -> Value {
    Value::Object(Map::new())
}

/// Whether two objects differ in nothing but the times of their entries. If these put the entries into
/// another order, they do differ, as in the real API server.
pub(super) fn are_alike(one: &Value, other: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut entries = read(object)?;
        entries
            .iter_mut()
            .for_each(|entry| entry.time = String::new());
        Some(entries)
    };
    timeless(one) == timeless(other) && bare(one) == bare(other)
}

/// The most managers of ordinary writes that are kept apart.
const MOST: usize = 10;

/// Joins the oldest entries of ordinary writes while there are too many.
pub(super) fn limit(entries: &mut Vec<Entry>) {
    let updates = |entries: &[Entry]| entries.iter().filter(|entry| entry.who.updates).count();
    entries.sort_by(|one, other| (&one.time, &one.who).cmp(&(&other.time, &other.who)));
    while updates(entries) > MOST {
        let mut oldest = (0..entries.len()).filter(|at| entries[*at].who.updates);
        let Some(first) = oldest.next() else { return };
        let same = |at: &usize| entries[*at].who.version == entries[first].who.version;
        let Some(second) = oldest.find(same) else {
            return;
        };
        let joined = entries.remove(second);
        let into = &mut entries[first];
        into.who.name = "ancient-changes".to_owned();
        into.who.subresource = String::new();
        into.fields = std::mem::take(&mut into.fields).union(&joined.fields);
        into.time = joined.time;
    }
}
