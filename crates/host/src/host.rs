// SPDX-License-Identifier: Apache-2.0
//! One machine, and how a plan is applied to it.

use std::fs;
use std::io;

use geometry::inventory::{Gpu, Inventory};
use gpu::Reset;
use jiff::Timestamp;
use plan::{GpuPlan, Plan};
use units::Code;

use crate::error::{Cause, Error};
use crate::execute::Run;
use crate::hardware::{Driver, GpuState, Hands};
use crate::history::{Entry, GpuRecord, close, history, next_id};
use crate::holders::as_planned;
use crate::journal::{FORMAT, Header, Intent, Journal, Kind, open_change};
use crate::state::StateDir;

/// What time it is.
pub trait Clock: Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Which boot of this machine it is, as the kernel numbers them.
///
/// # Errors
/// If `/proc` cannot be read.
pub fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// One machine: its driver, its state folder, its clock.
pub struct Host<'a> {
    /// The driver.
    pub driver: &'a dyn Driver,
    /// What resets GPUs, after it has closed this process's handles on them: see
    /// [`gpu::ClosedReset`]. Other GPUs' steps may be under way meanwhile.
    pub reset: &'a dyn Reset,
    /// Journal and history.
    pub state: &'a StateDir,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Which boot of the machine it is: [`boot_id`], or that of a simulated world. Told to people
    /// only; what a reboot did is read from the hardware.
    pub boot_id: &'a str,
}

/// How a change ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Nothing was to be done, and nothing was touched.
    Nothing,
    /// The new layout is there, read back.
    Done,
    /// It failed, or was interrupted; the old layout is there again, read back.
    PutBack {
        /// What stopped it.
        cause: Cause,
    },
    /// It failed, and so did putting it back. The journal stays open.
    Stuck {
        /// What stopped the change.
        cause: Cause,
        /// What stopped putting it back.
        then: Cause,
        /// What to do, in a sentence.
        next_step: String,
    },
}

impl Ending {
    /// The stable code: `rolled-back`, `stuck`, or none if all is well.
    pub fn code(&self) -> Option<Code> {
        match self {
            Self::Nothing | Self::Done => None,
            Self::PutBack { .. } => Some(Code::RolledBack),
            Self::Stuck { .. } => Some(Code::Stuck),
        }
    }

    /// What happened, in a sentence or two; `None` if all is well.
    pub fn message(&self) -> Option<String> {
        match self {
            Self::Nothing | Self::Done => None,
            Self::PutBack { cause } => Some(format!(
                "{} [{}]; the old layout is there again, read back",
                cause.message, cause.code
            )),
            Self::Stuck {
                cause,
                then,
                next_step,
            } => Some(format!(
                "{} [{}]; putting the old layout back failed too: {} [{}]; {next_step}",
                cause.message, cause.code, then.message, then.code
            )),
        }
    }
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Its number in the history; `None` if nothing was to be done.
    pub id: Option<u64>,
    /// How it ended.
    pub ending: Ending,
    /// What it was to change, by index.
    pub gpus: Vec<GpuRecord>,
}

impl Host<'_> {
    /// Everything about every GPU.
    ///
    /// # Errors
    /// As the driver says.
    pub fn inventory(&self) -> Result<Inventory, Error> {
        Ok(self.driver.inventory()?)
    }

    /// The changes that were ended, oldest first.
    ///
    /// # Errors
    /// See [`history`].
    pub fn history(&self) -> Result<Vec<Entry>, Error> {
        history(self.state.storage())
    }

    /// Carries a plan out, or puts everything back. Success means that everything was read back
    /// and is as planned.
    ///
    /// # Errors
    /// If it is refused before anything is touched: a journal is open, the linter finds something,
    /// the hardware is not as the plan takes it, driver or state folder fail.
    pub fn apply(&self, plan: &Plan, intent: &Intent) -> Result<Outcome, Error> {
        if let Some(open) = open_change(self.state.storage())? {
            return Err(open.in_the_way());
        }
        let gpus: Vec<GpuPlan> = with_steps(plan);
        let takes_back = matches!(intent.kind, Kind::Rollback { .. });
        if gpus.is_empty() && !takes_back {
            return Ok(Outcome {
                id: None,
                ending: Ending::Nothing,
                gpus: Vec::new(),
            });
        }
        let hands = Hands::new(self.driver, self.reset);
        let inventory = hands.inventory()?;
        let read = current(plan, &gpus, &inventory)?;
        let header = Header {
            format: FORMAT,
            id: next_id(&self.history()?),
            time: self.clock.now(),
            boot_id: self.boot_id.to_owned(),
            intent: intent.clone(),
            gpus,
        };
        let journal = Journal::begin(self.state, header)?;
        let run = Run::new(&hands, &journal, &journal.header.gpus, read);
        let done = run
            .forward()
            .and_then(|()| run.read_back())
            .and_then(|()| self.close(&journal, None, false));
        match done {
            Ok(()) => Ok(outcome(&journal, Ending::Done)),
            Err(cause) => Ok(self.put_back(&hands, &journal, Some(run), cause, false)),
        }
    }

    /// Ends a change: moves its journal into the history.
    pub(crate) fn close(
        &self,
        journal: &Journal<'_>,
        put_back: Option<&Cause>,
        recovered: bool,
    ) -> Result<(), Cause> {
        let entry = Entry::new(&journal.header, put_back.cloned(), recovered);
        Ok(close(self.state, entry)?)
    }
}

fn with_steps(plan: &Plan) -> Vec<GpuPlan> {
    let gpus = plan.gpus.iter().filter(|gpu| !gpu.steps.is_empty());
    gpus.cloned().collect()
}

pub(crate) fn outcome(journal: &Journal<'_>, ending: Ending) -> Outcome {
    Outcome {
        id: Some(journal.header.id),
        ending,
        gpus: journal.header.gpus.iter().map(GpuRecord::of).collect(),
    }
}

/// The GPUs of `plans`, which are those of `plan` that have steps, as they are now: if they are as
/// the plan takes them for, and the linter finds nothing.
pub(crate) fn current(
    plan: &Plan,
    plans: &[GpuPlan],
    inventory: &Inventory,
) -> Result<Vec<Gpu>, Error> {
    let found = plans.iter().map(|plan| {
        let planned = GpuRecord::of(plan).before;
        let outdated = |found: String| Error::Outdated {
            index: plan.index,
            found,
            planned: planned.to_string(),
        };
        let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == plan.uuid);
        let gpu = gpu.ok_or_else(|| outdated("gone".into()))?;
        let state = GpuState::of(gpu);
        if !state.is_same(&planned) {
            return Err(outdated(state.to_string()));
        }
        as_planned(plan, gpu)?;
        Ok(gpu.clone())
    });
    let found = found.collect::<Result<Vec<_>, _>>()?;
    let findings = lint::check(inventory, plan);
    if findings.is_empty() {
        return Ok(found);
    }
    let findings = findings.iter().map(ToString::to_string).collect();
    Err(Error::Unsound { findings })
}
