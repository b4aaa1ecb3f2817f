// SPDX-License-Identifier: Apache-2.0
//! What is on a machine as a MIG config, as `nvidia-mig-parted export` writes it.
//!
//! GPUs with the same slices share an entry; `devices: all` and no device filter where that says
//! the same. Placements and subsystem ids are not exported. Print the result with
//! [`mig::print`](crate::mig::print).

use std::collections::{BTreeMap, BTreeSet};

use geometry::inventory::{Gpu, Inventory};
use units::{Mode, PciDevice, ProfileName};

use crate::mig::{DeviceFilter, Devices, Entry, MigConfig, MigConfigFile};

/// The name that the original gives an exported configuration.
pub const DEFAULT_LABEL: &str = "current";

/// The present state of all GPUs as the configuration `label`. GPUs without MIG are entries with
/// MIG off, as in the original. A machine without GPUs has no configuration.
pub fn export(label: &str, inventory: &Inventory) -> MigConfigFile {
    let gpus: Vec<State> = inventory.gpus.iter().map(State::of).collect();
    let entries = merge(&gpus);
    let config = (!entries.is_empty()).then(|| MigConfig {
        name: label.to_owned(),
        entries,
    });
    MigConfigFile {
        configs: config.into_iter().collect(),
    }
}

/// What matters of a GPU here.
#[derive(Clone, Debug)]
struct State {
    index: u32,
    device: PciDevice,
    enabled: bool,
    slices: BTreeMap<ProfileName, u32>,
}

impl State {
    fn of(gpu: &Gpu) -> Self {
        let enabled = gpu.mode.is_some_and(Mode::is_on);
        Self {
            index: gpu.index,
            device: gpu.pci_device,
            enabled,
            slices: if enabled {
                gpu.layout().slices()
            } else {
                BTreeMap::new()
            },
        }
    }
}

/// GPUs with the same state.
struct Group<'a> {
    state: &'a State,
    indices: BTreeSet<u32>,
    devices: BTreeSet<PciDevice>,
}

fn merge(gpus: &[State]) -> Vec<Entry> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for gpu in gpus {
        let same = |group: &&mut Group<'_>| {
            group.state.enabled == gpu.enabled && group.state.slices == gpu.slices
        };
        match groups.iter_mut().find(same) {
            Some(group) => {
                group.indices.insert(gpu.index);
                group.devices.insert(gpu.device);
            }
            None => groups.push(Group {
                state: gpu,
                indices: BTreeSet::from([gpu.index]),
                devices: BTreeSet::from([gpu.device]),
            }),
        }
    }
    let kinds: BTreeSet<PciDevice> = gpus.iter().map(|gpu| gpu.device).collect();
    let filters = kinds.len() > 1 && groups.len() > 1;
    groups
        .iter()
        .map(|group| entry(group, gpus, filters))
        .collect()
}

fn entry(group: &Group<'_>, gpus: &[State], filters: bool) -> Entry {
    let of_these_kinds = gpus
        .iter()
        .filter(|gpu| group.devices.contains(&gpu.device));
    let is_all = of_these_kinds.count() == group.indices.len();
    let filter = |device: &PciDevice| DeviceFilter {
        device: *device,
        subsystem: None,
    };
    Entry {
        device_filter: group
            .devices
            .iter()
            .filter(|_| filters)
            .map(filter)
            .collect(),
        devices: if is_all {
            Devices::All
        } else {
            Devices::Indices(group.indices.iter().copied().map(i64::from).collect())
        },
        mig_enabled: group.state.enabled,
        mig_devices: group.state.slices.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mig::{Format, print};

    /// GPUs as `(PCI device, slices)`; `-` is MIG off.
    fn exported(gpus: &[(u32, &str)]) -> String {
        let state = |(index, (device, slices)): (usize, &(u32, &str))| State {
            index: u32::try_from(index).unwrap(),
            device: PciDevice(*device),
            enabled: *slices != "-",
            slices: slices
                .split(',')
                .filter_map(|slice| slice.split_once('x'))
                .map(|(count, name)| (name.parse().unwrap(), count.parse().unwrap()))
                .collect(),
        };
        let states: Vec<State> = gpus.iter().enumerate().map(state).collect();
        let config = MigConfig {
            name: "c".to_owned(),
            entries: merge(&states),
        };
        let text = print(
            &MigConfigFile {
                configs: vec![config],
            },
            Format::Yaml,
        );
        text.replace("version: v1\nmig-configs:\n  c:\n", "")
    }

    const A40: u32 = 0x20B0_10DE;
    const A80: u32 = 0x20B2_10DE;

    #[test]
    fn nothing_is_nothing() {
        assert!(merge(&[]).is_empty());
    }

    #[test]
    fn what_is_the_same_everywhere_is_all() {
        let off = "  - devices: all\n    mig-enabled: false\n    mig-devices: {}\n";
        assert_eq!(exported(&[(A40, "-")]), off);
        assert_eq!(exported(&[(A40, "-"), (A40, "-")]), off);
        assert_eq!(exported(&[(A40, "-"), (A80, "-")]), off);
    }

    #[test]
    fn different_gpus_of_one_kind_are_listed_by_index() {
        assert_eq!(
            exported(&[(A40, "-"), (A40, "7x1g.5gb"), (A40, "-")]),
            "  - devices: [0, 2]\n    mig-enabled: false\n    mig-devices: {}\n  \
             - devices: [1]\n    mig-enabled: true\n    mig-devices:\n      1g.5gb: 7\n"
        );
    }

    #[test]
    fn kinds_that_differ_are_told_apart_by_filter() {
        assert_eq!(
            exported(&[
                (A40, "-"),
                (A40, "-"),
                (A80, "1x1g.10gb"),
                (A80, "1x1g.10gb")
            ]),
            "  - device-filter: \"0x20B010DE\"\n    devices: all\n    mig-enabled: false\n    \
             mig-devices: {}\n  - device-filter: \"0x20B210DE\"\n    devices: all\n    \
             mig-enabled: true\n    mig-devices:\n      1g.10gb: 1\n"
        );
    }

    #[test]
    fn states_across_kinds_keep_all_filters_and_their_indices() {
        let mixed = exported(&[(A40, "-"), (A40, ""), (A80, "-"), (A80, "")]);
        assert_eq!(
            mixed,
            "  - device-filter: [\"0x20B010DE\", \"0x20B210DE\"]\n    devices: [0, 2]\n    \
             mig-enabled: false\n    mig-devices: {}\n  \
             - device-filter: [\"0x20B010DE\", \"0x20B210DE\"]\n    devices: [1, 3]\n    \
             mig-enabled: true\n    mig-devices: {}\n"
        );
    }
}
