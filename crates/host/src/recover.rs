// SPDX-License-Identifier: Apache-2.0
//! What is done about a change that was begun and not ended.

use units::Code;

use crate::error::{Cause, Error};
use crate::execute::Run;
use crate::hardware::Hands;
use crate::host::{Ending, Host, Outcome, outcome};
use crate::journal::{Journal, OpenChange, open_change};
use crate::state::JOURNAL;

/// Where an interrupted change shall end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toward {
    /// In the new layout, if that can be: the change is still wanted. A change that was already
    /// being undone goes on being undone.
    New,
    /// In the old layout.
    Old,
}

impl Host<'_> {
    /// Ends the change that was begun and not ended; `None` if there is none.
    ///
    /// The journal is compared with the hardware, never trusted alone. If the plan explains what
    /// is there, its remaining steps are done, or those that are done are taken back. Else (the
    /// machine was rebooted, somebody changed something) a new way to the recorded layout is
    /// planned.
    ///
    /// # Errors
    /// If nothing could be tried: journal or driver cannot be read. What was tried and failed is
    /// an [`Outcome`].
    pub fn recover(&self, toward: Toward) -> Result<Option<Outcome>, Error> {
        let Some(open) = open_change(self.state.storage())? else {
            self.remove_closed_journal()?;
            return Ok(None);
        };
        let hands = Hands::new(self.driver, self.reset);
        let inventory = hands.inventory()?;
        let new = toward == Toward::New && open.undoing().is_none();
        let cause = self.interruption(&open);
        let journal = Journal::resume(self.state, open)?;
        let plans = &journal.header.gpus;
        let find = |plan: &plan::GpuPlan| inventory.gpus.iter().find(|gpu| gpu.uuid == plan.uuid);
        let found: Option<Vec<_>> = plans.iter().map(|plan| find(plan).cloned()).collect();
        let run = found.map(|found| Run::new(&hands, &journal, plans, found));
        let run = run.filter(Run::is_explained);
        if !new {
            return Ok(Some(self.put_back(&hands, &journal, run, cause, true)));
        }
        let done = match &run {
            Some(run) => run.forward().and_then(|()| run.read_back()),
            None => self.lead(&hands, &journal, Toward::New),
        };
        let ended = done.and_then(|()| self.close(&journal, None, true));
        Ok(Some(match ended {
            Ok(()) => outcome(&journal, Ending::Done),
            Err(cause) => self.put_back(&hands, &journal, run, cause, true),
        }))
    }

    /// A journal whose change is in the history was closed, but for its removal.
    fn remove_closed_journal(&self) -> Result<(), Error> {
        let removed = self.state.storage().remove(JOURNAL);
        removed.map_err(|error| self.state.error("remove", JOURNAL, error))
    }

    /// What the history tells of a change that was interrupted and put back.
    fn interruption(&self, open: &OpenChange) -> Cause {
        if let Some(cause) = open.undoing() {
            return cause.clone();
        }
        let rebooted = open.header.boot_id != self.boot_id;
        let how = if rebooted {
            "by a reboot of the machine"
        } else {
            "in the middle"
        };
        let message = format!("change {} was interrupted {how}", open.id());
        Cause::new(Code::JournalOpen, message)
    }
}
