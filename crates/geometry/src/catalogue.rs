// SPDX-License-Identifier: Apache-2.0
//! Boards that are known without asking a driver.
//!
//! Those with MIG are tables generated from `data/mig-catalogue.json` (its README says where each
//! fact comes from); those without are a short table by hand. A [`Board`] is made on lookup, so
//! nothing is parsed or built at start.

#[rustfmt::skip]
mod generated;
mod rows;
#[cfg(test)]
mod tests;
mod without_mig;

use units::PciDevice;

use crate::board::Board;
use rows::BoardRow;

/// Every board that is known, MIG or not, in the order of the catalogue.
pub fn boards() -> Vec<Board> {
    rows().map(BoardRow::board).collect()
}

/// The board with that key (`H100-80GB-SXM`, `T4`; letter case does not matter).
pub fn by_key(key: &str) -> Option<Board> {
    first(|row| row.key.eq_ignore_ascii_case(key))
}

/// The board that a GPU with that PCI device id and that much memory (MiB) is.
///
/// One id may stand for boards of several sizes, so a board whose memory differs by more than an
/// eighth is not taken. A memory of 0 means unknown.
pub fn by_pci(device: PciDevice, memory_mib: u64) -> Option<Board> {
    rows()
        .filter(|row| row.pci_devices.contains(&device.0))
        .map(BoardRow::board)
        .find(|board| {
            let known = board.nominal_memory_mib();
            known == 0 || memory_mib == 0 || known.abs_diff(memory_mib) * 8 <= known
        })
}

/// The first board that NVML calls so (`NVIDIA A100-SXM4-40GB`; letter case does not matter).
/// `NVIDIA H100` is the name of two boards: prefer [`by_pci`] where there is an id.
pub fn by_product_name(name: &str) -> Option<Board> {
    first(|row| {
        row.product_names
            .iter()
            .any(|known| known.eq_ignore_ascii_case(name))
    })
}

/// The board that a person means: its key, or the product name with or without the brand, with
/// blanks or dashes (`A100-80GB`, `NVIDIA A30`, `tesla-t4`, `A100-SXM4-40GB`).
pub fn find(text: &str) -> Option<Board> {
    let plain = |text: &str| {
        let text = text.to_ascii_lowercase().replace(' ', "-");
        let unbranded = ["nvidia-", "tesla-"].map(|brand| text.strip_prefix(brand));
        unbranded
            .into_iter()
            .flatten()
            .next()
            .unwrap_or(&text)
            .to_owned()
    };
    by_key(text).or_else(|| {
        let wanted = plain(text);
        first(|row| row.product_names.iter().any(|name| plain(name) == wanted))
    })
}

fn rows() -> impl Iterator<Item = &'static BoardRow> {
    generated::BOARDS.iter().chain(without_mig::BOARDS)
}

fn first(is_it: impl Fn(&BoardRow) -> bool) -> Option<Board> {
    rows().find(|row| is_it(row)).map(BoardRow::board)
}
