// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench`: builds the release binary and runs the figures on it.

use std::path::Path;

use crate::error::Error;
use crate::process::command;

/// Prints every figure beside its budget, as a table or with `-o json`; whether it could.
///
/// # Errors
/// If cargo cannot be started.
pub fn run(root: &Path, json: bool) -> Result<bool, Error> {
    let cargo =
        |task: &'static [&str]| [&["cargo"], task, &["--quiet", "--release", "--locked"]].concat();
    let build = cargo(&["build", "--package=slicewright", "--package=nvmlsim"]);
    let mut figures = cargo(&["run", "--package=xtask", "--example=figures"]);
    if json {
        figures.extend(["--", "-o", "json"]);
    }
    for words in [&build, &figures] {
        let status = command(root, words).status().map_err(|source| Error::Run {
            command: words.join(" "),
            source,
        })?;
        if !status.success() {
            return Ok(false);
        }
    }
    Ok(true)
}
