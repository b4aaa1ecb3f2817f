// SPDX-License-Identifier: Apache-2.0
//! The journal: the on-disk record of a change under way, as JSON lines.
//!
//! The first line is the header: the whole plan, with layouts and modes before and after. It is
//! written at once or not at all. Each further line is a [`Record`], appended and synced before
//! anything else happens on that GPU. Records tell people what happened and recovery which way
//! it was going; how far it came is always read from the hardware.

use jiff::Timestamp;
use plan::{GpuPlan, GpuWish, Wish};
use serde::{Deserialize, Serialize};

use crate::error::{Cause, Error};
use crate::history::GpuRecord;
use crate::state::{JOURNAL, StateDir, unusable};
use crate::storage::Storage;

/// Version of the lines in journal and history. Others are refused.
pub(crate) const FORMAT: u32 = 1;

/// What sort of act a change is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Kind {
    /// A wanted layout was applied.
    Apply,
    /// The layout before an earlier change was brought back.
    Rollback {
        /// Number of the change that was rolled back.
        of: u64,
    },
    /// A checkpoint was restored.
    Restore,
}

/// Who wants a change, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Intent {
    /// What sort of act.
    #[serde(flatten)]
    pub kind: Kind,
    /// What is wanted, in the user's words: the name of a configuration, a layout.
    pub text: String,
}

impl Intent {
    /// An intent to apply what `text` names.
    pub fn apply(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Apply,
            text: text.into(),
        }
    }

    /// An intent to restore the checkpoint that `text` names.
    pub fn restore(text: impl Into<String>) -> Self {
        Self {
            kind: Kind::Restore,
            text: text.into(),
        }
    }
}

/// The first line of a journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) format: u32,
    /// Number of the change, rising by one from change to change.
    pub(crate) id: u64,
    pub(crate) time: Timestamp,
    /// Which boot of the machine it was begun in.
    pub(crate) boot_id: String,
    #[serde(flatten)]
    pub(crate) intent: Intent,
    /// The plans of the GPUs that have steps.
    pub(crate) gpus: Vec<GpuPlan>,
}

/// Any further line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "record")]
pub(crate) enum Record {
    /// A step was done and its check read back.
    Done { gpu: u32, step: usize },
    /// From here on the change is undone.
    Undoing { cause: Cause },
    /// The effect of a step was taken back and that read back.
    Undone { gpu: u32, step: usize },
    /// The hardware was in no state of the plan; this plan leads to the recorded layout.
    Replanned { gpus: Vec<GpuPlan> },
}

/// A change that was begun and not ended, as it stands in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenChange {
    pub(crate) header: Header,
    /// Why it is being undone, if it is.
    pub(crate) undoing: Option<Cause>,
    /// Whether the last line is torn.
    torn: bool,
    /// The lines that are whole.
    text: String,
}

impl OpenChange {
    /// Number of the change.
    pub fn id(&self) -> u64 {
        self.header.id
    }

    /// When it was begun.
    pub fn time(&self) -> Timestamp {
        self.header.time
    }

    /// What it was to do.
    pub fn intent(&self) -> &Intent {
        &self.header.intent
    }

    /// What stopped it, if it was already being undone.
    pub fn undoing(&self) -> Option<&Cause> {
        self.undoing.as_ref()
    }

    /// What it changes, from and to.
    pub fn gpus(&self) -> Vec<GpuRecord> {
        self.header.gpus.iter().map(GpuRecord::of).collect()
    }

    /// Whether `wish` wants of these GPUs what the change was to make of them.
    pub fn leads_to(&self, wish: &Wish) -> bool {
        self.header.gpus.iter().all(|gpu| {
            let on = gpu.mode_after.will_be_on();
            wish.gpus
                .get(&gpu.index)
                .is_some_and(|wanted| match wanted {
                    GpuWish::Off => !on,
                    GpuWish::On => on,
                    GpuWish::Slices(slices) => {
                        let wanted = slices.iter().filter(|(_, count)| **count > 0);
                        on && gpu.after.slices().iter().eq(wanted)
                    }
                    GpuWish::Exact(layout) => on && gpu.after.is_like(layout),
                })
        })
    }

