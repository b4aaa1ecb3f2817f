// SPDX-License-Identifier: Apache-2.0
//! What is wanted, as typed or selected, and how hardware differs from it.

use std::collections::BTreeMap;

use geometry::inventory::Inventory;
use proptest::prelude::*;
use units::Mode;

use super::{a_gpu, inventory_of, name, wish};
use crate::testing::{Choices, inventory, machine};
use crate::{
    GpuWish, Refusal, Wish, difference, layout_text, parse_layout, resolve, resolve_layout,
};

fn slices(counts: &[(&str, u32)]) -> GpuWish {
    let counts = counts
        .iter()
        .map(|(profile, count)| (name(profile), *count));
    GpuWish::Slices(counts.collect())
}

/// Resolves the entries of a configuration, given in YAML.
fn resolved(entries: &str, inventory: &Inventory) -> Result<Wish, Refusal> {
    let text = format!("version: v1\nmig-configs:\n  it:\n{entries}");
    let selected = config::mig::parse("test.yaml", &text).select(None).unwrap();
    resolve(&selected.entries, inventory)
}

fn warnings(wish: &Wish) -> Vec<String> {
    let warnings = wish.warnings.iter();
    warnings
        .map(|w| format!("{}: {}", w.code, w.message))
        .collect()
}

#[test]
fn layouts_as_typed() {
    for (text, expected) in [
        ("off", GpuWish::Off),
        ("empty", slices(&[])),
        (
            "3g.40gb,2x1g.10gb",
            slices(&[("1g.10gb", 2), ("3g.40gb", 1)]),
        ),
        (" 1g.10gb , 2x1g.10gb ", slices(&[("1g.10gb", 3)])),
        (
            "2x1g.24gb+gfx,me,1g.24gb",
            slices(&[("1g.24gb+gfx,me", 2), ("1g.24gb", 1)]),
        ),
        ("3x1c.3g.40gb", slices(&[("1c.3g.40gb", 3)])),
        ("1g.24gb+gfx", slices(&[("1g.24gb+gfx", 1)])),
        (
            "1g.24gb,1g.24gb+gfx,me",
            slices(&[("1g.24gb", 1), ("1g.24gb+gfx,me", 1)]),
        ),
    ] {
        assert_eq!(parse_layout(text), Ok(expected), "{text}");
    }
    for (text, reason) in [
        ("", "\"\" is not a part of a layout"),
        ("OFF", "\"OFF\" is not a part"),
        ("1g.10gb,,2g.20gb", "\"\" is not a part"),
        ("0x1g.10gb", "the count is not a number from 1 to 64"),
        ("99999999999x1g.10gb", "the count is not"),
        ("7 x1g.10gb", "the count is not"),
        ("1g.10gb:2", "\"1g.10gb:2\""),
        ("1g.10gb off", "\"1g.10gb off\""),
    ] {
        let refusal = parse_layout(text).unwrap_err();
        assert_eq!(refusal.code.as_str(), "usage");
        assert!(refusal.message.contains(reason), "{text}: {refusal}");
        assert!(refusal.message.contains("looks like 3g.40gb,2x1g.10gb"));
    }
}

