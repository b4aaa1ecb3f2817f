// SPDX-License-Identifier: Apache-2.0
//! Rules that look at single lines: headers, module docs, leftovers, machine paths, `unsafe`.

use super::Finding;
use super::source::{line_of, words};
use super::tree::{File, Tree};

const LICENCE: &str = "SPDX-License-Identifier: Apache-2.0";
const FORBID_UNSAFE: &str = "#![forbid(unsafe_code)]";

/// The crates that may contain `unsafe`: they speak a C ABI.
const UNSAFE_CRATES: &[&str] = &["gpu", "nvmlsim"];

/// First folders of a machine's paths. A path that starts so is true on one machine only.
const MACHINE_FOLDERS: &[&str] = &["home", "root", "tmp", "Users", "work"];

/// Paths that look like one machine's and mean something everywhere.
const MACHINE_PATHS_ALLOWED: &[(&str, &str)] = &[];

/// Licence header and module docs.
pub fn check_headers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let is_script = [".sh", ".py", ".go"]
            .iter()
            .any(|end| file.path.ends_with(end))
            || file.text.starts_with("#!");
        let is_rust = file.path.ends_with(".rs");
        if (is_rust || is_script) && !file.text.lines().take(3).any(|line| line.contains(LICENCE)) {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("the header `{LICENCE}` is missing"),
            ));
        }
        let documented = |line: &str| line.starts_with("//!");
        if is_rust && !file.text.lines().take(10).any(documented) {
            findings.push(Finding::new(
                &file.path,
                1,
                "module docs (`//! ...`) are missing at the top",
            ));
        }
    }
    findings
}

/// Merge markers and paths of one machine, in every text.
pub fn check_text(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        for (number, line) in (1..).zip(file.text.lines()) {
            if ["<", ">", "|"]
                .iter()
                .any(|mark| line.starts_with(&format!("{} ", mark.repeat(7))))
            {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    "a merge marker was left behind",
                ));
            }
            if let Some(found) = machine_path(&file.path, line) {
                let message = format!("{found} is a path of one machine");
                findings.push(Finding::new(&file.path, number, message));
            }
        }
    }
    findings
}

fn machine_path(path: &str, line: &str) -> Option<String> {
    let allowed = |found: &str| {
        let mut pairs = MACHINE_PATHS_ALLOWED.iter();
        pairs.any(|(file, allowed)| *file == path && found.starts_with(allowed))
    };
    for folder in MACHINE_FOLDERS {
        let wanted = format!("/{folder}/");
        for (at, _) in line.match_indices(&wanted) {
            let starts_there =
                !line[..at].ends_with(|c: char| c.is_alphanumeric() || "._-~})*/".contains(c));
            let rest = &line[at..];
            let end = rest.find(|c: char| !(c.is_alphanumeric() || "._-/".contains(c)));
            let found = &rest[..end.unwrap_or(rest.len())];
            if starts_there && !allowed(found) {
                return Some(found.to_owned());
            }
        }
    }
    None
}

/// Leftovers in code, and tests that do not test.
pub fn check_code(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust().filter(|file| !file.is_generated()) {
        for leftover in ["todo!", "unimplemented!", "dbg!"] {
            find(
                &mut findings,
                file,
                &file.code,
                leftover,
                &format!("`{leftover}` was left behind"),
            );
        }
        find(
            &mut findings,
            file,
            &file.code,
            "#[ignore",
            "a test that is not run proves nothing",
        );
        let late = "tests wait for events or use virtual time, they do not sleep";
        find(&mut findings, file, &file.test_code(), "sleep", late);
        for (number, line) in (1..).zip(file.text.lines()) {
            let comment = line.split_once("//").map_or("", |(_, comment)| comment);
            if ["TODO", "FIXME", "XXX"]
                .iter()
                .any(|mark| comment.trim_start().starts_with(mark))
            {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    "do it now, or open an issue",
                ));
            }
        }
    }
    findings
}

fn find(findings: &mut Vec<Finding>, file: &File, code: &str, word: &str, message: &str) {
    let lines = words(code, word).into_iter().map(|at| line_of(code, at));
    findings.extend(lines.map(|line| Finding::new(&file.path, line, message)));
}

/// `unsafe` only where a C ABI is spoken; every other crate forbids it.
pub fn check_unsafe(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.rust() {
        if file
            .crate_name()
            .is_some_and(|name| UNSAFE_CRATES.contains(&name))
        {
            continue;
        }
        find(
            &mut findings,
            file,
            &file.code,
            "unsafe",
            "`unsafe` belongs into gpu and nvmlsim",
        );
        let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
        if is_root && !file.code.contains(FORBID_UNSAFE) {
            findings.push(Finding::new(
                &file.path,
                1,
                format!("`{FORBID_UNSAFE}` is missing"),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(findings: Vec<Finding>) -> Vec<String> {
        findings.iter().map(ToString::to_string).collect()
    }

    const GOOD: &str =
        "// SPDX-License-Identifier: Apache-2.0\n//! Docs.\n#![forbid(unsafe_code)]\n";

    #[test]
    fn headers_are_demanded() {
        let tree = Tree::of(&[
            ("a.rs", "fn f() {}\n"),
            ("b.rs", GOOD),
            ("run", "#!/bin/sh\n"),
            ("c.md", "x"),
        ]);
        let found = messages(check_headers(&tree));
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("a.rs:1: the header"));
        assert!(found[1].starts_with("a.rs:1: module docs"));
        assert!(found[2].starts_with("run:1: the header"));
    }

    #[test]
    fn merge_markers_are_found() {
        let text = format!("{} HEAD\n=======\n{} main\n", "<".repeat(7), ">".repeat(7));
        assert_eq!(check_text(&Tree::of(&[("a.md", &text)])).len(), 2);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        for folder in MACHINE_FOLDERS {
            let bad = format!("see `/{folder}/me/x.txt`");
            assert_eq!(check_text(&Tree::of(&[("a.md", &bad)])).len(), 1, "{bad}");
            let good = format!("see docs/{folder}/x, $DIR/{folder}/x and https://x.org/{folder}/x");
            let good = good.replace("$DIR", "${DIR}");
            assert!(
                check_text(&Tree::of(&[("a.md", &good)])).is_empty(),
                "{good}"
            );
        }
    }

    #[test]
    fn leftovers_are_found() {
        let code = "fn f() { todo!(); dbg!(1); }\n#[ignore]\nfn g() { \"todo!\"; }\n";
        let code = format!("{code}// {} later\n", "TODO");
        assert_eq!(check_code(&Tree::of(&[("a.rs", &code)])).len(), 4);
    }

    #[test]
    fn sleeping_tests_are_found() {
        let code = "fn f() { sleep(1) }\n#[cfg(test)]\nmod tests { fn g() { thread::sleep(1) } }\n";
        let found = messages(check_code(&Tree::of(&[
            ("src/a.rs", code),
            ("tests/b.rs", "fn f() { sleep(1) }"),
        ])));
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("src/a.rs:3:") && found[1].starts_with("tests/b.rs:1:"));
    }

    #[test]
    fn unsafe_code_is_found_outside_its_crates() {
        let bad = "//! Docs.\nfn f() { unsafe { g() } }\n";
        assert_eq!(
            check_unsafe(&Tree::of(&[("crates/plan/src/lib.rs", bad)])).len(),
            2
        );
        assert!(check_unsafe(&Tree::of(&[("crates/gpu/src/lib.rs", bad)])).is_empty());
        assert!(check_unsafe(&Tree::of(&[("crates/plan/src/lib.rs", GOOD)])).is_empty());
    }
}
