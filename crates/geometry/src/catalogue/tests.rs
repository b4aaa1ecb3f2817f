// SPDX-License-Identifier: Apache-2.0
//! What the catalogue says, checked against the facts that are easy to get wrong.

use std::collections::BTreeSet;

use units::{PciDevice, ProfileName};

use super::*;
use crate::board::{Confidence, ModeChange};

fn name(text: &str) -> ProfileName {
    text.parse().unwrap()
}

fn board(key: &str) -> Board {
    by_key(key).unwrap()
}

#[test]
fn every_board_is_there_once() {
    let boards = boards();
    let keys: BTreeSet<&str> = boards.iter().map(|board| board.key.as_str()).collect();
    assert_eq!(keys.len(), boards.len());
    assert_eq!(boards.iter().filter(|board| board.has_mig()).count(), 29);
    for board in &boards {
        assert_eq!(by_key(&board.key).as_ref(), Some(board));
        assert_eq!(find(&board.key.to_lowercase()).as_ref(), Some(board));
        for device in &board.pci_devices {
            assert_eq!(by_pci(*device, 0).as_ref(), Some(board));
        }
    }
}

#[test]
fn profiles_are_sorted_and_each_is_found_by_id_and_name() {
    for board in boards() {
        let names: Vec<&ProfileName> = board.profiles.iter().map(|p| &p.name).collect();
        assert!(names.is_sorted(), "{}", board.key);
        for profile in &board.profiles {
            assert_eq!(board.profile(profile.driver_id), Some(profile));
            assert_eq!(board.find(&profile.name), Some(profile));
            assert!(profile.full_compute().is_some());
            for placement in &profile.placements {
                assert!(placement.start + placement.size <= board.placement_units);
            }
        }
    }
}

#[test]
fn units_are_not_slices() {
    let rtx = board("RTX-PRO-6000-SE");
    assert_eq!((rtx.compute_slices, rtx.placement_units), (4, 12));
    let half = rtx.find(&name("2g.48gb")).unwrap();
    let places: Vec<String> = half.placements.iter().map(ToString::to_string).collect();
    assert_eq!(places, ["0:6", "6:6"]);
    let h100 = board("H100-80GB-SXM");
    assert_eq!((h100.compute_slices, h100.placement_units), (7, 8));
    assert_eq!(
        h100.find(&name("3g.40gb")).unwrap().placements[1].to_string(),
        "4:4"
    );
}

#[test]
fn the_same_id_is_another_profile_on_another_board() {
    assert_eq!(board("A30").profile(14).unwrap().name, name("1g.6gb"));
    assert_eq!(
        board("A100-40GB").profile(14).unwrap().name,
        name("2g.10gb")
    );
}

#[test]
fn ordinary_boards_are_no_estimates() {
    for key in [
        "A100-40GB",
        "A100-80GB",
        "A30",
        "H100-80GB-SXM",
        "H100-80GB-PCIe",
        "H100-94GB-NVL",
        "GH200-96GB",
        "H200-141GB-SXM",
        "RTX-PRO-6000-SE",
        "T4",
    ] {
        assert!(!board(key).is_estimated(), "{key}");
    }
    for key in [
        "A800-80GB",
        "H20-96GB",
        "GH200-144GB",
        "B200",
        "GB200",
        "B300",
        "GB300",
        "RTX-PRO-6000-WS",
    ] {
        assert!(board(key).is_estimated(), "{key}");
    }
    let captured = |key: &str| board(key).profiles[0].confidence;
    assert_eq!(captured("H100-80GB-SXM"), Confidence::Captured);
    assert_eq!(captured("A100-80GB"), Confidence::Documented);
}

#[test]
fn boards_of_unknown_placements_say_so() {
    for key in ["A100-64GB", "RTX-PRO-5000", "RTX-PRO-4500", "Jetson-Thor"] {
        let board = board(key);
        assert!(board.has_mig() && board.unknown.is_some(), "{key}");
        assert!(board.profiles.is_empty() && board.placement_units == 0);
    }
}

