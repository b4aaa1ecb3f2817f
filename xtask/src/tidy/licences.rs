// SPDX-License-Identifier: Apache-2.0
//! Licences and sources of the crates from outside, held against `deny.toml`: what `cargo deny`
//! would say of them, without needing it.

use std::collections::BTreeSet;

use super::Finding;
use super::tree::Tree;
use super::workspace::Workspace;

const POLICY: &str = "deny.toml";

/// Packages whose licence or registry the policy does not allow.
pub fn check(tree: &Tree, workspace: &Workspace) -> Vec<Finding> {
    let policy = tree.file(POLICY).map_or("", |file| &file.text);
    let licences = strings(policy, "allow");
    let registries = strings(policy, "allow-registry");
    let mut findings = Vec::new();
    for package in workspace.outside() {
        let name = &package.name;
        if !allows(&licences, &package.licence) {
            let message = format!(
                "{name} has the licence {:?}, which is not allowed",
                package.licence
            );
            findings.push(Finding::new(POLICY, 0, message));
        }
        let source = package.source.as_deref().unwrap_or_default();
        let registry = source.strip_prefix("registry+").unwrap_or(source);
        if !registries.contains(registry) {
            findings.push(Finding::new(
                POLICY,
                0,
                format!("{name} comes from {source}, which is not allowed"),
            ));
        }
    }
    findings
}

/// The strings of the list `key = [...]`.
fn strings<'a>(policy: &'a str, key: &str) -> BTreeSet<&'a str> {
    let start = format!("{key} = [");
    let lines = policy.lines().skip_while(|line| !line.starts_with(&start));
    let mut found = BTreeSet::new();
    for line in lines {
        let line = line.split('#').next().unwrap_or_default();
        found.extend(line.split('"').skip(1).step_by(2));
        if line.contains(']') {
            break;
        }
    }
    found
}

/// Whether an SPDX expression can be fulfilled with the allowed licences. `/` is an old `OR`.
fn allows(allowed: &BTreeSet<&str>, expression: &str) -> bool {
    let spaced = expression
        .replace('(', " ( ")
        .replace(')', " ) ")
        .replace('/', " OR ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = tokens.as_slice();
    any_of(allowed, &mut rest) && rest.is_empty()
}

fn any_of(allowed: &BTreeSet<&str>, rest: &mut &[&str]) -> bool {
    let mut holds = all_of(allowed, rest);
    while let ["OR", tail @ ..] = *rest {
        *rest = tail;
        holds |= all_of(allowed, rest);
    }
    holds
}

fn all_of(allowed: &BTreeSet<&str>, rest: &mut &[&str]) -> bool {
    let mut holds = one(allowed, rest);
    while let ["AND", tail @ ..] = *rest {
        *rest = tail;
        holds &= one(allowed, rest);
    }
    holds
}

fn one(allowed: &BTreeSet<&str>, rest: &mut &[&str]) -> bool {
    match *rest {
        ["(", tail @ ..] => {
            *rest = tail;
            let holds = any_of(allowed, rest);
            *rest = rest.strip_prefix(&[")"]).unwrap_or(&[]);
            holds
        }
        [licence, "WITH", exception, tail @ ..] => {
            *rest = tail;
            allowed.contains(format!("{licence} WITH {exception}").as_str())
        }
        [licence, tail @ ..] => {
            *rest = tail;
            allowed.contains(licence)
        }
        [] => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "[licenses]\nallow = [\n  \"MIT\",\n  \"BSD-3-Clause\", # why\n]\n\
                          [sources]\nallow-registry = [\"https://example.org/index\"]\n";

    #[test]
    fn expressions_are_judged() {
        let allowed = BTreeSet::from(["MIT", "BSD-3-Clause", "A WITH B"]);
        for (expression, expected) in [
            ("MIT", true),
            ("GPL-3.0 OR MIT", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(GPL-3.0 OR MIT) AND BSD-3-Clause", true),
            ("MIT AND (GPL-3.0 OR X)", false),
            ("A WITH B OR GPL-3.0", true),
            ("A", false),
            ("", false),
        ] {
            assert_eq!(allows(&allowed, expression), expected, "{expression}");
        }
    }

    #[test]
    fn a_foreign_licence_is_found() {
        let tree = Tree::of(&[(POLICY, SAMPLE)]);
        let workspace =
            Workspace::of(&[("good", "MIT OR X", &[], &[]), ("bad", "GPL-3.0", &[], &[])]);
        let found = check(&tree, &workspace);
        assert_eq!(found.len(), 1);
        assert!(
            found[0].message.starts_with("bad has the licence"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn a_foreign_registry_is_found() {
        let policy = SAMPLE.replace("https://example.org/index", "https://example.com/index");
        let found = check(
            &Tree::of(&[(POLICY, &policy)]),
            &Workspace::of(&[("good", "MIT", &[], &[])]),
        );
        assert_eq!(found.len(), 1);
        assert!(
            found[0].message.starts_with("good comes from"),
            "{}",
            found[0]
        );
    }
}
