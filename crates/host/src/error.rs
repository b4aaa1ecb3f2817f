// SPDX-License-Identifier: Apache-2.0
//! Why a change was refused, and why one that was begun did not end as wanted.

use std::fmt;
use std::io;

use gpu::NvmlCode;
use serde::{Deserialize, Serialize};
use units::Code;

/// What stopped a change that was begun. Kept in journal and history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Stable code of the cause itself: `in-use`, `driver-failed`, ...
    pub code: Code,
    /// Object and cause, in a sentence or two.
    pub message: String,
}

impl Cause {
    /// A cause in words.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<gpu::Error> for Cause {
    fn from(error: gpu::Error) -> Self {
        Self::new(code_of(&error), error.to_string())
    }
}

impl From<plan::Refusal> for Cause {
    fn from(refusal: plan::Refusal) -> Self {
        Self::new(refusal.code, refusal.message)
    }
}

/// The stable code of what a driver answered.
fn code_of(error: &gpu::Error) -> Code {
    match error {
        gpu::Error::NoDriver { .. } => Code::DriverMissing,
        gpu::Error::Reset { .. } => Code::ResetNeeded,
        gpu::Error::Nonsense { .. } => Code::DriverFailed,
        gpu::Error::Call { code, .. } => match *code {
            NvmlCode::IN_USE => Code::InUse,
            NvmlCode::NO_PERMISSION => Code::NoPermission,
            NvmlCode::RESET_REQUIRED => Code::ResetNeeded,
            _ => Code::DriverFailed,
        },
    }
}

/// Why nothing was done. No GPU has been touched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The driver could not be read.
    #[error(transparent)]
    ReadGpus(#[from] gpu::Error),
    /// The state folder could not be read or written.
    #[error("cannot {operation} {place}: {source}")]
    State {
        /// What was attempted: `write`, `lock`, ...
        operation: &'static str,
        /// Which file.
        place: String,
        /// What the system said.
        source: io::Error,
    },
    /// Another process has the state folder.
    #[error(
        "another Slicewright{} is at work on this machine (it holds {place}); wait for it to end",
        pid.map(|pid| format!(", process {pid},")).unwrap_or_default()
    )]
    Locked {
        /// The lock file.
        place: String,
        /// Who holds it, where it could be read.
        pid: Option<u32>,
    },
    /// A change was begun and not ended.
    #[error(
        "change {id} ({text}), begun {time}, was not ended: \
         run `slicewright host recover` first, it puts the old layout back"
    )]
    JournalOpen {
        /// Number of the change.
        id: u64,
        /// What it was to do.
        text: String,
        /// When it was begun.
        time: jiff::Timestamp,
    },
    /// Journal or history cannot be understood.
    #[error(
        "{place}, line {line}: {reason}; compare `slicewright host list` with what you want, \
         move the file away, and apply the wanted layout again"
    )]
    Damaged {
        /// Which file.
        place: String,
        /// Line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// The linter found the plan to be wrong.
    #[error("the plan does not hold together, nothing was touched (please report this): {}", findings.join("; "))]
    Unsound {
        /// What was found.
        findings: Vec<String>,
    },
    /// The hardware changed since the plan was made.
    #[error(
        "GPU {index} changed since the plan was made: it is {found}, the plan begins with {planned}; plan again"
    )]
    Outdated {
        /// NVML index.
        index: u32,
        /// What the hardware is.
        found: String,
        /// What the plan takes for granted.
        planned: String,
    },
    /// Somebody came to use what the plan takes away.
    #[error(
        "GPU {index}: {holders} came to use what the change takes away; end it or wait, and plan again"
    )]
    InUse {
        /// NVML index.
        index: u32,
        /// Who.
        holders: String,
    },
    /// A recorded layout is of a GPU that is not there.
    #[error("{gpu}, of which change {id} is, is not in this machine")]
    GpuGone {
        /// UUID of the GPU.
        gpu: units::GpuUuid,
        /// Number of the change.
        id: u64,
    },
    /// Nothing can be rolled back.
    #[error(
        "no change is recorded that could be rolled back; `slicewright host history` lists all"
    )]
    NothingToRollBack,
    /// The planner refused.
    #[error(transparent)]
    Refused(#[from] plan::Refusal),
}

impl Error {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            Self::ReadGpus(error) => code_of(error),
            Self::State { .. } => Code::StateUnwritable,
            Self::Locked { .. } => Code::Locked,
            Self::JournalOpen { .. } => Code::JournalOpen,
            Self::Damaged { .. } => Code::JournalDamaged,
            Self::Unsound { .. } => Code::PlanUnsound,
            Self::Outdated { .. } => Code::PlanOutdated,
            Self::InUse { .. } => Code::InUse,
            Self::GpuGone { .. } => Code::CheckpointMismatch,
            Self::NothingToRollBack => Code::NothingToRollBack,
            Self::Refused(refusal) => refusal.code,
        }
    }
}

impl From<Error> for Cause {
    fn from(error: Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}
