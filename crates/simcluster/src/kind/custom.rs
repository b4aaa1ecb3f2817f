// SPDX-License-Identifier: Apache-2.0
//! What a `CustomResourceDefinition` says of its kinds.

use std::sync::Arc;

use serde_json::Value;

use super::Kind;
use crate::patch::MergeKeys;
use crate::schema::Rules;
use crate::selector::Selectable;

/// What is true of one version of a custom resource.
#[derive(Clone, Debug)]
pub struct Custom {
    /// Its OpenAPI v3 schema; null if it has none.
    pub schema: Value,
    /// The rules of the schema.
    pub rules: Rules,
    /// Where the scale subresource finds its numbers.
    pub scale: Option<Scale>,
    /// `additionalPrinterColumns`, as in the definition.
    pub columns: Vec<Value>,
}

/// Paths of the scale subresource, as in the definition: `.spec.replicas`.
#[derive(Clone, Debug)]
pub struct Scale {
    /// Wanted replicas.
    pub spec: String,
    /// Counted replicas.
    pub status: String,
    /// Selector as a text, if there is one.
    pub selector: Option<String>,
}

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
    let has_status = version["subresources"]["status"].is_object();
    if has_status {
        subresources.push("status".to_owned());
    }
    let scale = scale(&version["subresources"]["scale"]);
    if scale.is_some() {
        subresources.push("scale".to_owned());
    }
    let schema = &version["schema"]["openAPIV3Schema"];
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
        merge_keys: Arc::new(MergeKeys::custom(schema, has_status)),
        selectable: Selectable::custom(is_namespaced, &paths),
        custom: Some(Arc::new(Custom {
            schema: schema.clone(),
            rules: Rules::of(schema),
            scale,
            columns: list(&version["additionalPrinterColumns"]).to_vec(),
        })),
    }
}

fn scale(value: &Value) -> Option<Scale> {
    let text = |key: &str| value[key].as_str().map(str::to_owned);
    Some(Scale {
        spec: text("specReplicasPath")?,
        status: text("statusReplicasPath")?,
        selector: text("labelSelectorPath"),
    })
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn texts(value: &Value) -> Vec<String> {
    let texts = list(value).iter().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}
