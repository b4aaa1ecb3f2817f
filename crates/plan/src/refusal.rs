// SPDX-License-Identifier: Apache-2.0
//! What a person is told when something cannot be done, or can but should be known.

use serde::Serialize;
use units::Code;

/// Why a wish is refused. Nothing has been touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Stable code.
    pub code: Code,
    /// Object, cause and next step, in a sentence or two.
    pub message: String,
    /// What would be possible instead, ready to be typed; may be empty.
    pub choices: Vec<String>,
}

impl Refusal {
    /// A refusal without choices.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            choices: Vec::new(),
        }
    }
}

/// Something worth knowing that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// Stable code.
    pub code: Code,
    /// Object and cause, in a sentence.
    pub message: String,
}
