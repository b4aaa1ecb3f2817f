// SPDX-License-Identifier: Apache-2.0
//! Generated configurations by board.

use super::*;
use crate::mig::{Format, parse, print};

fn board(key: &str) -> Board {
    geometry::catalogue::by_key(key).unwrap()
}

/// The entries of a configuration, one line each: `filter filter: count x profile, ...`.
fn entries(file: &MigConfigFile, name: &str) -> Vec<String> {
    let of = |entry: &Entry| {
        let filters: Vec<String> = entry
            .device_filter
            .iter()
            .map(ToString::to_string)
            .collect();
        let slices = entry.mig_devices.iter();
        let slices: Vec<String> = slices
            .map(|(name, count)| format!("{count}x{name}"))
            .collect();
        format!("{}: {}", filters.join(" "), slices.join(", "))
    };
    file.get(name).unwrap().entries.iter().map(of).collect()
}

#[test]
fn a_node_of_one_kind_has_no_filters() {
    let h100 = board("H100-80GB-SXM");
    let id = h100.pci_devices[0];
    let file = generate(&[(id, &h100), (id, &h100)]);
    assert_eq!(
        file.names(),
        [
            "all-1g.10gb",
            "all-1g.10gb.me",
            "all-1g.20gb",
            "all-2g.20gb",
            "all-3g.40gb",
            "all-4g.40gb",
            "all-7g.80gb",
            "all-balanced",
            "all-disabled",
            "all-enabled"
        ]
    );
    assert_eq!(entries(&file, "all-1g.10gb"), [": 7x1g.10gb"]);
    assert_eq!(entries(&file, "all-1g.10gb.me"), [": 1x1g.10gb+me"]);
    assert_eq!(
        entries(&file, "all-balanced"),
        [": 2x1g.10gb, 1x2g.20gb, 1x3g.40gb"]
    );
    assert!(!file.get("all-disabled").unwrap().entries[0].mig_enabled);
    assert!(file.get("all-enabled").unwrap().entries[0].mig_enabled);
}

#[test]
fn a_mixed_node_has_filters_everywhere() {
    let (small, large, a30, t4) = (
        board("A100-40GB"),
        board("A100-80GB"),
        board("A30"),
        board("T4"),
    );
    let pci = |board: &Board| board.pci_devices[0];
    let gpus = [
        (pci(&large), &large),
        (pci(&small), &small),
        (pci(&a30), &a30),
        (pci(&t4), &t4),
    ];
    let file = generate(&gpus);
    assert_eq!(
        entries(&file, "all-1g.10gb"),
        ["0x20B010DE: 4x1g.10gb", "0x20B210DE: 7x1g.10gb"]
    );
    assert_eq!(entries(&file, "all-1g.6gb"), ["0x20B710DE: 4x1g.6gb"]);
    assert_eq!(
        entries(&file, "all-balanced"),
        [
            "0x20B010DE: 2x1g.5gb, 1x2g.10gb, 1x3g.20gb",
            "0x20B210DE: 2x1g.10gb, 1x2g.20gb, 1x3g.40gb",
            "0x20B710DE: 2x1g.6gb, 1x2g.12gb"
        ]
    );
}

#[test]
fn attributes_are_written_for_labels_and_never_balanced() {
    let rtx = board("RTX-PRO-6000-SE");
    let file = generate(&[(rtx.pci_devices[0], &rtx)]);
    assert_eq!(entries(&file, "all-1g.24gb.me.all"), [": 1x1g.24gb+me.all"]);
    assert_eq!(entries(&file, "all-1g.24gb-me"), [": 4x1g.24gb-me"]);
    assert_eq!(entries(&file, "all-balanced"), [": 2x1g.24gb, 1x2g.48gb"]);

    let mut only_attributes = rtx.clone();
    only_attributes
        .profiles
        .retain(|profile| *profile.name.attributes() != Attributes::None);
    let file = generate(&[(rtx.pci_devices[0], &only_attributes)]);
    assert!(file.get("all-balanced").is_none());

    let mut two_slots = rtx.clone();
    two_slots.profiles.retain(|profile| profile.slices <= 2);
    let file = generate(&[(rtx.pci_devices[0], &two_slots)]);
    assert!(file.get("all-balanced").is_none());
    assert!(file.get("all-2g.48gb").is_some());

    let mut no_2g = board("A100-40GB");
    no_2g.profiles.retain(|profile| profile.slices != 2);
    let file = generate(&[(no_2g.pci_devices[0], &no_2g)]);
    assert!(file.get("all-balanced").is_none());
}

#[test]
fn wrong_counts_of_an_a30_driver_are_put_right() {
    let mut a30 = board("A30");
    for profile in &mut a30.profiles {
        profile.max_instances = 9;
    }
    let file = generate(&[(a30.pci_devices[0], &a30)]);
    assert_eq!(entries(&file, "all-2g.12gb.me"), [": 1x2g.12gb+me"]);
    assert_eq!(entries(&file, "all-1g.6gb"), [": 4x1g.6gb"]);
}

#[test]
fn the_default_table_has_81_names() {
    let file = defaults();
    assert_eq!(file.configs.len(), 81);
    assert_eq!(
        file.configs
            .iter()
            .map(|config| config.entries.len())
            .sum::<usize>(),
        94
    );
    let filtered: Vec<&str> = file
        .configs
        .iter()
        .filter(|config| {
            config
                .entries
                .iter()
                .any(|entry| !entry.device_filter.is_empty())
        })
        .map(|config| config.name.as_str())
        .collect();
    assert_eq!(filtered, ["all-1g.10gb", "all-1g.35gb", "all-balanced"]);
    assert_eq!(
        entries(&file, "all-1g.35gb"),
        ["0x233510DE 0x233B10DE: 4x1g.35gb", "0x31C210DE: 7x1g.35gb"]
    );
    assert_eq!(entries(&file, "all-balanced").len(), 12);
    assert!(entries(&file, "all-balanced").contains(
        &"0x20B610DE 0x232910DE 0x233D10DE 0x234210DE: 2x1g.12gb, 1x2g.24gb, 1x3g.48gb".to_owned()
    ));
    assert_eq!(
        parse("f", &print(&file, Format::Yaml)).into_file().unwrap(),
        file
    );
}

#[test]
fn gpus_that_cannot_be_asked_get_the_default_table() {
    let mut silent = board("H100-80GB-SXM");
    silent.profiles.clear();
    assert_eq!(generate(&[(silent.pci_devices[0], &silent)]), defaults());
    let t4 = board("T4");
    let file = generate(&[(t4.pci_devices[0], &t4)]);
    assert_eq!(file.names(), ["all-disabled", "all-enabled"]);
}
