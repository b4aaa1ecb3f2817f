// SPDX-License-Identifier: Apache-2.0
//! Field selectors: `metadata.name=a,status.phase!=Running`.

use serde_json::Value;

use super::SelectorError;

/// What may be selected by, of one kind of object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selectable {
    names: Vec<String>,
    refusal: Refusal,
}

/// How a kind refuses other names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Refusal {
    /// By a list of names.
    Listing,
    Plain,
    Job,
}

/// API group, kind, and what may be selected by beside name and namespace
/// (`pkg/apis/*/v1/conversion.go` of Kubernetes 1.37). Kinds that are not here have no more.
const BUILT_IN: &[(&str, &str, &[&str])] = &[
    ("batch", "Job", &["status.successful"]),
    (
        "events.k8s.io",
        "Event",
        &[
            "reason",
            "regarding.apiVersion",
            "regarding.fieldPath",
            "regarding.kind",
            "regarding.name",
            "regarding.namespace",
            "regarding.resourceVersion",
            "regarding.uid",
            "reportingController",
            "type",
        ],
    ),
    (
        "",
        "Event",
        &[
            "involvedObject.apiVersion",
            "involvedObject.fieldPath",
            "involvedObject.kind",
            "involvedObject.name",
            "involvedObject.namespace",
            "involvedObject.resourceVersion",
            "involvedObject.uid",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
    ),
    ("", "Namespace", &["status.phase"]),
    ("", "Node", &["spec.unschedulable"]),
    (
        "",
        "Pod",
        &[
            "spec.hostNetwork",
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.nominatedNodeName",
            "status.phase",
            "status.podIP",
            "status.podIPs",
        ],
    ),
    ("", "Secret", &["type"]),
    ("", "Service", &["spec.clusterIP", "spec.type"]),
];

/// Kinds without a namespace in [`BUILT_IN`].
const CLUSTER_WIDE: &[&str] = &["Namespace", "Node"];

/// Names that stand for another path, and what a missing field counts as where that is not the empty
/// text (`ToSelectableFields` of each kind).
const READ: &[(&str, &[&str], &str)] = &[
    ("source", &["source.component", "reportingComponent"], ""),
    ("spec.hostNetwork", &["spec.hostNetwork"], "false"),
    ("spec.unschedulable", &["spec.unschedulable"], "false"),
    ("status.successful", &["status.succeeded"], "0"),
];

impl Selectable {
    /// Of a kind that the API server brings; `group` is empty for the core group.
    pub fn built_in(group: &str, kind: &str) -> Self {
        let row = BUILT_IN.iter().find(|row| (row.0, row.1) == (group, kind));
        let mut names = vec!["metadata.name".to_owned()];
        if row.is_none() || !CLUSTER_WIDE.contains(&kind) {
            names.push("metadata.namespace".to_owned());
        }
        names.extend(
            row.iter()
                .flat_map(|row| row.2)
                .map(|name| (*name).to_owned()),
        );
        let refusal = match (row, kind) {
            (None, _) => Refusal::Listing,
            (_, "Job") => Refusal::Job,
            _ => Refusal::Plain,
        };
        Self { names, refusal }
    }

    /// Of a custom resource: the JSON paths of its `selectableFields`, such as `.spec.color`.
    pub fn custom(is_namespaced: bool, paths: &[&str]) -> Self {
        let mut names = vec!["metadata.name".to_owned()];
        if is_namespaced {
            names.push("metadata.namespace".to_owned());
        }
        names.extend(
            paths
                .iter()
                .map(|path| path.trim_start_matches('.').to_owned()),
        );
        Self {
            names,
            refusal: Refusal::Plain,
        }
    }

    fn check(&self, name: &str) -> Result<(), SelectorError> {
        if self.names.iter().any(|known| known == name) {
            return Ok(());
        }
        Err(SelectorError(match self.refusal {
            Refusal::Listing => format!(
                "{name:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            ),
            Refusal::Plain => format!("field label not supported: {name}"),
            Refusal::Job => format!("field label {name:?} not supported for Job"),
        }))
    }
}

/// A field selector: all of its terms must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    name: String,
    equals: bool,
    value: String,
}

impl Fields {
    /// Reads terms `name=value`, `name==value` and `name!=value`, separated by commas. In a value `,`,
    /// `=` and `\` have a `\` before them. The empty text selects everything.
    ///
    /// # Errors
    /// If it is none, or names what objects of this kind cannot be selected by.
    pub fn parse(text: &str, selectable: &Selectable) -> Result<Self, SelectorError> {
        let mut parts = split(text);
        // The order decides which error is told.
        parts.sort_unstable();
        let mut terms = Vec::new();
        for part in parts.into_iter().filter(|part| !part.is_empty()) {
            let (name, equals, value) = term(part).ok_or_else(|| {
                SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            let (name, value) = (name.to_owned(), unescape(value)?);
            terms.push(Term {
                name,
                equals,
                value,
            });
        }
        terms
            .iter()
            .try_for_each(|term| selectable.check(&term.name))?;
        Ok(Self { terms })
    }

    /// Whether all terms hold for the object.
    pub fn matches(&self, object: &Value) -> bool {
        let holds = |term: &Term| (field(object, &term.name) == term.value) == term.equals;
        self.terms.iter().all(holds)
    }
}

/// Parts between commas that have no `\` before them.
fn split(text: &str) -> Vec<&str> {
    let mut escaped = false;
    text.split(|character| {
        let separates = character == ',' && !escaped;
        escaped = character == '\\' && !escaped;
        separates
    })
    .collect()
}

/// Name, whether it is to be equal, and the value as written.
fn term(part: &str) -> Option<(&str, bool, &str)> {
    part.char_indices().find_map(|(at, _)| {
        let (name, rest) = part.split_at(at);
        let operators = [("!=", false), ("==", true), ("=", true)];
        let mut found = operators.iter();
        found.find_map(|(sign, equals)| Some((name, *equals, rest.strip_prefix(sign)?)))
    })
}

fn unescape(text: &str) -> Result<String, SelectorError> {
    let refuse = |what: String| Err(SelectorError(format!("invalid field selector: {what}")));
    let mut value = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => value.push(escaped),
                Some(other) => return refuse(format!("invalid escape sequence: \\{other}")),
                None => return refuse("invalid escape sequence: \\".to_owned()),
            },
            // Told as a number, as the real one does.
            ',' | '=' => {
                return refuse(format!(
                    "unescaped character in value: {}",
                    u32::from(character)
                ));
            }
            other => value.push(other),
        }
    }
    Ok(value)
}

/// The text that a name stands for in an object.
fn field(object: &Value, name: &str) -> String {
    let row = READ.iter().find(|row| row.0 == name);
    let own = [name];
    let (paths, missing) = row.map_or((&own[..], ""), |row| (row.1, row.2));
    let found = paths.iter().find_map(|path| {
        let value = path
            .split('.')
            .try_fold(object, |value, key| value.get(key))?;
        match value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        }
    });
    found
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| missing.to_owned())
}
