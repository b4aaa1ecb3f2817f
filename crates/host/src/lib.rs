// SPDX-License-Identifier: Apache-2.0
//! The safe change on one machine: journal, executor, read-back, history, lock.
//!
//! ```text
//!            plan                     every step done, read back
//!  (closed) ──────> journal open ────────────────────────────────> done ──> history
//!                      │   │ a step fails, a foreign change
//!            killed    │   └─────────────> undoing ──read back───> put back ──> history
//!                      v                      │ fails too
//!                   recover ── finish ──┐     v
//!                      └───── undo ─────┴─> stuck: the journal stays open for `recover`
//! ```
//!
//! A [`Host`] takes a plan, writes it into the journal before it touches anything, carries it out
//! with the GPUs side by side, reads everything back and moves the journal into the history. When
//! something goes wrong it puts the old layout back, to exact placements. After a crash
//! [`Host::recover`] compares the open journal with the hardware, never trusting it alone, and
//! ends in the old layout or the new one. `docs/safe-change.md` tells it for people.
//!
//! This crate knows no Kubernetes: the commands of a machine and the node agent both stand on it.
#![forbid(unsafe_code)]

mod error;
mod execute;
mod hardware;
mod history;
mod holders;
mod host;
mod journal;
mod open;
mod put_back;
mod recover;
mod rollback;
mod state;
mod storage;
mod watch;

pub use error::{Cause, Error};
pub use hardware::{Driver, GpuState};
pub use history::{Ended, Entry, GpuRecord, history};
pub use host::{Clock, Ending, Host, Outcome, SystemClock, boot_id};
pub use journal::{Intent, Kind, OpenChange, open_change};
pub use open::OpenDriver;
pub use recover::Toward;
pub use state::StateDir;
pub use storage::{Folder, Memory, Storage};
pub use watch::Watched;