    /// The error of one who finds it where there must be none.
    pub(crate) fn in_the_way(&self) -> Error {
        Error::JournalOpen {
            id: self.header.id,
            text: self.header.intent.text.clone(),
            time: self.header.time,
        }
    }
}

/// The change that was begun and not ended, if there is one. Needs no lock.
///
/// # Errors
/// [`Error::State`] if it cannot be read, [`Error::Damaged`] if it cannot be understood.
pub fn open_change(storage: &dyn Storage) -> Result<Option<OpenChange>, Error> {
    let bytes = storage.read(JOURNAL);
    let bytes = bytes.map_err(|error| unusable(storage, "read", JOURNAL, error))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let open = parse(&bytes).map_err(|(line, reason)| Error::Damaged {
        place: storage.place(JOURNAL),
        line,
        reason,
    })?;
    let ended = crate::history::history(storage)?;
    // Killed between the entry in the history and the removal of the journal: it is closed.
    Ok(Some(open).filter(|open| ended.iter().all(|entry| entry.id != open.header.id)))
}

/// Reads a whole journal. A last line without its end is torn: it is left out. Else damage is told
/// with its line, from 1.
fn parse(bytes: &[u8]) -> Result<OpenChange, (usize, String)> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n');
    let text = &bytes[..whole.map_or(0, |end| end + 1)];
    let text =
        std::str::from_utf8(text).map_err(|error| (1, format!("it is not text: {error}")))?;
    let mut lines = text.lines();
    let first = lines.next().ok_or((1, "it has no whole line".into()))?;
    let header: Header = parse_line(first).map_err(|reason| (1, reason))?;
    let mut undoing = None;
    for (text, at) in lines.zip(2..) {
        if let Record::Undoing { cause } = parse_line(text).map_err(|reason| (at, reason))? {
            undoing.get_or_insert(cause);
        }
    }
    Ok(OpenChange {
        header,
        undoing,
        torn: text.len() < bytes.len(),
        text: text.to_owned(),
    })
}

/// One line of journal or history, after a look at its format version if it has one.
pub(crate) fn parse_line<T: for<'a> Deserialize<'a>>(text: &str) -> Result<T, String> {
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))?;
    match value.get("format").map(serde_json::Value::as_u64) {
        None => {}
        Some(Some(format)) if format == u64::from(FORMAT) => {}
        Some(format) => {
            return Err(format!(
                "it has format {}, this Slicewright knows format {FORMAT} only",
                format.unwrap_or_default()
            ));
        }
    }
    serde_json::from_value(value).map_err(|error| error.to_string())
}

/// The journal of the change under way, open for writing.
pub(crate) struct Journal<'a> {
    state: &'a StateDir,
    pub(crate) header: Header,
}

impl<'a> Journal<'a> {
    /// Begins a journal: after this the change counts as begun.
    ///
    /// # Errors
    /// [`Error::State`]; then no journal is left behind, as far as that can be written.
    pub(crate) fn begin(state: &'a StateDir, header: Header) -> Result<Self, Error> {
        let write = || {
            let text = serde_json::to_string(&header)?;
            state.storage().replace(JOURNAL, &format!("{text}\n"))
        };
        if let Err(error) = write() {
            // It may be there in spite of the error. If it cannot be removed either, the next
            // change finds it open, with the hardware in its old layout.
            let _ = state.storage().remove(JOURNAL);
            return Err(state.error("write", JOURNAL, error));
        }
        Ok(Self { state, header })
    }

    /// Goes on with an open journal, without its torn last line.
    ///
    /// # Errors
    /// [`Error::State`] if the torn line cannot be taken away.
    pub(crate) fn resume(state: &'a StateDir, open: OpenChange) -> Result<Self, Error> {
        if open.torn {
            let replaced = state.storage().replace(JOURNAL, &open.text);
            replaced.map_err(|error| state.error("write", JOURNAL, error))?;
        }
        Ok(Self {
            state,
            header: open.header,
        })
    }

    /// Adds a line; it is on the disk when this returns.
    ///
    /// # Errors
    /// As a cause to stop: nothing is done without a record.
    pub(crate) fn record(&self, record: &Record) -> Result<(), Cause> {
        let write = || {
            let text = serde_json::to_string(record)?;
            self.state.storage().append(JOURNAL, &text)
        };
        write().map_err(|error| self.state.error("write", JOURNAL, error).into())
    }
}
