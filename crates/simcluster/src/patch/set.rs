// SPDX-License-Identifier: Apache-2.0
//! Sets of fields of an object, as `fieldsV1` of `managedFields` holds them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::keys::{Items, Node};

/// The way to a field, element by element as `fieldsV1` writes them: `f:NAME`, `k:KEYS`, `v:VALUE`.
pub(super) type Path = Vec<Element>;

/// A step of a path; shared by all paths that go over it.
pub(super) type Element = Arc<str>;

/// Fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Set(pub(super) BTreeSet<Path>);

/// The element for a member of a map.
pub(super) fn member(name: &str) -> Element {
    format!("f:{name}").into()
}

/// The element for an item of a list; an error if it cannot be told from others.
pub(super) fn item(item: &Value, node: &Node) -> Result<Element, String> {
    let Items::Keys(keys) = &node.items else {
        return match item {
            Value::Object(_) => {
                Err("associative list without keys has an element that's a map type")
            }
            Value::Array(_) => Err("not supported: associative list with lists as elements"),
            Value::Null => {
                Err("associative list without keys has an element that's an explicit null")
            }
            plain => return Ok(format!("v:{plain}").into()),
        }
        .map_err(str::to_owned);
    };
    let Value::Object(members) = item else {
        let what = if item.is_null() {
            "a null element"
        } else {
            "non-map elements"
        };
        return Err(format!("associative list with keys may not have {what}"));
    };
    let value = |(key, default): &(String, Option<Value>)| {
        let value = members.get(key).or(default.as_ref())?;
        Some((key.clone(), value.clone()))
    };
    let found: Map<String, Value> = keys.iter().filter_map(value).collect();
    if found.is_empty() {
        let names: Vec<String> = keys.iter().map(|(key, _)| format!("{key:?}")).collect();
        let names = names.join(" ");
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{names}] (and doesn't \
             have default values for any key fields)"
        ));
    }
    Ok(format!("k:{}", Value::Object(found)).into())
}

/// A path as the real API server shows it to people: `.spec.containers[name="a"].image`.
pub(super) fn shown(path: &[Element]) -> String {
    let element = |element: &Element| match element.split_at(2.min(element.len())) {
        ("f:", name) => format!(".{name}"),
        ("v:", value) => format!("[={value}]"),
        (_, keys) => {
            let keys: Map<String, Value> = serde_json::from_str(keys).unwrap_or_default();
            let keys: Vec<String> = keys
                .iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect();
            format!("[{}]", keys.join(","))
        }
    };
    path.iter().map(element).collect()
}

impl Set {
    /// From `fieldsV1`.
    pub(super) fn of_json(fields: &Value) -> Self {
        fn add(fields: &Value, path: &Path, set: &mut Set) {
            for (element, inner) in fields.as_object().into_iter().flatten() {
                if element == "." {
                    set.0.insert(path.clone());
                    continue;
                }
                let mut path = path.clone();
                path.push(element.as_str().into());
                match inner.as_object() {
                    Some(inner) if !inner.is_empty() => {}
                    _ => {
                        set.0.insert(path.clone());
                    }
                }
                add(inner, &path, set);
            }
        }
        let mut set = Self::default();
        add(fields, &Vec::new(), &mut set);
        set
    }

    /// As `fieldsV1`.
    pub(super) fn to_json(&self) -> Value {
        fn add(fields: &mut Map<String, Value>, path: &[Element]) {
            let (element, rest) = match path {
                [] => (".", path),
                [first, rest @ ..] => (first.as_ref(), rest),
            };
            if !fields.contains_key(element) {
                fields.insert(element.to_owned(), Value::Object(Map::new()));
            }
            if let (Some(Value::Object(inner)), false) = (fields.get_mut(element), path.is_empty())
            {
                add(inner, rest);
            }
        }
        let mut fields = Map::new();
        self.0.iter().for_each(|path| add(&mut fields, path));
        without_lone_dots(Value::Object(fields))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn union(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }

    pub(super) fn intersection(mut self, other: &Self) -> Self {
        self.0.retain(|path| other.0.contains(path));
        self
    }

    /// Fields that the other has not; those below a field of the other stay.
    pub(super) fn difference(mut self, other: &Self) -> Self {
        self.0.retain(|path| !other.0.contains(path));
        self
    }

    /// Fields that are neither at nor below these names.
    pub(super) fn without(mut self, tops: &[Path]) -> Self {
        self.0
            .retain(|path| !tops.iter().any(|top| path.starts_with(top)));
        self
    }

    /// With the members that are declared by name on the way to each field.
    pub(super) fn with_parents(&self, root: &Node) -> Self {
        let mut set = self.clone();
        for path in &self.0 {
            let mut node = root;
            for (at, element) in path.iter().enumerate() {
                let Some(name) = element.strip_prefix("f:") else {
                    node = node.others();
                    continue;
                };
                if node.declares(name) {
                    set.0.insert(path[..=at].to_vec());
                }
                node = node.member(name);
            }
        }
        set
    }

    /// Whether a field of the set is below the path.
    pub(super) fn reaches_below(&self, path: &Path) -> bool {
        let mut after = self
            .0
            .range(path.clone()..)
            .skip_while(|found| *found == path);
        after.next().is_some_and(|found| found.starts_with(path))
    }
}

/// A field with nothing below it is `{}`, not `{".": {}}`.
fn without_lone_dots(fields: Value) -> Value {
    match fields {
        Value::Object(members) if members.len() == 1 && members.contains_key(".") => {
            Value::Object(Map::new())
        }
        Value::Object(members) => members
            .into_iter()
            .map(|(key, inner)| (key, without_lone_dots(inner)))
            .collect(),
        other => other,
    }
}
