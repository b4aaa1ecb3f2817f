// SPDX-License-Identifier: Apache-2.0
//! Boards that are known without asking a driver.

use units::PciDevice;

use crate::board::Board;

/// Every board that is known, MIG or not, by key.
pub fn boards() -> Vec<Board> {
    Vec::new()
}

/// The board with that key (`H100-80GB-SXM`; letter case does not matter).
pub fn by_key(key: &str) -> Option<Board> {
    boards()
        .into_iter()
        .find(|board| board.key.eq_ignore_ascii_case(key))
}

/// The board that a GPU with that PCI device id and that much memory (MiB) is.
pub fn by_pci(device: PciDevice, memory_mib: u64) -> Option<Board> {
    let _ = memory_mib;
    boards()
        .into_iter()
        .find(|board| board.pci_devices.contains(&device))
}
