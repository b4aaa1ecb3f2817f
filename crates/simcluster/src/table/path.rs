// SPDX-License-Identifier: Apache-2.0
//! The part of JSONPath that printer columns use: members, indices, `[*]`, and filters for equality.

use serde_json::Value;

/// The values at a path such as `.status.conditions[?(@.type=="Ready")].status`.
pub fn find<'a>(object: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![object];
    let mut rest = path.trim_start_matches(['{', '$']).trim_end_matches('}');
    while !rest.is_empty() && !found.is_empty() {
        let (step, after) = match rest.strip_prefix('[') {
            Some(inner) => {
                let end = inner.find(']').unwrap_or(inner.len());
                (&inner[..end], inner.get(end + 1..).unwrap_or_default())
            }
            None => {
                let name = rest.strip_prefix('.').unwrap_or(rest);
                let end = name_end(name);
                found = members(&found, &name[..end].replace("\\.", "."));
                rest = &name[end..];
                continue;
            }
        };
        found = indexed(&found, step);
        rest = after;
    }
    found
}

/// Where a name ends: at a dot or bracket that no backslash stands before.
fn name_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    (0..bytes.len())
        .find(|&at| matches!(bytes[at], b'.' | b'[') && (at == 0 || bytes[at - 1] != b'\\'))
        .unwrap_or(bytes.len())
}

fn members<'a>(values: &[&'a Value], name: &str) -> Vec<&'a Value> {
    values.iter().filter_map(|value| value.get(name)).collect()
}

fn indexed<'a>(values: &[&'a Value], step: &str) -> Vec<&'a Value> {
    if let Some(filter) = step.strip_prefix("?(@").and_then(|it| it.strip_suffix(')')) {
        let Some((path, wanted)) = filter.split_once("==") else {
            return Vec::new();
        };
        let wanted = wanted.trim().trim_matches(['"', '\'']);
        let is_wanted = |item: &&Value| {
            let found = find(item, path.trim());
            found.first().is_some_and(|value| match value {
                Value::String(text) => text == wanted,
                other => format!("{other}") == wanted,
            })
        };
        let items = values.iter().filter_map(|value| value.as_array()).flatten();
        return items.filter(is_wanted).collect();
    }
    match step.trim_matches(['"', '\'']) {
        "*" => values
            .iter()
            .filter_map(|value| value.as_array())
            .flatten()
            .collect(),
        name => match name.parse::<usize>() {
            Ok(number) => values
                .iter()
                .filter_map(|value| value.get(number))
                .collect(),
            Err(_) => members(values, name),
        },
    }
}
