// SPDX-License-Identifier: Apache-2.0
//! The whole gate, part by part. Every part runs even if one before it failed; the last line says
//! how many tests and parts passed and failed.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::process::{stream, works};
use crate::{e2e, interop, tidy, tools};

/// What came out of a part: counts of its tests, or 1 for a part that is one test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// What held.
    pub passed: u32,
    /// What did not.
    pub failed: u32,
}

impl Counts {
    /// One test.
    pub const fn one(passed: bool) -> Self {
        Self {
            passed: passed as u32,
            failed: !passed as u32,
        }
    }
}

type Part = fn(&Path) -> Result<Option<Counts>, Error>;

/// The parts, quick ones first. A part that has to be left out on this machine says why and gives
/// no counts.
const PARTS: &[(&str, Part)] = &[
    ("format", format),
    ("clippy", clippy),
    ("tidy", |root| tidy::run(root).map(Counts::one).map(Some)),
    ("tests", tests),
    ("interop", interop::run),
    ("e2e", |root| e2e::count(root, &crate::target(), "")),
    ("cargo-deny", deny),
    ("README", readme),
];

/// Runs all parts on the checkout at `root`; whether nothing failed.
///
/// # Errors
/// None of a part: what it cannot do is printed and counts as failed.
pub fn run(root: &Path) -> Result<bool, Error> {
    let mut rows = Vec::new();
    let mut sum = Counts::default();
    for (name, part) in PARTS {
        let start = Instant::now();
        let counts = part(root).unwrap_or_else(|error| {
            eprintln!("{name}: {error}");
            Some(Counts::one(false))
        });
        rows.push(row(name, counts, start.elapsed()));
        let Counts { passed, failed } = counts.unwrap_or_default();
        sum.passed += passed;
        sum.failed += failed;
    }
    println!(
        "\n{:<12} {:<9} {:>7} {:>7} {:>9}",
        "part", "outcome", "passed", "failed", "time"
    );
    for row in rows {
        println!("{row}");
    }
    println!("\n{} passed, {} failed", sum.passed, sum.failed);
    Ok(sum.failed == 0)
}

fn row(name: &str, counts: Option<Counts>, time: Duration) -> String {
    let outcome = match counts {
        None => "left out",
        Some(Counts { failed: 0, .. }) => "ok",
        Some(_) => "FAILED",
    };
    let Counts { passed, failed } = counts.unwrap_or_default();
    let seconds = time.as_secs_f64();
    format!("{name:<12} {outcome:<9} {passed:>7} {failed:>7} {seconds:>7.1} s")
}

fn format(root: &Path) -> Result<Option<Counts>, Error> {
    if !tools::have(root, &tools::RUSTFMT)? {
        return Ok(None);
    }
    let passed = stream(root, &["cargo", "fmt", "--all", "--", "--check"], |_| {})?;
    Ok(Some(Counts::one(passed)))
}

fn clippy(root: &Path) -> Result<Option<Counts>, Error> {
    if !tools::have(root, &tools::CLIPPY)? {
        return Ok(None);
    }
    let words = [
        "cargo",
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    Ok(Some(Counts::one(stream(root, &words, |_| {})?)))
}

/// All tests of the workspace, documentation's examples included.
fn tests(root: &Path) -> Result<Option<Counts>, Error> {
    let mut counts = Counts::default();
    let words = ["cargo", "test", "--locked", "--workspace", "--no-fail-fast"];
    let passed = stream(root, &words, |line| {
        if let Some(Counts { passed, failed }) = summary(line) {
            counts.passed += passed;
            counts.failed += failed;
        }
    })?;
    // Code that does not compile, or a test program that crashed, prints no counts.
    if !passed && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok(Some(counts))
}

/// Counts of `test result: ok. 12 passed; 0 failed; ...`.
fn summary(line: &str) -> Option<Counts> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |what: &str| {
        let mut parts = rest.split([';', '.']).map(str::trim);
        parts.find_map(|part| part.strip_suffix(what)?.trim().parse().ok())
    };
    Some(Counts {
        passed: count("passed")?,
        failed: count("failed")?,
    })
}

/// Never needed: tidy checks licences and sources too.
fn deny(root: &Path) -> Result<Option<Counts>, Error> {
    if !works(root, &["cargo", "deny", "--version"]) {
        println!("cargo-deny is not installed: left out; tidy has checked licences and sources");
        return Ok(None);
    }
    let words = ["cargo", "deny", "check", "bans", "licenses", "sources"];
    Ok(Some(Counts::one(stream(root, &words, |_| {})?)))
}

/// The first command that a reader of the README types.
fn readme(root: &Path) -> Result<Option<Counts>, Error> {
    let path = root.join("README.md");
    let text = std::fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
    let Some(command) = first_command(&text) else {
        println!("README.md has no line that starts with `cargo run`");
        return Ok(Some(Counts::one(false)));
    };
    let words: Vec<&str> = command.split_whitespace().collect();
    Ok(Some(Counts::one(stream(root, &words, |_| {})?)))
}

fn first_command(readme: &str) -> Option<&str> {
    let mut commands = readme.lines().map(|line| line.trim_start_matches("$ "));
    commands.find(|line| line.starts_with("cargo run "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargos_summary_is_read() {
        let line =
            "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        let counts = Counts {
            passed: 12,
            failed: 3,
        };
        assert_eq!(summary(line), Some(counts));
        assert_eq!(summary("test a::b ... ok"), None);
    }

    #[test]
    fn a_part_is_one_row() {
        let time = Duration::from_millis(1250);
        let rows = [Some(Counts::one(true)), Some(Counts::one(false)), None]
            .map(|counts| row("tidy", counts, time));
        assert_eq!(
            rows,
            [
                "tidy         ok              1       0     1.2 s",
                "tidy         FAILED          0       1     1.2 s",
                "tidy         left out        0       0     1.2 s",
            ]
        );
    }

    #[test]
    fn the_first_command_is_found() {
        let readme = "# X\n\n```sh\n$ cargo run --release -- a\ncargo run -- b\n```\n";
        assert_eq!(first_command(readme), Some("cargo run --release -- a"));
        assert_eq!(first_command("cargo xtask test"), None);
    }
}
