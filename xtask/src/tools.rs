// SPDX-License-Identifier: Apache-2.0
//! Programs that a part of the gate needs. A machine may lack them: then that part is left out
//! with a line that says so. With `CI=true` they are installed, and it is an error if they cannot
//! be.

use std::path::Path;

use crate::error::Error;
use crate::process::{stream, works};

/// A program, and how to get it.
pub struct Tool {
    /// What it is called.
    pub name: &'static str,
    /// A command that succeeds where it is installed.
    pub probe: &'static [&'static str],
    /// A command that installs it.
    pub install: &'static [&'static str],
}

/// The formatter.
pub const RUSTFMT: Tool = Tool {
    name: "rustfmt",
    probe: &["cargo", "fmt", "--version"],
    install: &["rustup", "component", "add", "rustfmt"],
};

/// The linter.
pub const CLIPPY: Tool = Tool {
    name: "clippy",
    probe: &["cargo", "clippy", "--version"],
    install: &["rustup", "component", "add", "clippy"],
};

/// Whether the tool is there, or could be installed. Prints a line where it is not.
///
/// # Errors
/// With `CI=true`, if it cannot be installed.
pub fn have(root: &Path, tool: &Tool) -> Result<bool, Error> {
    if works(root, tool.probe) {
        return Ok(true);
    }
    let name = tool.name;
    if std::env::var("CI").as_deref() != Ok("true") {
        let install = tool.install.join(" ");
        println!("{name} is not installed: what needs it is left out (`{install}` installs it)");
        return Ok(false);
    }
    if stream(root, tool.install, |_| {})? && works(root, tool.probe) {
        return Ok(true);
    }
    Err(Error::Failed {
        command: tool.install.join(" "),
        stderr: format!("{name} still does not answer"),
    })
}
