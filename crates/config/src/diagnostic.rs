// SPDX-License-Identifier: Apache-2.0
//! What is wrong with a file, and where.

use std::fmt;

use serde::Serialize;
use units::Code;

use crate::tree::Position;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The file or configuration cannot be used as written.
    Error,
    /// It can be used, but somebody should look at it.
    Warning,
}

/// One fault of a file. Prints as `FILE:12:5: mig-configs.x[0].devices: found ..., expected ...`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// Name of the file as the caller gave it.
    pub file: String,
    /// Where in the file.
    #[serde(flatten)]
    pub at: Position,
    /// How bad it is.
    pub severity: Severity,
    /// Stable code.
    pub code: Code,
    /// Which value: `mig-configs.x[0].devices`; empty for the file as a whole.
    pub path: String,
    /// What is there, as a phrase: `the text "al"`.
    pub found: String,
    /// What may be there, or what is wrong with it, as a phrase; empty if `found` says it all.
    pub allowed: String,
    /// The named configuration that it belongs to; `None` for the file as a whole.
    pub config: Option<String>,
}

impl Diagnostic {
    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// What was found and what is allowed, in a sentence, without the place.
    pub fn message(&self) -> String {
        if self.allowed.is_empty() {
            return self.found.clone();
        }
        format!("found {}, {}", self.found, self.allowed)
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.at)?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.message())
    }
}

/// Why a file or configuration cannot be used: everything at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}{}", lines(diagnostics))]
pub struct Problems {
    /// Stable code.
    pub code: Code,
    /// The fault in a sentence.
    pub message: String,
    /// Each fault with its place, in the order of the file. Empty if `message` says it all.
    pub diagnostics: Vec<Diagnostic>,
}

fn lines(diagnostics: &[Diagnostic]) -> String {
    diagnostics
        .iter()
        .map(|diagnostic| format!("\n{diagnostic}"))
        .collect()
}

impl Problems {
    /// The errors among `diagnostics` as one, if there are any.
    pub(crate) fn of(file: &str, diagnostics: &[Diagnostic]) -> Option<Self> {
        let errors: Vec<Diagnostic> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .cloned()
            .collect();
        (!errors.is_empty()).then(|| Self {
            code: Code::ConfigInvalid,
            message: format!("{file} has {}", counted(errors.len(), "error")),
            diagnostics: errors,
        })
    }
}

/// `1 error`, `2 errors`.
fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
