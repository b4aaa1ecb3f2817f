// SPDX-License-Identifier: Apache-2.0
//! Which objects a list or a watch means, and lists in parts.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::convert;
use crate::failure::Failure;
use crate::selector::{Fields, Labels};
use crate::state::{Ask, State};
use crate::store::Key;

/// What a list or a watch leaves in.
#[derive(Clone, Debug)]
pub struct Filter {
    labels: Labels,
    fields: Fields,
    /// Whether everything is left in.
    is_all: bool,
}

impl Filter {
    /// Reads the selectors of a request. A name in the URL counts as a field selector.
    ///
    /// # Errors
    /// 400 if one cannot be read.
    pub fn of(ask: &Ask) -> Result<Self, Failure> {
        let refuse =
            |error: crate::selector::SelectorError| Failure::bad_request(error.to_string());
        let labels = ask.query.get("labelSelector");
        let mut fields = ask.query.get("fieldSelector").to_owned();
        if !ask.name.is_empty() {
            fields = format!("metadata.name={}", ask.name);
        }
        Ok(Self {
            labels: Labels::parse(labels).map_err(refuse)?,
            fields: Fields::parse(&fields, &ask.kind.selectable).map_err(refuse)?,
            is_all: labels.is_empty() && fields.is_empty(),
        })
    }

    /// Whether an object, as its kind shows it, is meant.
    pub fn takes(&self, shown: &Value) -> bool {
        self.is_all || self.labels.matches(shown) && self.fields.matches(shown)
    }
}

/// A list, or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub struct Page {
    /// Objects as their kind shows them.
    pub objects: Vec<Value>,
    /// `metadata` of the list.
    pub metadata: Value,
}

impl State {
    /// Lists what a request asks for.
    ///
    /// # Errors
    /// 400 for what cannot be read, 410 where the version is forgotten, 504 where it is not there yet.
    pub fn list(&self, ask: &Ask) -> Result<Page, Failure> {
        let filter = Filter::of(ask)?;
        let limit = ask.query.number("limit")?.unwrap_or(0);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let start = Start::of(ask, self.store.version())?;
        let mut objects = Vec::new();
        let mut last: Option<Key> = None;
        let mut left_out: usize = 0;
        for (key, object) in self.objects(ask, start.version)? {
            if start.after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            let shown = convert::shown(&ask.kind, &object);
            if !filter.takes(&shown) {
                continue;
            }
            if limit > 0 && objects.len() == limit {
                left_out += 1;
                continue;
            }
            objects.push(shown);
            last = Some(key);
        }
        let mut metadata = json!({"resourceVersion": start.version.to_string()});
        if left_out > 0
            && let Some(last) = last
        {
            metadata["continue"] = json!(format!("{}/{last}", start.version));
            if filter.is_all {
                metadata["remainingItemCount"] = json!(left_out);
            }
        }
        Ok(Page { objects, metadata })
    }

    fn objects(&self, ask: &Ask, version: u64) -> Result<Vec<(Key, Arc<Value>)>, Failure> {
        let place = ask.kind.place();
        if version == self.store.version() {
            let objects = self.store.list(&place, &ask.namespace);
            let owned = objects.map(|(key, object)| (key.clone(), Arc::clone(object)));
            return Ok(owned.collect());
        }
        let objects = self.store.list_at(&place, &ask.namespace, version);
        let objects = objects.map_err(|_| {
            Failure::expired(match ask.query.get("continue") {
                "" => format!("The resourceVersion for the provided list is too old. ({version})"),
                _ => "The provided continue parameter is too old to display a consistent list result. \
                      You must start a new list without the continue parameter.".to_owned(),
            })
        })?;
        Ok(objects.into_iter().collect())
    }
}

/// At which version, and after which key, a list begins.
struct Start {
    version: u64,
    after: Option<Key>,
}

impl Start {
    fn of(ask: &Ask, current: u64) -> Result<Self, Failure> {
        let asked = ask.query.resource_version()?;
        let token = ask.query.get("continue");
        if !token.is_empty() {
            let malformed =
                || Failure::bad_request("invalid continue token: continue key is not valid");
            if asked.is_some_and(|version| version > 0) {
                let message = "specifying resource version is not allowed when using continue";
                return Err(Failure::bad_request(message));
            }
            let (version, after) = token.split_once('/').ok_or_else(malformed)?;
            let version = version.parse().map_err(|_| malformed())?;
            return Ok(Self {
                version,
                after: Some(after.to_owned()),
            });
        }
        let version = asked.unwrap_or(0);
        if version > current {
            return Err(Failure::too_large_version(version, current));
        }
        let is_exact = ask.query.get("resourceVersionMatch") == "Exact";
        let has_limit = !ask.query.get("limit").is_empty();
        // Without a word about it, a limited list at a version is of exactly that version.
        let is_legacy =
            has_limit && ask.query.get("resourceVersionMatch").is_empty() && version > 0;
        Ok(Self {
            version: if is_exact || is_legacy {
                version
            } else {
                current
            },
            after: None,
        })
    }
}

/// Whether a label selector, as objects have them, means an object. An empty one means all.
pub fn selects(selector: &Value, object: &Value) -> bool {
    if selector.is_null() {
        return false;
    }
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut terms: Vec<String> = labels
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    for term in selector["matchExpressions"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let text = |at: &str| term[at].as_str().unwrap_or_default();
        let values = term["values"].as_array().into_iter().flatten();
        let values: Vec<&str> = values.filter_map(Value::as_str).collect();
        let values = values.join(",");
        terms.push(match text("operator") {
            "In" => format!("{} in ({values})", text("key")),
            "NotIn" => format!("{} notin ({values})", text("key")),
            "Exists" => text("key").to_owned(),
            _ => format!("!{}", text("key")),
        });
    }
    Labels::parse(&terms.join(",")).is_ok_and(|labels| labels.matches(object))
}
