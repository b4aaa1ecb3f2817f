// SPDX-License-Identifier: Apache-2.0
//! Why a command did not do what was asked, as a person or a program is told.

use std::io;

use plan::Refusal;
use serde::Serialize;
use units::Code;

/// Why a command ends early.
#[derive(Debug)]
pub enum Failure {
    /// Something to tell, with its code.
    Told(Told),
    /// The result cannot be written.
    Output(io::Error),
}

/// What is told: the same three things whatever went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Told {
    /// Stable code; decides the exit status.
    pub code: Code,
    /// Object, cause and next step.
    pub message: String,
    /// What would be possible instead.
    pub choices: Vec<String>,
}

impl Failure {
    /// A failure without choices.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self::with_choices(code, message, Vec::new())
    }

    /// A failure with what would be possible instead.
    pub fn with_choices(code: Code, message: impl Into<String>, choices: Vec<String>) -> Self {
        Self::Told(Told {
            code,
            message: message.into(),
            choices,
        })
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::with_choices(refusal.code, refusal.message, refusal.choices)
    }
}

impl From<config::Problems> for Failure {
    fn from(problems: config::Problems) -> Self {
        Self::new(problems.code, problems.to_string())
    }
}

impl From<host::Error> for Failure {
    fn from(error: host::Error) -> Self {
        match error {
            host::Error::Refused(refusal) => refusal.into(),
            error => Self::new(error.code(), error.to_string()),
        }
    }
}
