// SPDX-License-Identifier: Apache-2.0
//! Pure crates stay pure: no file system, network, environment, process, thread, clock or
//! randomness. And the simulator judges legality by itself, not by the planner's code.

use super::Finding;
use super::source::{line_of, uses, words};
use super::tree::{File, Tree};

/// The crates that only decide. What they need comes in as an argument.
pub const PURE: &[&str] = &["config", "geometry", "lint", "plan", "publish", "units"];

/// What a pure crate may not name.
const IMPURE: &[&str] = &[
    "Instant::now",
    "SystemTime",
    "getrandom",
    "kube",
    "print!",
    "println!",
    "eprint!",
    "eprintln!",
    "rand",
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "tokio",
];

/// What nvmlsim may take of geometry: board tables and plain data, nothing that decides.
const SIMULATOR_MAY_USE: &[&str] = &[
    "Board",
    "ComputeProfile",
    "Confidence",
    "Engines",
    "ModeChange",
    "Profile",
    "board",
    "catalogue",
];

/// Impure names in the sources of pure crates, tests apart.
pub fn check_sources(tree: &Tree) -> Vec<Finding> {
    let is_pure = |file: &&File| file.crate_name().is_some_and(|name| PURE.contains(&name));
    let mut findings = Vec::new();
    for file in tree.rust().filter(is_pure) {
        let code = file.shipped_code();
        let mut named: Vec<(usize, String)> = uses(&code);
        named.extend(IMPURE.iter().flat_map(|word| {
            words(&code, word)
                .into_iter()
                .map(|at| (at, (*word).to_owned()))
        }));
        for (at, name) in named {
            let whole = |impure: &&&str| !words(&name, impure).is_empty();
            if let Some(impure) = IMPURE.iter().find(whole) {
                let message =
                    format!("`{impure}` in a pure crate: what it needs comes in as an argument");
                findings.push(Finding::new(&file.path, line_of(&code, at), message));
            }
        }
    }
    findings
}

/// Each pure crate has the same `clippy.toml`. Clippy reads only the nearest one, so it repeats
/// the lines of the root's.
pub fn check_clippy(tree: &Tree) -> Vec<Finding> {
    let root = tree.file("clippy.toml").map_or("", |file| &file.text);
    let model = tree
        .file(&format!("crates/{}/clippy.toml", PURE[0]))
        .map_or("", |file| &file.text);
    let mut findings = Vec::new();
    for name in PURE {
        let path = format!("crates/{name}/clippy.toml");
        let text = tree.file(&path).map_or("", |file| &file.text);
        if text.is_empty() || text != model {
            let message = format!("is not the same as crates/{}/clippy.toml", PURE[0]);
            findings.push(Finding::new(&path, 0, message));
        }
        for line in root.lines().filter(|line| !text.contains(line)) {
            findings.push(Finding::new(
                &path,
                0,
                format!("does not repeat the root's `{line}`"),
            ));
        }
    }
    findings
}

/// What nvmlsim takes of geometry beyond the tables, tests apart.
pub fn check_simulator(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree
        .rust()
        .filter(|file| file.crate_name() == Some("nvmlsim"))
    {
        let code = file.shipped_code();
        let mut paths = uses(&code);
        for at in words(&code, "geometry") {
            let end = code[at..].find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            paths.push((at, code[at..].chars().take(end.unwrap_or(0)).collect()));
        }
        for (at, path) in paths {
            let mut parts = path.split("::").skip_while(|part| *part == "self");
            let foreign = parts.next() == Some("geometry")
                && parts
                    .next()
                    .is_some_and(|part| !part.is_empty() && !SIMULATOR_MAY_USE.contains(&part));
            if foreign {
                let message =
                    format!("`{path}`: the simulator takes board tables only, it judges by itself");
                findings.push(Finding::new(&file.path, line_of(&code, at), message));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impure_code_is_found_however_it_is_written() {
        for bad in [
            "use std::fs;",
            "use std::{collections::BTreeMap, env};",
            "use std::time::{Duration, Instant};",
            "fn f() { std::fs::read(p); }",
            "fn f() { std::time::SystemTime::now(); }",
            "fn f() { println!(); }",
            "use tokio::sync::mpsc;",
            "use rand::Rng;",
        ] {
            let tree = Tree::of(&[("crates/plan/src/a.rs", bad), ("crates/host/src/a.rs", bad)]);
            let found = check_sources(&tree);
            assert!(!found.is_empty(), "{bad}");
            assert!(
                found
                    .iter()
                    .all(|finding| finding.path == "crates/plan/src/a.rs")
            );
        }
    }

    #[test]
    fn pure_code_is_not() {
        let good = "// std::fs\nuse std::time::Duration;\nconst S: &str = \"std::fs\";\n\
                    #[cfg(test)]\nmod tests { use std::fs; }\nfn operand() {}\n";
        assert_eq!(
            check_sources(&Tree::of(&[("crates/plan/src/a.rs", good)])),
            []
        );
    }

    #[test]
    fn a_missing_or_different_clippy_file_is_found() {
        let same: Vec<(String, &str)> = PURE
            .iter()
            .map(|name| (format!("crates/{name}/clippy.toml"), "a\nb\n"))
            .collect();
        let mut files: Vec<(&str, &str)> = same
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        files.push(("clippy.toml", "a\n"));
        assert_eq!(check_clippy(&Tree::of(&files)), []);
        files[1].1 = "b\n";
        assert_eq!(check_clippy(&Tree::of(&files)).len(), 2);
        files.remove(1);
        assert_eq!(check_clippy(&Tree::of(&files)).len(), 2);
    }

    #[test]
    fn a_simulator_that_borrows_the_planners_judgement_is_found() {
        for (code, count) in [
            ("use geometry::place::place;", 1),
            ("use geometry::{Board, place};", 1),
            ("fn f() { geometry::enumerate::all(b); }", 1),
            ("use geometry::{Board, board::Profile, catalogue};", 0),
            ("#[cfg(test)]\nmod tests { use geometry::place::place; }", 0),
        ] {
            let found: std::collections::BTreeSet<usize> =
                check_simulator(&Tree::of(&[("crates/nvmlsim/src/a.rs", code)]))
                    .iter()
                    .map(|finding| finding.line)
                    .collect();
            assert_eq!(found.len(), count, "{code}");
        }
    }
}
