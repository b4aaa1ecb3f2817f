// SPDX-License-Identifier: Apache-2.0
//! The house's documents: they are there, short enough, complete, and their links lead somewhere.

use units::Code;

use super::Finding;
use super::tree::{File, Tree};

const MAP: &str = "ARCHITECTURE.md";
const MAP_LINES: usize = 200;
const CODES: &str = "docs/codes.md";
const GATE: &str = ".ci/run";

/// The documents that a newcomer looks for.
const HOUSE: &[&str] = &[
    MAP,
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "GLOSSARY.md",
    "LICENSE",
    "README.md",
];

/// The house's documents exist; the map is short and names every crate.
pub fn check_map(tree: &Tree, crates: &[&str]) -> Vec<Finding> {
    let missing = HOUSE.iter().filter(|path| tree.file(path).is_none());
    let mut findings: Vec<Finding> = missing
        .map(|path| Finding::new(*path, 0, "is missing"))
        .collect();
    let Some(map) = tree.file(MAP) else {
        return findings;
    };
    let lines = map.text.lines().count();
    if lines > MAP_LINES {
        findings.push(Finding::new(
            MAP,
            0,
            format!("{lines} lines; at most {MAP_LINES}"),
        ));
    }
    for name in crates
        .iter()
        .filter(|name| !map.text.contains(&format!("`{name}`")))
    {
        findings.push(Finding::new(
            MAP,
            0,
            format!("does not say what `{name}` is for"),
        ));
    }
    findings
}

/// Every stable code has its heading in the document that explains them, and no other has.
pub fn check_codes(tree: &Tree) -> Vec<Finding> {
    let Some(file) = tree.file(CODES) else {
        return vec![Finding::new(CODES, 0, "is missing")];
    };
    let headings: Vec<(usize, &str)> = (1..)
        .zip(file.text.lines())
        .filter_map(|(number, line)| Some((number, line.strip_prefix("## ")?.trim_matches('`'))))
        .collect();
    let explained = |code: &&Code| {
        headings
            .iter()
            .any(|(_, heading)| *heading == code.as_str())
    };
    let silent = Code::ALL.iter().filter(|code| !explained(code));
    let mut findings: Vec<Finding> = silent
        .map(|code| Finding::new(CODES, 0, format!("has no heading `## {code}`")))
        .collect();
    let unknown = headings
        .iter()
        .filter(|(_, heading)| heading.parse::<Code>().is_err());
    findings.extend(
        unknown.map(|(line, heading)| {
            Finding::new(CODES, *line, format!("there is no code {heading}"))
        }),
    );
    findings
}

/// The gate does nothing but call the README's test command.
pub fn check_gate(tree: &Tree) -> Vec<Finding> {
    let text = tree.file(GATE).map_or("", |file| &file.text);
    let is_frame = |line: &str| {
        line.is_empty()
            || line.starts_with('#')
            || line.starts_with("set -")
            || line.starts_with("cd ")
    };
    let calls: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !is_frame(line))
        .collect();
    match calls.as_slice() {
        ["exec cargo xtask test"] => Vec::new(),
        _ => vec![Finding::new(
            GATE,
            0,
            "must call `exec cargo xtask test` and nothing else",
        )],
    }
}

/// Links of Markdown files to files that are not there. Links into the web are not followed.
pub fn check_links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let mut in_fence = false;
        for (number, line) in (1..).zip(file.text.lines()) {
            in_fence ^= line.trim_start().starts_with("```");
            let targets = if in_fence { Vec::new() } else { targets(line) };
            for target in targets
                .into_iter()
                .filter(|target| !leads_somewhere(tree, file, target))
            {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("the link to {target} leads nowhere"),
                ));
            }
        }
    }
    findings
}

/// Files of the repository that a page or a comment names and that are not there.
pub fn check_mentions(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in &tree.files {
        let is_page = file.path.ends_with(".md");
        for (number, line) in (1..).zip(file.text.lines()) {
            if !is_page && !line.trim_start().starts_with("//") {
                continue;
            }
            let words = line.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c)));
            let words = words.map(|word| word.trim_end_matches('.'));
            for word in words.filter(|word| is_file_name(word) && !tree.has(word)) {
                findings.push(Finding::new(
                    &file.path,
                    number,
                    format!("there is no {word}"),
                ));
            }
        }
    }
    findings
}

