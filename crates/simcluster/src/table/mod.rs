// SPDX-License-Identifier: Apache-2.0
//! Objects as rows of a `Table`, which is what `kubectl get` prints.

mod age;
mod columns;
mod path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::kind::Kind;

/// Words of the real server for the first column.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, \
    although some resources may allow a client to request the generation of an appropriate name \
    automatically. Name is primarily intended for creation idempotence and configuration definition. \
    Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was \
    created. It is not guaranteed to be set in happens-before order across separate operations. Clients \
    may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the \
    system. Read-only. Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// How much of an object goes with its row (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Include {
    /// Nothing.
    None,
    /// Its metadata.
    Metadata,
    /// All of it.
    Object,
}

impl Include {
    /// From the parameter of a request.
    pub fn of(text: &str) -> Self {
        match text {
            "None" => Self::None,
            "Object" => Self::Object,
            _ => Self::Metadata,
        }
    }
}

/// The table of some objects. `has_header` says whether it tells its columns.
pub fn table(
    kind: &Kind,
    objects: &[Value],
    metadata: &Value,
    include: Include,
    has_header: bool,
    now: Timestamp,
) -> Value {
    let columns = Columns::of(kind);
    let rows: Vec<Value> = objects
        .iter()
        .map(|object| {
            let mut row = json!({"cells": columns.cells(object, now)});
            match include {
                Include::None => {}
                Include::Metadata => row["object"] = partial(object),
                Include::Object => row["object"] = object.clone(),
            }
            row
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": if has_header { columns.definitions() } else { Value::Null },
        "rows": rows,
    })
}

/// An object of which only the metadata is shown.
pub fn partial(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// Where the cells of a kind come from.
enum Columns<'a> {
    /// The paths of a custom resource definition.
    Custom(&'a [Value]),
    /// The table of built-in kinds.
    BuiltIn(&'static [columns::Column]),
}

impl<'a> Columns<'a> {
    fn of(kind: &'a Kind) -> Self {
        match &kind.custom {
            Some(custom) if !custom.columns.is_empty() => Self::Custom(&custom.columns),
            _ => Self::BuiltIn(columns::of(&kind.group, &kind.kind)),
        }
    }

    fn definitions(&self) -> Value {
        let mut definitions = vec![definition("Name", "string", "name", 0, NAME)];
        match self {
            Self::Custom(columns) => definitions.extend(columns.iter().map(custom_definition)),
            Self::BuiltIn(columns) => definitions.extend(columns.iter().map(|column| {
                let words = if column.name == "Age" { AGE } else { "" };
                definition(column.name, column.kind, "", column.priority, words)
            })),
        }
        Value::Array(definitions)
    }

    fn cells(&self, object: &Value, now: Timestamp) -> Vec<Value> {
        let mut cells = vec![object["metadata"]["name"].clone()];
        match self {
            Self::Custom(columns) => {
                cells.extend(
                    columns
                        .iter()
                        .map(|column| custom_cell(column, object, now)),
                );
            }
            Self::BuiltIn(columns) => {
                cells.extend(columns.iter().map(|column| (column.cell)(object, now)));
            }
        }
        cells
    }
}

fn definition(name: &str, kind: &str, format: &str, priority: i64, words: &str) -> Value {
    json!({
        "name": name,
        "type": kind,
        "format": format,
        "description": words,
        "priority": priority,
    })
}

fn custom_definition(column: &Value) -> Value {
    let text = |at: &str| column[at].as_str().unwrap_or_default();
    let words = match (text("description"), text("jsonPath")) {
        ("", path) => format!("Custom resource definition column (in JSONPath format): {path}"),
        (words, _) => words.to_owned(),
    };
    let priority = column["priority"].as_i64().unwrap_or(0);
    definition(text("name"), text("type"), text("format"), priority, &words)
}

fn custom_cell(column: &Value, object: &Value, now: Timestamp) -> Value {
    let text = |at: &str| column[at].as_str().unwrap_or_default();
    let found = path::find(object, text("jsonPath"));
    let Some(value) = found.first() else {
        return Value::Null;
    };
    match (text("type"), value) {
        ("date", Value::String(time)) => age::since(time, now).into(),
        ("string", Value::String(text)) => json!(text),
        ("string", other) => json!(other.to_string()),
        ("integer", value) => json!(value.as_i64()),
        (_, value) => Value::clone(value),
    }
}
