// SPDX-License-Identifier: Apache-2.0
//! House rules that no compiler checks. `cargo xtask tidy` prints the findings, and a test fails
//! on them.
//!
//! Every rule is a function from plain data (the [`Tree`] of files, the [`Workspace`] of crates)
//! to findings, and has a test that it finds a bad sample.

mod documents;
mod licences;
mod manners;
mod purity;
mod size;
mod source;
mod tree;
mod workspace;

use std::fmt;
use std::path::Path;

use crate::error::Error;
use tree::Tree;
use workspace::Workspace;

/// One breach of one rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// File, relative to the root.
    path: String,
    /// Line, from 1; 0 for the whole file.
    line: usize,
    /// What is wrong and what is right.
    message: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Every finding in the checkout at `root`, in order of files.
///
/// # Errors
/// If git or cargo cannot be asked, or a file cannot be read.
pub fn check(root: &Path) -> Result<Vec<Finding>, Error> {
    let tree = Tree::read(root)?;
    let workspace = Workspace::read(root)?;
    let mut findings = Vec::new();
    for rule in RULES {
        findings.extend(rule(&tree));
    }
    findings.extend(workspace.check_directions());
    findings.extend(workspace.check_purity());
    findings.extend(workspace.check_needed(&tree));
    findings.extend(licences::check(&tree, &workspace));
    findings.extend(documents::check_map(&tree, &workspace.crates()));
    findings.sort();
    findings.dedup();
    Ok(findings)
}

/// The rules that look at files alone.
const RULES: &[fn(&Tree) -> Vec<Finding>] = &[
    documents::check_codes,
    documents::check_gate,
    documents::check_links,
    documents::check_mentions,
    manners::check_headers,
    manners::check_text,
    manners::check_code,
    manners::check_unsafe,
    purity::check_sources,
    purity::check_clippy,
    purity::check_simulator,
    size::check,
];

/// Prints the findings of the checkout at `root`; whether there are none.
///
/// # Errors
/// As [`check`].
pub fn run(root: &Path) -> Result<bool, Error> {
    let findings = check(root)?;
    for finding in &findings {
        println!("{finding}");
    }
    println!("tidy: {} findings", findings.len());
    Ok(findings.is_empty())
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_checkout_is_tidy() {
        let findings = super::check(crate::root()).unwrap();
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