#[test]
fn boards_without_mig_are_there() {
    let t4 = find("T4").unwrap();
    assert!(!t4.has_mig() && t4.unknown.is_none());
    assert_eq!(
        (t4.memory_mib, t4.compute_capability),
        (Some(15360), Some((7, 5)))
    );
    assert_eq!(by_product_name("nvidia t4"), Some(t4.clone()));
    assert_eq!(find("tesla-t4"), Some(t4));
    assert_eq!(find("L40S").unwrap().compute_capability, Some((8, 9)));
}

#[test]
fn products_are_found_however_they_are_spelled() {
    for text in [
        "A100-80GB",
        "NVIDIA A100-SXM4-80GB",
        "A100-SXM4-80GB",
        "nvidia-a100-80gb-pcie",
    ] {
        assert_eq!(find(text).unwrap().key, "A100-80GB", "{text}");
    }
    assert_eq!(find("A100"), None);
}

#[test]
fn a_pci_id_with_another_memory_is_another_board() {
    let sxm = PciDevice(0x2330_10DE);
    assert_eq!(by_pci(sxm, 81559).unwrap().key, "H100-80GB-SXM");
    assert_eq!(by_pci(sxm, 40960), None);
    assert_eq!(by_pci(PciDevice(0x1234_10DE), 81559), None);
}

#[test]
fn engines_are_shared_budgets() {
    let a30 = board("A30").engines;
    assert_eq!((a30.jpeg, a30.ofa), (1, 1));
    let rtx = board("RTX-PRO-6000-SE").engines;
    assert_eq!(
        (rtx.decoders, rtx.encoders, rtx.jpeg, rtx.ofa),
        (4, 4, 4, 1)
    );
    let h100 = board("H100-80GB-SXM").engines;
    assert_eq!((h100.decoders, h100.jpeg, h100.ofa), (7, 7, 1));
    // Unpublished figures are those of the nearest sibling.
    assert_eq!(board("GH200-144GB").engines, board("GH200-96GB").engines);
    assert_eq!(board("GB300").engines.copy, 16);
}

#[test]
fn mode_changes_by_architecture() {
    assert_eq!(board("A30").mode_change, ModeChange::NeedsReset);
    assert_eq!(board("H100-80GB-SXM").mode_change, ModeChange::Immediate);
}

#[test]
fn compute_profiles_of_a_double_memory_slice() {
    let id = |key: &str, profile: &str| {
        let board = board(key);
        board
            .find(&name(profile))
            .unwrap()
            .full_compute()
            .unwrap()
            .driver_id
    };
    assert_eq!(id("A100-80GB", "1g.20gb"), 0);
    assert_eq!(id("H100-80GB-SXM", "1g.20gb"), 7);
    assert_eq!(id("B200", "1g.45gb"), 7);
}

#[test]
fn a_driver_may_call_a_profile_another_name() {
    let found = |key: &str, text: &str| {
        let board = board(key);
        board
            .find(&name(text))
            .map(|profile| profile.name.to_string())
    };
    assert_eq!(found("A100-80GB", "3g.39gb").as_deref(), Some("3g.40gb"));
    assert_eq!(found("A100-80GB", "7g.79gb").as_deref(), Some("7g.80gb"));
    assert_eq!(found("GB200", "1g.24gb").as_deref(), Some("1g.23gb"));
    assert_eq!(found("GB200", "1g.24gb+me").as_deref(), Some("1g.23gb+me"));
    assert_eq!(found("GB200", "7g.189gb").as_deref(), Some("7g.186gb"));
    assert_eq!(found("GB200", "3g.95gb").as_deref(), Some("3g.93gb"));
    assert_eq!(found("A100-80GB", "1c.3g.39gb").as_deref(), Some("3g.40gb"));
    for (key, text) in [
        ("A100-40GB", "1g.6gb"),
        ("A30", "1g.5gb"),
        ("A100-80GB", "1g.5gb"),
        ("A100-80GB", "3g.20gb"),
        ("A100-80GB", "3g.40gb+me"),
        ("H100-80GB-SXM", "1g.12gb"),
        ("H100-80GB-SXM", "1g.15gb"),
    ] {
        assert_eq!(found(key, text), None, "{text} on {key}");
    }
}
