// SPDX-License-Identifier: Apache-2.0
//! From what a person selected to what is wanted of single GPUs.

use std::collections::{BTreeMap, BTreeSet};

use config::mig::{Devices, Entry, MigConfigFile};
use geometry::inventory::{Gpu, Inventory};
use units::Code;

use crate::refusal::{Notes, Refusal, Warning};
use crate::text::list;
use crate::wish::{GpuWish, Wish};

/// What the entries of a MIG configuration want of this machine.
///
/// As `nvidia-mig-parted apply` does, entries are walked in order and the last that matches a GPU
/// counts; `devices: all` means all GPUs that have MIG; GPUs that no entry matches stay as they
/// are. Unlike it, an entry that is overruled and an index that no GPU has are warned of, and
/// entries that match nothing at all are refused.
///
/// # Errors
/// [`Code::NoGpuMatches`] with the indices and PCI ids that there are; [`Code::GpuLost`] if an entry
/// names a GPU that fell off the bus by its index.
pub fn resolve(entries: &[Entry], inventory: &Inventory) -> Result<Wish, Refusal> {
    if let Some(lost) = lost_and_named(entries, inventory) {
        return Err(Refusal::unknown_gpu(inventory, lost));
    }
    let mut wish = Wish::default();
    let mut by_entry: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut matched = false;
    for (number, entry) in (1..).zip(entries) {
        for gpu in &inventory.gpus {
            if !entry.matches(gpu.index, gpu.pci_device, gpu.pci_subsystem) {
                continue;
            }
            let skipped = entry.devices == Devices::All && gpu.mode.is_none();
            matched |= !skipped || !entry.mig_enabled;
            if !skipped {
                by_entry.entry(gpu.index).or_default().push(number);
                wish.gpus.insert(gpu.index, wanted(entry));
            }
        }
    }
    if !matched {
        return Err(nothing_matched(inventory));
    }
    wish.warnings = overlaps(inventory, &by_entry);
    wish.warnings
        .extend(indices_without_gpu(entries, inventory));
    Ok(wish)
}

/// What `--gpu 0,2 --layout ...` wants.
///
/// # Errors
/// [`Code::NoGpuMatches`] if one of the GPUs is not there, with the indices that are.
pub fn resolve_layout(
    gpus: &[u32],
    layout: &GpuWish,
    inventory: &Inventory,
) -> Result<Wish, Refusal> {
    let there: BTreeSet<u32> = inventory.gpus.iter().map(|gpu| gpu.index).collect();
    if let Some(missing) = gpus.iter().find(|gpu| !there.contains(gpu)) {
        return Err(Refusal::unknown_gpu(inventory, *missing));
    }
    let gpus = gpus.iter().map(|gpu| (*gpu, layout.clone()));
    Ok(Wish {
        gpus: gpus.collect(),
        warnings: Vec::new(),
    })
}

/// The MIG configurations that fit this machine, as NVIDIA's manager generates them.
pub fn generated(inventory: &Inventory) -> MigConfigFile {
    let capable = inventory.gpus.iter().filter(|gpu| gpu.mode.is_some());
    let boards: Vec<_> = capable.map(|gpu| (gpu.pci_device, &gpu.board)).collect();
    config::generate::generate(&boards)
}

impl Wish {
    /// The same wish for the MIG mode alone (`--mode-only`): instances are left as they are.
    #[must_use]
    pub fn mode_only(mut self) -> Self {
        for wanted in self.gpus.values_mut() {
            if *wanted != GpuWish::Off {
                *wanted = GpuWish::On;
            }
        }
        self
    }
}

fn wanted(entry: &Entry) -> GpuWish {
    if entry.mig_enabled {
        GpuWish::Slices(entry.mig_devices.clone())
    } else {
        GpuWish::Off
    }
}

fn nothing_matched(inventory: &Inventory) -> Refusal {
    let describe = |gpu: &Gpu| {
        let mig = if gpu.mode.is_none() { ", no MIG" } else { "" };
        let subsystem = match gpu.pci_subsystem.0 {
            0 => String::new(),
            _ => format!(":{}", gpu.pci_subsystem),
        };
        format!(
            "{}: {}{subsystem} ({}{mig})",
            gpu.index, gpu.pci_device, gpu.name
        )
    };
    let message = if inventory.gpus.is_empty() {
        "the configuration matches no GPU: this machine has none".into()
    } else {
        "the configuration matches no GPU of this machine; check devices and device-filter against \
         the indices and PCI ids that there are"
            .to_owned()
    };
    Refusal {
        choices: inventory.gpus.iter().map(describe).collect(),
        ..Refusal::new(Code::NoGpuMatches, message)
    }
}

/// GPUs that several entries match.
fn overlaps(inventory: &Inventory, by_entry: &BTreeMap<u32, Vec<usize>>) -> Vec<Warning> {
    let mut notes = Notes::default();
    for gpu in &inventory.gpus {
        let entries = by_entry.get(&gpu.index).map_or(&[][..], Vec::as_slice);
        if let [_, .., last] = entries {
            let text = format!(
                "entries {} of the configuration match; the last, {last}, counts",
                list(entries)
            );
            notes.add(Code::OverlappingEntries, gpu, text);
        }
    }
    notes.into_warnings().collect()
}

/// The indices that entries name.
fn named(entries: &[Entry]) -> impl Iterator<Item = i64> {
    let named = entries.iter().flat_map(|entry| match &entry.devices {
        Devices::All => &[],
        Devices::Indices(indices) => indices.as_slice(),
    });
    named.copied()
}

/// The first lost GPU that an entry names.
fn lost_and_named(entries: &[Entry], inventory: &Inventory) -> Option<u32> {
    let lost = |index: &u32| named(entries).any(|named| named == i64::from(*index));
    inventory.lost.iter().copied().find(lost)
}

/// Indices of the configuration that no GPU has.
fn indices_without_gpu(entries: &[Entry], inventory: &Inventory) -> Option<Warning> {
    let there: BTreeSet<i64> = inventory
        .gpus
        .iter()
        .map(|gpu| i64::from(gpu.index))
        .collect();
    let named: BTreeSet<i64> = named(entries).collect();
    let missing: Vec<i64> = named.difference(&there).copied().collect();
    (!missing.is_empty()).then(|| Warning {
        code: Code::IndexWithoutGpu,
        message: format!(
            "the configuration names GPU {}, which this machine does not have",
            list(&missing)
        ),
    })
}
