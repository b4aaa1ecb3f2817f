// SPDX-License-Identifier: Apache-2.0
//! Configuration texts, and the settings when nothing is set.

use std::path::Path;

use config::deviceplugin::{Config, parse};
use serde_json::Value;

use super::node::text;
use super::rules::same;
use super::{Tally, read};

/// Texts that are refused here though the recorded plugin takes them: it then waits for ever for an
/// MPS daemon that refuses so many clients.
const BETTER: [&str; 1] = ["43-mps49"];

pub fn judge(folder: &Path) -> Tally {
    let mut tally = Tally::default();
    for case in read(&folder.join("errors.json")).as_array().unwrap() {
        let name = text(&case["name"]);
        let config = parse("case", case["config_text"].as_str().unwrap()).into_config();
        let accepted = config.is_ok_and(|config| config.conflicts().is_empty());
        let expected = case["outcome"] == "ok" && !BETTER.contains(&name.as_str());
        tally.add(&name, same("accepted", &accepted, &expected));
    }
    let mut recorded = read(&folder.join("defaults.json"));
    // The version, and names that follow from the strategy, are no settings here.
    recorded["version"] = Value::Null;
    recorded["resources"] = Value::Null;
    let mut ours = serde_json::to_value(Config::default()).unwrap();
    ours["version"] = Value::Null;
    ours["resources"] = Value::Null;
    tally.add("defaults", same("defaults", &ours, &recorded));
    tally
}
