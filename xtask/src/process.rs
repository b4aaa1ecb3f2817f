// SPDX-License-Identifier: Apache-2.0
//! Running other programs: to the end with their output, or streaming it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::error::Error;

/// A command line that runs in `root`.
pub fn command(root: &Path, words: &[&str]) -> Command {
    let (program, arguments) = words.split_first().unwrap_or((&"true", &[]));
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root);
    command
}

/// What the command prints on standard output.
///
/// # Errors
/// If it cannot be started or ends with an error.
pub fn output(root: &Path, words: &[&str]) -> Result<String, Error> {
    let line = words.join(" ");
    let result = command(root, words).output();
    let result = result.map_err(|source| Error::Run {
        command: line.clone(),
        source,
    })?;
    if !result.status.success() {
        return Err(Error::Failed {
            command: line,
            stderr: String::from_utf8_lossy(&result.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&result.stdout).into_owned())
}

/// Runs the command with its output passed on as it comes, calls `line` with each line of its
/// standard output, and returns whether it succeeded.
///
/// # Errors
/// If it cannot be started.
pub fn stream(root: &Path, words: &[&str], mut line: impl FnMut(&str)) -> Result<bool, Error> {
    let text = words.join(" ");
    let fail = |source| Error::Run {
        command: text.clone(),
        source,
    };
    println!("\n$ {text}");
    let mut child = command(root, words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(fail)?;
    if let Some(stdout) = child.stdout.take() {
        for printed in BufReader::new(stdout).split(b'\n') {
            let printed = printed.map_err(fail)?;
            let printed = String::from_utf8_lossy(&printed);
            println!("{printed}");
            line(&printed);
        }
    }
    Ok(child.wait().map_err(fail)?.success())
}

/// Whether the command can be started and succeeds; prints nothing.
pub fn works(root: &Path, words: &[&str]) -> bool {
    command(root, words)
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|result| result.status.success())
}
