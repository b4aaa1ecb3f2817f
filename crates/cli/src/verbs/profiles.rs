// SPDX-License-Identifier: Apache-2.0
//! `slicewright host profiles`: what each board of this machine can be cut into.

use std::collections::BTreeMap;

use geometry::inventory::Inventory;
use geometry::{Board, Confidence, Engines, Profile};
use serde::Serialize;
use units::{Placement, ProfileName};

use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;

/// Prints the boards with their profiles.
///
/// # Errors
/// If it cannot be written.
pub fn print(inventory: &Inventory, output: &mut Output<'_>) -> Result<(), Failure> {
    let boards = boards(inventory);
    if output.is_machine() {
        let boards = boards.iter().map(BoardReport::of).collect();
        return output.machine(&ProfilesReport {
            version: "v1",
            boards,
        });
    }
    for (number, (gpus, board)) in boards.iter().enumerate() {
        let gap = if number > 0 { "\n" } else { "" };
        output.text(format_args!("{gap}{} (GPU {})\n", board.key, ranges(gpus)))?;
        match &board.unknown {
            _ if !board.has_mig() => output.text("  no MIG\n")?,
            Some(reason) => {
                output.text(format_args!("  its placements are not known: {reason}\n"))?
            }
            None => output.text(table(board))?,
        }
    }
    Ok(())
}

/// The different boards, each with the GPUs that are of it, by first GPU.
fn boards(inventory: &Inventory) -> Vec<(Vec<u32>, &Board)> {
    let mut boards: Vec<(Vec<u32>, &Board)> = Vec::new();
    for gpu in &inventory.gpus {
        match boards.iter_mut().find(|(_, known)| **known == gpu.board) {
            Some((gpus, _)) => gpus.push(gpu.index),
            None => boards.push((vec![gpu.index], &gpu.board)),
        }
    }
    boards
}

fn table(board: &Board) -> Table {
    let header = [
        "PROFILE",
        "ID",
        "MAX",
        "SLICES",
        "SMS",
        "MIB",
        "PLACEMENTS",
        "ENGINES",
        "FROM",
    ];
    let mut table = Table::new(&header).indented(2);
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| "?".to_owned());
    for profile in &board.profiles {
        table.row([
            profile.name.to_string(),
            profile.driver_id.to_string(),
            profile.max_instances.to_string(),
            profile.slices.to_string(),
            or_unknown(profile.sm_count.map(|count| count.to_string())),
            or_unknown(profile.memory_mib.map(|mib| mib.to_string())),
            placements(profile),
            engines(profile.engines),
            confidence(profile.confidence).to_owned(),
        ]);
    }
    table
}

/// `0,2,4:2`: the starts, and the size that all share.
fn placements(profile: &Profile) -> String {
    let mut starts: BTreeMap<u8, Vec<String>> = BTreeMap::new();
    for placement in &profile.placements {
        starts
            .entry(placement.size)
            .or_default()
            .push(placement.start.to_string());
    }
    let parts = starts
        .iter()
        .map(|(size, starts)| format!("{}:{size}", starts.join(",")));
    parts.collect::<Vec<_>>().join(" ")
}

/// `1CE 2DEC`, with the names of `nvidia-smi mig -lgip`; `-` for none.
fn engines(engines: Engines) -> String {
    let parts = [
        (engines.copy, "CE"),
        (engines.decoders, "DEC"),
        (engines.encoders, "ENC"),
        (engines.jpeg, "JPEG"),
        (engines.ofa, "OFA"),
    ];
    let present = parts.iter().filter(|(count, _)| *count > 0);
    let texts: Vec<String> = present
        .map(|(count, name)| format!("{count}{name}"))
        .collect();
    if texts.is_empty() {
        "-".to_owned()
    } else {
        texts.join(" ")
    }
}

fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::Driver => "driver",
        Confidence::Captured => "captured",
        Confidence::Documented => "documented",
        Confidence::Derived => "derived",
    }
}

/// `0-3,7` of rising numbers.
pub fn ranges(numbers: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &number in numbers {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => runs.push((number, number)),
        }
    }
    let run = |&(first, last): &(u32, u32)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(",")
}

/// What programs get. Version 1.
#[derive(Serialize)]
struct ProfilesReport<'a> {
    version: &'static str,
    boards: Vec<BoardReport<'a>>,
}

#[derive(Serialize)]
struct BoardReport<'a> {
    board: &'a str,
    gpus: &'a [u32],
    placement_units: u8,
    compute_slices: u8,
    profiles: Vec<ProfileReport<'a>>,
    unknown: Option<&'a str>,
}

#[derive(Serialize)]
struct ProfileReport<'a> {
    profile: &'a ProfileName,
    id: u32,
    max: u8,
    slices: u8,
    sms: Option<u16>,
    memory_mib: Option<u64>,
    placements: &'a [Placement],
    engines: Engines,
    from: Confidence,
}

impl<'a> BoardReport<'a> {
    fn of((gpus, board): &'a (Vec<u32>, &Board)) -> Self {
        Self {
            board: &board.key,
            gpus,
            placement_units: board.placement_units,
            compute_slices: board.compute_slices,
            profiles: board.profiles.iter().map(ProfileReport::of).collect(),
            unknown: board.unknown.as_deref(),
        }
    }
}

impl<'a> ProfileReport<'a> {
    fn of(profile: &'a Profile) -> Self {
        Self {
            profile: &profile.name,
            id: profile.driver_id,
            max: profile.max_instances,
            slices: profile.slices,
            sms: profile.sm_count,
            memory_mib: profile.memory_mib,
            placements: &profile.placements,
            engines: profile.engines,
            from: profile.confidence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_a_row_become_a_range() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3,7,9-10");
        assert_eq!(ranges(&[]), "");
    }
}
