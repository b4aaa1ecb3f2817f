// SPDX-License-Identifier: Apache-2.0
//! Files of at most 500 lines and functions of at most 60, tests and generated code apart.

use super::Finding;
use super::source::{body, line_of, test_items, words};
use super::tree::{File, Tree};

const FILE_LINES: usize = 500;
const FUNCTION_LINES: usize = 60;

/// Files and functions that are too long.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let ours = |file: &&File| !file.test && !file.is_generated();
    let mut findings = Vec::new();
    for file in tree.rust().filter(ours) {
        let items = test_items(&file.code);
        let tests: usize = items
            .iter()
            .map(|item| file.code[item.clone()].lines().count())
            .sum();
        let lines = file.text.lines().count() - tests;
        if lines > FILE_LINES {
            let message =
                format!("{lines} lines without tests; at most {FILE_LINES}: one subject a file");
            findings.push(Finding::new(&file.path, 0, message));
        }
        findings.extend(long_functions(file));
    }
    findings
}

fn long_functions(file: &File) -> Vec<Finding> {
    let code = file.shipped_code();
    let mut findings = Vec::new();
    for at in words(&code, "fn") {
        let Some(body) = body(&code, at) else {
            continue;
        };
        let lines = code[at..body.end].lines().count();
        if lines > FUNCTION_LINES {
            let name: String = code[at + 2..]
                .trim_start()
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .collect();
            let message = format!("function {name} has {lines} lines; at most {FUNCTION_LINES}");
            findings.push(Finding::new(&file.path, line_of(&code, at), message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_files_are_found_and_tests_do_not_count() {
        let long = "// line\n".repeat(FILE_LINES + 1);
        let tested = format!("// a\n#[cfg(test)]\nmod tests {{\n{long}}}\n");
        let generated = format!("//! Written by `cargo xtask codegen`.\n{long}");
        let tree = Tree::of(&[
            ("a.rs", &long),
            ("b.rs", &tested),
            ("c.rs", &generated),
            ("tests/d.rs", &long),
        ]);
        let found = check(&tree);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].path, "a.rs");
    }

    #[test]
    fn long_functions_are_found() {
        let long = format!(
            "fn short() {{}}\nfn long() {{\n{}}}\n",
            "    f();\n".repeat(FUNCTION_LINES)
        );
        let found = check(&Tree::of(&[("a.rs", &long)]));
        assert_eq!(found.len(), 1);
        assert_eq!(
            found[0].to_string(),
            "a.rs:2: function long has 62 lines; at most 60"
        );
    }
}
