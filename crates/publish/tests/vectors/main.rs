// SPDX-License-Identifier: Apache-2.0
//! The recorded behaviour of NVIDIA's programs, case by case. Node and settings are built from the
//! file alone. `SLICEWRIGHT_VECTORS` names another folder of the same form.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod configs;
mod deviceplugin;
mod labels;
mod node;
mod rules;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// What came of the cases of one kind.
#[derive(Default)]
struct Tally {
    cases: usize,
    /// MPS, and labels as objects of Node Feature Discovery.
    left_out: usize,
    /// Cases with steps that only sockets and restarts show.
    by_grpc: usize,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, name: &str, outcome: Result<(), String>) {
        self.cases += 1;
        self.failures
            .extend(outcome.err().map(|why| format!("{name}: {why}")));
    }
}

#[test]
fn vectors() {
    let folder = std::env::var_os("SLICEWRIGHT_VECTORS").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors"),
        PathBuf::from,
    );
    let labels = labels::judge(&cases(&folder.join("labels")));
    let plugin = deviceplugin::judge(&cases(&folder.join("deviceplugin")));
    let configs = configs::judge(&folder.join("config"));
    // Not by println, which a passing test does not show.
    writeln!(
        std::io::stdout(),
        "{} label cases, {} device-plugin cases, {} config cases, {} left out (mps, \
         nodefeature-api); {} device-plugin cases have steps that are replayed over gRPC elsewhere",
        labels.cases,
        plugin.cases,
        configs.cases,
        labels.left_out + plugin.left_out,
        plugin.by_grpc,
    )
    .unwrap();
    let failures: Vec<String> = [labels, plugin, configs]
        .into_iter()
        .flat_map(|tally| tally.failures)
        .collect();
    assert!(failures.is_empty(), "\n{}\n", failures.join("\n"));
}

/// The cases of a folder, by name.
fn cases(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let json = |path: &PathBuf| path.extension().is_some_and(|end| end == "json");
    paths
        .into_iter()
        .filter(json)
        .map(|path| read(&path))
        .collect()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
