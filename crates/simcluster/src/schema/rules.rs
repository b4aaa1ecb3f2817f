// SPDX-License-Identifier: Apache-2.0
//! The rules of a schema in CEL (`x-kubernetes-validations`), by kube's evaluation of them.

use std::sync::Arc;

use kube::core::cel::{CompiledSchema, Validator, compile_schema};
use serde_json::Value;

use crate::failure::Cause;

/// The rules of one schema, compiled.
#[derive(Clone, Debug)]
pub struct Rules(Arc<CompiledSchema>);

impl Rules {
    /// The rules of a schema, null for none.
    pub fn of(schema: &Value) -> Self {
        Self(Arc::new(compile_schema(schema)))
    }

    /// The rules that an object does not keep; `before` is none for a new one.
    pub fn causes(&self, object: &Value, before: Option<&Value>) -> Vec<Cause> {
        let validator = Validator::new();
        let Err(errors) = validator.validate_compiled(&self.0, object, before) else {
            return Vec::new();
        };
        let errors = errors.into_vec();
        errors
            .into_iter()
            .map(|error| Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {}", error.message),
                field: error.field_path,
            })
            .collect()
    }
}
