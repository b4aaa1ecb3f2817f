// SPDX-License-Identifier: Apache-2.0
//! `slicewright host history`.

use host::{Ended, Entry, Kind};
use serde::Serialize;

use super::plan_text::grouped;
use super::profiles::ranges;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::output::Output;
use crate::table::Table;

/// What programs get. Version 1.
#[derive(Serialize)]
struct HistoryReport {
    version: &'static str,
    open: Option<u64>,
    changes: Vec<Entry>,
}

/// Prints the changes, oldest first.
///
/// # Errors
/// If they cannot be read.
pub fn run(machine: &Machine, output: &mut Output<'_>) -> Result<u8, Failure> {
    let changes = host::history(machine.storage())?;
    let open = host::open_change(machine.storage())?;
    if output.is_machine() {
        let open = open.map(|open| open.id());
        output.machine(&HistoryReport {
            version: "v1",
            open,
            changes,
        })?;
        return Ok(0);
    }
    let mut table = Table::new(&["CHANGE", "BEGUN", "WHAT", "GPU", "ENDED"]);
    for entry in &changes {
        let gpus: Vec<u32> = entry.gpus.iter().map(|gpu| gpu.index).collect();
        let what = what(entry.intent.kind, &entry.intent.text);
        table.row([
            entry.id.to_string(),
            format!("{:.0}", entry.time),
            what,
            ranges(&gpus),
            ended(entry),
        ]);
    }
    if let Some(open) = &open {
        let gpus: Vec<u32> = open.gpus().iter().map(|gpu| gpu.index).collect();
        let intent = open.intent();
        let what = what(intent.kind, &intent.text);
        let open_now = "not yet: `slicewright host recover` ends it".to_owned();
        table.row([
            open.id().to_string(),
            format!("{:.0}", open.time()),
            what,
            ranges(&gpus),
            open_now,
        ]);
    }
    if table.is_empty() {
        output.text("Nothing was changed here yet.\n")?;
        return Ok(0);
    }
    output.text(table)?;
    if output.is_wide() {
        for entry in &changes {
            let lines = entry
                .gpus
                .iter()
                .map(|gpu| (gpu.index, format!("{}\n-> {}", gpu.before, gpu.after)));
            output.text(format_args!("\nChange {}\n{}", entry.id, grouped(lines)))?;
        }
    }
    Ok(0)
}

fn what(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Apply => format!("apply {text}"),
        Kind::Restore => format!("restore {text}"),
        Kind::Rollback { .. } => text.to_owned(),
    }
}

fn ended(entry: &Entry) -> String {
    let recovered = if entry.recovered { " by recover" } else { "" };
    let cause = entry
        .cause
        .as_ref()
        .map(|cause| format!(": {}", cause.message));
    match entry.ended {
        Ended::Done => format!("done{recovered}"),
        Ended::PutBack => format!("put back{recovered}{}", cause.unwrap_or_default()),
    }
}
