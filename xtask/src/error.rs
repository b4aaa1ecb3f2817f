// SPDX-License-Identifier: Apache-2.0
//! What can go wrong in a task, apart from the findings that it is there for.

use std::path::PathBuf;

/// A task could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Code could not be generated: a sentence says why.
    #[error("{0}")]
    Codegen(String),
    /// A program could not be started or waited for.
    #[error("cannot run {command}: {source}")]
    Run {
        /// The command line.
        command: String,
        /// Why.
        source: std::io::Error,
    },
    /// A program ended with an error where its output was needed.
    #[error("{command} failed: {stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// What it said.
        stderr: String,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The simulated machine for the interop clients failed.
    #[error("cannot {attempt}: {reason}")]
    Interop {
        /// What was attempted.
        attempt: &'static str,
        /// What came back.
        reason: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Something did not happen in time.
    #[error("{what}: not done after {seconds} s")]
    Late {
        /// What was waited for.
        what: String,
        /// How long.
        seconds: u32,
    },
    /// The test cluster cannot be what was asked for: a sentence says why.
    #[error("{0}")]
    Cluster(String),
    /// An image cannot be made: a sentence says why.
    #[error("{0}")]
    Image(String),
    /// `cargo metadata` said something that is not understood.
    #[error("cannot understand cargo metadata: {0}")]
    Metadata(String),
}

impl Error {
    /// The interop clients' machine failed at this.
    pub fn interop(attempt: &'static str, reason: impl ToString) -> Self {
        Self::Interop {
            attempt,
            reason: reason.to_string(),
        }
    }
}
