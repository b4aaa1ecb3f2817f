// SPDX-License-Identifier: Apache-2.0
//! What a `CustomResourceDefinition` says of its kinds.

use serde_json::Value;

use super::Kind;
use crate::selector::Selectable;

/// The kinds of a definition: one for each served version.
pub fn kinds(definition: &Value) -> Vec<Kind> {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
    versions
        .iter()
        .filter(|version| version["served"] == true)
        .map(|version| kind(spec, version))
        .collect()
}

fn kind(spec: &Value, version: &Value) -> Kind {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names = &spec["names"];
    let is_namespaced = spec["scope"] != "Cluster";
    let singular = match names["singular"].as_str() {
        Some(singular) if !singular.is_empty() => singular.to_owned(),
        _ => text(&names["kind"]).to_lowercase(),
    };
    let mut subresources = Vec::new();
    if version["subresources"]["status"].is_object() {
        subresources.push("status".to_owned());
    }
    let paths = list(&version["selectableFields"]);
    let paths: Vec<&str> = paths
        .iter()
        .filter_map(|field| field["jsonPath"].as_str())
        .collect();
    Kind {
        group: text(&spec["group"]),
        version: text(&version["name"]),
        kind: text(&names["kind"]),
        plural: text(&names["plural"]),
        singular,
        short_names: texts(&names["shortNames"]),
        categories: texts(&names["categories"]),
        is_namespaced,
        subresources,
        is_review: false,
        selectable: Selectable::custom(is_namespaced, &paths),
        is_custom: true,
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value) -> Vec<String> {
    let texts = list(value).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
