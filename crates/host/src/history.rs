// SPDX-License-Identifier: Apache-2.0
//! The history: changes that were ended, as JSON lines, oldest first.

use jiff::Timestamp;
use plan::GpuPlan;
use serde::{Deserialize, Serialize};
use units::GpuUuid;

use crate::error::{Cause, Error};
use crate::hardware::GpuState;
use crate::journal::{FORMAT, Header, Intent, Kind, parse_line};
use crate::state::{HISTORY, JOURNAL, StateDir, unusable};
use crate::storage::Storage;

/// How many changes are kept: some hundred kilobytes on a machine with 8 GPUs.
const KEPT: usize = 100;

/// A change that was ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Version of this line.
    format: u32,
    /// Number of the change, rising by one from change to change.
    pub id: u64,
    /// When it was begun.
    pub time: Timestamp,
    /// Who wanted it, and why.
    #[serde(flatten)]
    pub intent: Intent,
    /// How it ended.
    pub ended: Ended,
    /// Why it was put back, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// Whether it was interrupted and ended by `recover`.
    pub recovered: bool,
    /// What it changed, by index.
    pub gpus: Vec<GpuRecord>,
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// In the new layout, read back.
    Done,
    /// In the old layout, read back.
    PutBack,
}

/// What a change is about on one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuRecord {
    /// NVML index at that time.
    pub index: u32,
    /// UUID.
    pub uuid: GpuUuid,
    /// Before it.
    pub before: GpuState,
    /// After it.
    pub after: GpuState,
}

impl GpuRecord {
    pub(crate) fn of(gpu: &GpuPlan) -> Self {
        Self {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            before: GpuState {
                mode: gpu.mode_before,
                layout: gpu.before.clone(),
            },
            after: GpuState {
                mode: gpu.mode_after,
                layout: gpu.after.clone(),
            },
        }
    }
}

impl Entry {
    /// The entry of a change that ended so.
    pub(crate) fn new(header: &Header, cause: Option<Cause>, recovered: bool) -> Self {
        Self {
            format: FORMAT,
            id: header.id,
            time: header.time,
            intent: header.intent.clone(),
            ended: match cause {
                None => Ended::Done,
                Some(_) => Ended::PutBack,
            },
            cause,
            recovered,
            gpus: header.gpus.iter().map(GpuRecord::of).collect(),
        }
    }
}

/// The changes that were ended, oldest first. Needs no lock.
///
/// # Errors
/// [`Error::State`] if it cannot be read, [`Error::Damaged`] if it cannot be understood.
pub fn history(storage: &dyn Storage) -> Result<Vec<Entry>, Error> {
    let bytes = storage.read(HISTORY);
    let bytes = bytes.map_err(|error| unusable(storage, "read", HISTORY, error))?;
    let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
    let entry = |(at, line)| {
        parse_line(line).map_err(|reason| Error::Damaged {
            place: storage.place(HISTORY),
            line: at + 1,
            reason,
        })
    };
    text.lines().enumerate().map(entry).collect()
}

/// The number of the next change.
pub(crate) fn next_id(entries: &[Entry]) -> u64 {
    entries.last().map_or(1, |entry| entry.id + 1)
}

/// Ends a change: its entry goes into the history, then its journal is removed. Killed between
/// the two it counts as ended, see [`crate::open_change`].
///
/// # Errors
/// [`Error::State`] if the history could not be written; then the change is not ended.
pub(crate) fn close(state: &StateDir, entry: Entry) -> Result<(), Error> {
    let storage = state.storage();
    let mut entries = history(storage)?;
    let id = entry.id;
    entries.push(entry);
    let from = entries.len().saturating_sub(KEPT);
    let mut text = String::new();
    for entry in &entries[from..] {
        let line = serde_json::to_string(entry)
            .map_err(|error| state.error("write", HISTORY, error.into()))?;
        text.push_str(&line);
        text.push('\n');
    }
    if let Err(error) = storage.replace(HISTORY, &text) {
        // Some errors come after the effect: what counts is what is there.
        let there = history(storage)?.iter().any(|entry| entry.id == id);
        if !there {
            return Err(state.error("write", HISTORY, error));
        }
    }
    // A journal that stays although its change is in the history is known to be closed.
    let _ = storage.remove(JOURNAL);
    Ok(())
}

/// The change that a rollback takes back: the last one that was done and has not been rolled
/// back. So rolling back twice goes two changes back, as undo does in an editor.
pub(crate) fn to_roll_back(entries: &[Entry]) -> Option<&Entry> {
    let mut done: Vec<&Entry> = Vec::new();
    for entry in entries.iter().filter(|entry| entry.ended == Ended::Done) {
        match entry.intent.kind {
            Kind::Apply | Kind::Restore => done.push(entry),
            Kind::Rollback { of } => done.retain(|earlier| earlier.id != of),
        }
    }
    done.pop()
}
