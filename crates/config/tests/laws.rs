// SPDX-License-Identifier: Apache-2.0
//! Laws of all texts and of everything that is printed. The fuzz targets run the same bodies.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use config::checkpoint::{Checkpoint, ComputeInstanceState, DeviceState, GpuInstanceState};
use config::laws;
use config::mig::{DeviceFilter, Devices, Entry, MigConfig, MigConfigFile};
use proptest::prelude::*;
use proptest::sample::{Index, select};
use units::{PciDevice, Placement, ProfileName};

const SEEDS: [&str; 7] = [
    include_str!("../../../examples/mig-config.yaml"),
    include_str!("../../../examples/mig-configmap.yaml"),
    include_str!("../../../examples/sharing-config.yaml"),
    include_str!("../../../examples/hooks.yaml"),
    include_str!("../../../examples/broken/mig-typos.yaml"),
    r#"{"Version":"v1","MigState":{"Devices":[{"UUID":"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
    "MigMode":1,"GpuInstances":[{"ProfileID":2,"Placement":{"Start":0,"Size":4},
    "ComputeInstances":[{"ProfileID":2,"EngProfileID":0}]}]}]}}"#,
    "a: &a [1, {<<: &m {k: v}}]\nb: [*a, *m]\nc:\n  <<: [*m, {x: |-\n    t\n  }]\n---\n!!str 1\n",
];

/// What mutations put in: pieces that mean something to the parser or the decoder.
const PIECES: [&str; 32] = [
    "",
    " ",
    "\n",
    "\t",
    ":",
    "-",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "&a ",
    "*a",
    "<<: *a",
    "|",
    ">",
    "\"",
    "'",
    "#",
    "!!int ",
    "? ",
    "---\n",
    "%YAML 1.1\n",
    "0",
    "-1",
    "1e999",
    "~",
    "yes",
    "\u{0}",
    "\u{feff}",
    "\u{85}\u{2028}",
];

/// A seed with some places overwritten.
fn mutated() -> impl Strategy<Value = String> {
    let edit = (any::<Index>(), 0_usize..20, select(&PIECES[..]));
    let edits = prop::collection::vec(edit, 1..8);
    (select(&SEEDS[..]), edits).prop_map(|(seed, edits)| {
        let mut characters: Vec<char> = seed.chars().collect();
        for (at, remove, piece) in edits {
            let at = at.index(characters.len() + 1);
            let end = characters.len().min(at + remove);
            characters.splice(at..end, piece.chars());
        }
        characters.into_iter().collect()
    })
}

fn profile() -> impl Strategy<Value = ProfileName> {
    let attributes = select(&["", "+me", "+me.all", "+gfx,me", "-me"][..]);
    (1_u8..8, 0_u16..200, attributes, 1_u8..8).prop_map(|(slices, memory, attributes, compute)| {
        let whole: ProfileName = format!("{slices}g.{memory}gb{attributes}").parse().unwrap();
        whole.with_compute(compute).unwrap_or(whole)
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    let filter =
        (any::<u32>(), any::<Option<u32>>()).prop_map(|(device, subsystem)| DeviceFilter {
            device: PciDevice(device),
            subsystem: subsystem.map(PciDevice),
        });
    let devices = prop_oneof![
        Just(Devices::All),
        prop::collection::vec(any::<i64>(), 0..4).prop_map(Devices::Indices)
    ];
    let slices = prop::collection::btree_map(profile(), 1_u32.., 0..4);
    let filters = prop::collection::vec(filter, 0..3);
    (filters, devices, any::<bool>(), slices).prop_map(
        |(device_filter, devices, mig_enabled, mig_devices)| Entry {
            device_filter,
            devices,
            mig_enabled,
            mig_devices: if mig_enabled {
                mig_devices
            } else {
                BTreeMap::new()
            },
        },
    )
}

fn mig_config() -> impl Strategy<Value = MigConfigFile> {
    let name = prop_oneof![
        "[a-z0-9.-]{1,20}",
        "\\PC{0,20}",
        select(
            &[
                "yes", "~", "010", "1e3", "<<", "- a", "*b", "a: b", "a #b", "null", "\u{7f}\t"
            ][..]
        )
        .prop_map(str::to_owned),
    ];
    let entries = prop::collection::vec(entry(), 1..4);
    prop::collection::btree_map(name, entries, 0..4).prop_map(|configs| MigConfigFile {
        configs: configs
            .into_iter()
            .map(|(name, entries)| MigConfig { name, entries })
            .collect(),
    })
}

fn checkpoint() -> impl Strategy<Value = Checkpoint> {
    let compute =
        (any::<u32>(), any::<u32>()).prop_map(|(profile_enum, engine_enum)| ComputeInstanceState {
            profile_enum,
            engine_enum,
        });
    let instance = (
        any::<u32>(),
        any::<(u8, u8)>(),
        prop::collection::vec(compute, 0..3),
    );
    let instance =
        instance.prop_map(
            |(profile_enum, (start, size), compute_instances)| GpuInstanceState {
                profile_enum,
                placement: Placement::new(start, size),
                compute_instances,
            },
        );
    let device = (
        "GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
        any::<bool>(),
    );
    let device = (device, prop::collection::vec(instance, 0..4));
    let device = device.prop_map(|((uuid, mig_mode), gpu_instances)| DeviceState {
        uuid: uuid.parse().unwrap(),
        mig_mode,
        gpu_instances,
    });
    prop::collection::vec(device, 0..4).prop_map(|devices| Checkpoint { devices })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_for_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        prop_assert_eq!(laws::of_text(&String::from_utf8_lossy(&bytes)), Ok(()));
    }

    #[test]
    fn laws_hold_for_pieces_of_yaml(pieces in prop::collection::vec(select(&PIECES[..]), 0..60)) {
        prop_assert_eq!(laws::of_text(&pieces.concat()), Ok(()));
    }

    #[test]
    fn laws_hold_for_damaged_files(text in mutated()) {
        prop_assert_eq!(laws::of_text(&text), Ok(()));
    }

    #[test]
    fn every_mig_config_reads_back(file in mig_config()) {
        prop_assert_eq!(laws::of_mig_config(&file), Ok(()));
    }

    #[test]
    fn every_checkpoint_reads_back(state in checkpoint()) {
        prop_assert_eq!(laws::of_checkpoint(&state), Ok(()));
    }
}

#[test]
fn laws_hold_for_the_seeds() {
    for seed in SEEDS {
        assert_eq!(laws::of_text(seed), Ok(()));
    }
}