/// Whether a word can only be the path of a file of the repository.
fn is_file_name(word: &str) -> bool {
    const FOLDERS: [&str; 7] = [
        "crates/",
        "data/",
        "docs/",
        "examples/",
        "interop/",
        "vectors/",
        "xtask/",
    ];
    const ENDS: [&str; 5] = [".json", ".md", ".rs", ".txt", ".yaml"];
    FOLDERS.iter().any(|folder| word.starts_with(folder))
        && ENDS.iter().any(|end| word.ends_with(end))
}

/// The `target` of each `[text](target)`.
fn targets(line: &str) -> Vec<&str> {
    let after = line.split("](").skip(1);
    after
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .collect()
}

fn leads_somewhere(tree: &Tree, file: &File, target: &str) -> bool {
    let path = target.split('#').next().unwrap_or_default();
    if target.contains("://") || target.starts_with("mailto:") || path.is_empty() {
        return true;
    }
    let mut folder: Vec<&str> = file.path.split('/').collect();
    folder.pop();
    for part in path.trim_end_matches('/').split('/') {
        match part {
            "." => {}
            ".." => _ = folder.pop(),
            part => folder.push(part),
        }
    }
    tree.has(&folder.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_or_incomplete_map_is_found() {
        let whole: Vec<(&str, &str)> = HOUSE.iter().map(|path| (*path, "`units`\n")).collect();
        assert_eq!(check_map(&Tree::of(&whole), &["units"]), []);
        assert_eq!(check_map(&Tree::of(&whole), &["units", "plan"]).len(), 1);
        assert_eq!(check_map(&Tree::of(&whole[1..]), &["units"]).len(), 1);
        let long = "`units`\n".repeat(MAP_LINES + 1);
        let mut files = whole.clone();
        files[0].1 = &long;
        assert_eq!(check_map(&Tree::of(&files), &["units"]).len(), 1);
    }

    #[test]
    fn an_unexplained_or_unknown_code_is_found() {
        let all: String = Code::ALL
            .iter()
            .map(|code| format!("## {code}\n\ntext\n\n"))
            .collect();
        assert_eq!(check_codes(&Tree::of(&[(CODES, &all)])), []);
        let other = all.replacen("## in-use\n", "## out-of-use\n", 1);
        let found = check_codes(&Tree::of(&[(CODES, &other)]));
        assert_eq!(found.len(), 2, "{found:?}");
    }

    #[test]
    fn a_gate_that_does_something_else_is_found() {
        let good = "#!/bin/sh\nset -eu\ncd \"$(dirname \"$0\")/..\"\nexec cargo xtask test\n";
        assert_eq!(check_gate(&Tree::of(&[(GATE, good)])), []);
        for bad in [
            "",
            "cargo xtask test || true\n",
            "exec cargo xtask test\ncargo deny check\n",
            "exec cargo xtask test --fast\n",
        ] {
            assert_eq!(check_gate(&Tree::of(&[(GATE, bad)])).len(), 1, "{bad}");
        }
    }

    #[test]
    fn mentions_of_missing_files_are_found() {
        let page = "See `docs/b.md` and docs/missing.md.";
        let code = "// docs/other.md\nconst A: &str = \"docs/sample.md\";\n";
        let tree = Tree::of(&[("a.md", page), ("a.rs", code), ("docs/b.md", "")]);
        let found: Vec<String> = check_mentions(&tree)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(
            found,
            [
                "a.md:1: there is no docs/missing.md",
                "a.rs:1: there is no docs/other.md"
            ]
        );
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        let page = "[a](b.md#x) [c](../README.md) [d](https://example.org/x) [e](#f) [g](missing.md)\n```\n[h](i)\n```\n";
        let tree = Tree::of(&[
            ("guide/a.md", page),
            ("guide/b.md", ""),
            ("README.md", "[guide](guide/)"),
        ]);
        let found: Vec<String> = check_links(&tree).iter().map(ToString::to_string).collect();
        assert_eq!(
            found,
            ["guide/a.md:1: the link to missing.md leads nowhere"]
        );
    }
}
