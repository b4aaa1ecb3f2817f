// SPDX-License-Identifier: Apache-2.0
//! The files under `examples/`: the good ones have no fault, and what is said of the broken ones is
//! recorded in `broken.txt` beside this file.

use config::check::check;
use config::manifest::Kind;
use config::mig;

macro_rules! examples {
    ($($name:literal),+) => {
        [$(($name, include_str!(concat!("../../../examples/", $name)))),+]
    };
}

#[test]
fn good_examples_have_no_fault() {
    let files = examples![
        "mig-config.yaml",
        "mig-configmap.yaml",
        "sharing-config.yaml",
        "hooks.yaml"
    ];
    for (name, text) in files {
        let report = check(name, text);
        assert_eq!(report.diagnostics, [], "{name}");
        assert!(
            report.parts.iter().all(|(_, kind)| *kind < Kind::Blank),
            "{name}"
        );
    }
}

#[test]
fn the_first_example_can_be_selected() {
    let [(name, text)] = examples!["mig-config.yaml"];
    let parsed = mig::parse(name, text);
    for config in parsed.names() {
        let selected = parsed.select(Some(config)).unwrap();
        assert!(selected.warnings.is_empty(), "{config}");
    }
}

#[test]
fn what_is_said_of_broken_examples_is_recorded() {
    let files = examples![
        "broken/mig-configmap.yaml",
        "broken/mig-duplicates.yaml",
        "broken/mig-typos.yaml",
        "broken/not-yaml.yaml",
        "broken/sharing-config.yaml"
    ];
    let mut said = String::new();
    for (name, text) in files {
        let report = check(name, text);
        assert!(report.has_errors(), "{name}");
        for fault in &report.diagnostics {
            let kind = if fault.is_error() { "error" } else { "warning" };
            said.push_str(&format!("{kind}[{}] {fault}\n", fault.code));
        }
    }
    assert_eq!(
        said,
        include_str!("broken.txt"),
        "what is said now:\n{said}"
    );
}