proptest! {
    #[test]
    fn layouts_are_read_as_written(list in prop::collection::vec(any::<u16>(), 0..60)) {
        let inventory = inventory(&mut Choices::new(&list));
        for gpu in &inventory.gpus {
            let counts = gpu.layout().slices();
            prop_assert_eq!(parse_layout(&layout_text(&counts)), Ok(GpuWish::Slices(counts)));
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[0-9a-z.,+x -]{0,40}") {
        if let Ok(GpuWish::Slices(counts)) = parse_layout(&text) {
            prop_assert_eq!(parse_layout(&layout_text(&counts)), Ok(GpuWish::Slices(counts)));
        }
    }
}

#[test]
fn a_layout_is_for_the_gpus_named() {
    let inventory = inventory_of(&["A30", "A30", "A30"]);
    let wish = resolve_layout(&[0, 2], &GpuWish::Off, &inventory).unwrap();
    assert_eq!(
        wish.gpus,
        BTreeMap::from([(0, GpuWish::Off), (2, GpuWish::Off)])
    );
    let refusal = resolve_layout(&[0, 3], &GpuWish::Off, &inventory).unwrap_err();
    assert_eq!(
        (refusal.code.as_str(), refusal.choices.len()),
        ("no-gpu-matches", 3)
    );
}

#[test]
fn all_means_all_that_have_mig() {
    let inventory = inventory_of(&["A30", "T4", "A30"]);
    let entry = "  - {devices: all, mig-enabled: true, mig-devices: {1g.6gb: 4}}";
    let wish = resolved(entry, &inventory).unwrap();
    let expected = slices(&[("1g.6gb", 4)]);
    assert_eq!(
        wish.gpus,
        BTreeMap::from([(0, expected.clone()), (2, expected)])
    );
    assert_eq!(warnings(&wish), [""; 0]);
}

#[test]
fn filters_choose_boards() {
    let inventory = inventory_of(&["A30", "A100-40GB"]);
    let entries = "  - {device-filter: '0x20B710DE', devices: all, mig-enabled: false}
  - {device-filter: ['0x20B010DE'], devices: [0, 1], mig-enabled: true, mig-devices: {}}";
    let wish = resolved(entries, &inventory).unwrap();
    assert_eq!(
        wish.gpus,
        BTreeMap::from([(0, GpuWish::Off), (1, slices(&[]))])
    );
    assert_eq!(warnings(&wish), [""; 0]);
}

#[test]
fn the_last_entry_counts() {
    let inventory = inventory_of(&["A30", "A30", "A30"]);
    let entries = "  - {devices: all, mig-enabled: false}
  - {devices: [1, 2, 7, -1], mig-enabled: true, mig-devices: {4g.24gb: 1}}";
    let wish = resolved(entries, &inventory).unwrap();
    assert_eq!(wish.gpus[&0], GpuWish::Off);
    assert_eq!(wish.gpus[&2], slices(&[("4g.24gb", 1)]));
    assert_eq!(
        warnings(&wish),
        [
            "overlapping-entries: GPUs 1, 2 (NVIDIA A30): entries 1, 2 of the configuration match; \
             the last, 2, counts",
            "index-without-gpu: the configuration names GPU -1, 7, which this machine does not have",
        ]
    );
}

#[test]
fn nothing_matched_is_refused_with_what_is_there() {
    let inventory = inventory_of(&["A30", "T4"]);
    for entry in [
        "  - {device-filter: '0x123410DE', devices: all, mig-enabled: false}",
        "  - {devices: [42], mig-enabled: false}",
        "  - {devices: [], mig-enabled: false}",
    ] {
        let refusal = resolved(entry, &inventory).unwrap_err();
        assert_eq!(refusal.code.as_str(), "no-gpu-matches", "{entry}");
        let [a30, t4] = &refusal.choices[..] else {
            panic!("{:?}", refusal.choices);
        };
        assert_eq!(a30, "0: 0x20B710DE (NVIDIA A30)");
        assert!(
            t4.starts_with("1: 0x") && t4.ends_with("(Tesla T4, no MIG)"),
            "{t4}"
        );
    }
    let t4 = inventory_of(&["T4"]);
    let on = "  - {devices: all, mig-enabled: true, mig-devices: {}}";
    assert_eq!(
        resolved(on, &t4).unwrap_err().code.as_str(),
        "no-gpu-matches"
    );
    let off = "  - {devices: all, mig-enabled: false}";
    assert_eq!(resolved(off, &t4).unwrap().gpus, BTreeMap::new());
}

#[test]
fn hardware_that_differs_is_told() {
    let gpus = |mode| {
        let mut gpu = a_gpu(0, "A30", &[("1g.6gb", 0), ("2g.12gb", 2)]);
        gpu.mode = Some(mode);
        machine(vec![gpu])
    };
    let told = |inventory: &Inventory, wish: &Wish| -> Vec<String> {
        let differences = difference(inventory, wish).into_iter();
        differences.map(|difference| difference.message).collect()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(
        told(&gpus(Mode::On), &wish(&[(0, "1g.6gb,2g.12gb")])),
        nothing
    );
    assert_eq!(
        told(&gpus(Mode::On), &wish(&[(0, "4g.24gb")]).mode_only()),
        nothing
    );
    assert_eq!(
        told(&gpus(Mode::On), &wish(&[(0, "4x1g.6gb")])),
        ["GPU 0 (NVIDIA A30): it has 1x1g.6gb,1x2g.12gb, wanted is 4x1g.6gb"]
    );
    assert_eq!(
        told(&gpus(Mode::PendingOff), &wish(&[(0, "1g.6gb,2g.12gb")])),
        ["GPU 0 (NVIDIA A30): MIG is pending off, wanted is on"]
    );
    assert_eq!(
        told(&inventory_of(&["T4"]), &wish(&[(0, "empty"), (3, "off")])),
        [
            "GPU 0 (Tesla T4): it has no MIG, wanted is MIG on",
            "there is no GPU 3 on this machine",
        ]
    );
    assert_eq!(told(&inventory_of(&["T4"]), &wish(&[(0, "off")])), nothing);
}

#[test]
fn places_matter_where_they_were_recorded() {
    let there = machine(vec![a_gpu(0, "A30", &[("1g.6gb", 0)])]);
    let recorded = |start| {
        let layout = a_gpu(0, "A30", &[("1g.6gb", start)]).layout();
        Wish {
            gpus: [(0, GpuWish::Exact(layout))].into(),
            warnings: Vec::new(),
        }
    };
    assert_eq!(difference(&there, &recorded(0)), []);
    assert_eq!(
        difference(&there, &recorded(3))[0].message,
        "GPU 0 (NVIDIA A30): it has 1x1g.6gb (1g.6gb at 0:1), wanted is 1x1g.6gb (1g.6gb at 3:1)"
    );
}

#[test]
fn a_profile_has_one_name_to_the_board() {
    let there = machine(vec![a_gpu(0, "GB200", &[("1g.23gb", 0)])]);
    assert_eq!(difference(&there, &wish(&[(0, "1g.24gb")])), []);
}
