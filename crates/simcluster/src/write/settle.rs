// SPDX-License-Identifier: Apache-2.0
//! The last steps of every write: what the kind's schema makes of the object, whether it may be so,
//! and who owns which of its fields.

use serde_json::Value;

use super::metadata;
use crate::admission;
use crate::defaults;
use crate::failure::Failure;
use crate::patch::{self, Manager};
use crate::schema;
use crate::state::{Ask, time};

/// The object as it may be kept, from what a client wants; `before` is none for a new one.
///
/// # Errors
/// 400 for fields that the schema does not know, where the client wants to hear of it; 422 for what
/// does not fit.
pub fn settle(
    ask: &Ask,
    before: Option<&Value>,
    mut object: Value,
    warnings: &mut Vec<String>,
) -> Result<Value, Failure> {
    let kind = &ask.kind;
    let mut causes = metadata::causes(kind, &object);
    warnings.extend(admission::check_configuration(kind, &object)?);
    if let Some(custom) = &kind.custom {
        let unknown = schema::prune(&custom.schema, &mut object);
        report(ask, &unknown, warnings)?;
        schema::fill(&custom.schema, &mut object);
        causes.extend(schema::causes(&custom.schema, &object));
        if causes.is_empty() {
            causes.extend(custom.rules.causes(&object, before));
        }
    }
    if kind.custom.is_none() && ask.subresource.is_empty() {
        defaults::fill(kind, &mut object);
    }
    if !causes.is_empty() {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        return Err(Failure::invalid(kind, name, &causes));
    }
    if ask.has_applied {
        return Ok(object);
    }
    let now = time(ask.now);
    let api_version = kind.api_version();
    let manager = manager(ask, &now, &api_version);
    Ok(patch::record_update(
        before,
        object,
        &manager,
        &kind.merge_keys,
    ))
}

/// Says what was left out, as `fieldValidation` has it.
fn report(ask: &Ask, unknown: &[String], warnings: &mut Vec<String>) -> Result<(), Failure> {
    let fields: Vec<String> = unknown
        .iter()
        .map(|field| format!("unknown field {field:?}"))
        .collect();
    match ask.query.get("fieldValidation") {
        "Ignore" => {}
        "Strict" if !fields.is_empty() => {
            let kind = &ask.kind;
            return Err(Failure::bad_request(format!(
                "{0} in version {1:?} cannot be handled as a {0}: strict decoding error: {2}",
                kind.kind,
                kind.version,
                fields.join(", "),
            )));
        }
        _ => warnings.extend(fields),
    }
    Ok(())
}

/// Who writes, for `metadata.managedFields`.
pub fn manager<'a>(ask: &'a Ask, now: &'a str, api_version: &'a str) -> Manager<'a> {
    Manager {
        name: &ask.manager,
        force: false,
        now,
        api_version,
        subresource: &ask.subresource,
    }
}
