// SPDX-License-Identifier: Apache-2.0
//! Boards without MIG, which share machines with those that have it.
//!
//! Names, memory and compute capability: recorded label vectors of gpu-feature-discovery; memory
//! of the L40S: public `nvidia-smi` captures (46068 MiB; the vectors' driver is a simulated one).
//! PCI ids: the pci.ids database; the display adapter of a DGX Station has none here.

use super::rows::BoardRow;

pub(super) const BOARDS: &[BoardRow] = &[
    row(
        "T4",
        &["Tesla T4", "NVIDIA T4"],
        &[0x1EB8_10DE],
        "Turing",
        (7, 5),
        15360,
    ),
    row(
        "V100-SXM2-32GB",
        &["Tesla V100-SXM2-32GB"],
        &[0x1DB5_10DE],
        "Volta",
        (7, 0),
        32768,
    ),
    row(
        "L40S",
        &["NVIDIA L40S"],
        &[0x26B9_10DE],
        "Ada Lovelace",
        (8, 9),
        46068,
    ),
    row(
        "DGX-Display",
        &["NVIDIA DGX Display"],
        &[],
        "Turing",
        (7, 5),
        4096,
    ),
];

const fn row(
    key: &'static str,
    product_names: &'static [&'static str],
    pci_devices: &'static [u32],
    architecture: &'static str,
    compute_capability: (u8, u8),
    memory_mib: u64,
) -> BoardRow {
    BoardRow {
        key,
        product_names,
        pci_devices,
        architecture,
        compute_capability: Some(compute_capability),
        memory_mib: Some(memory_mib),
        compute_slices: 0,
        placement_units: 0,
        needs_reset: false,
        engines: [0; 5],
        unknown: None,
        profiles: &[],
    }
}
