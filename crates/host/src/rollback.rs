// SPDX-License-Identifier: Apache-2.0
//! The way back to the layout before an earlier change.

use plan::{Policy, Wish};

use crate::error::Error;
use crate::history::to_roll_back;
use crate::host::{Host, Outcome};
use crate::journal::{Intent, Kind};
use crate::put_back::wish;
use crate::recover::Toward;

impl Host<'_> {
    /// What a rollback wishes: the exact placements and modes before the last change that was done
    /// and has not been rolled back. Rolling back twice goes two changes back, as undo does in an
    /// editor; a change that failed and was put back does not count, and GPUs that the change did
    /// not touch stay as they are.
    ///
    /// # Errors
    /// [`Error::NothingToRollBack`]; [`Error::GpuGone`] if a GPU of that change is not here any
    /// more; if history or driver cannot be read.
    pub fn rollback_wish(&self) -> Result<(Wish, Intent), Error> {
        let entries = self.history()?;
        let entry = to_roll_back(&entries).ok_or(Error::NothingToRollBack)?;
        let wish = wish(&self.inventory()?, entry.id, &entry.gpus, Toward::Old)?;
        let intent = Intent {
            kind: Kind::Rollback { of: entry.id },
            text: format!("rollback of change {} ({})", entry.id, entry.intent.text),
        };
        Ok((wish, intent))
    }

    /// Plans [`Host::rollback_wish`] and applies it.
    ///
    /// # Errors
    /// As those of [`Host::rollback_wish`], the planner, and [`Host::apply`].
    pub fn rollback(&self, policy: &Policy) -> Result<Outcome, Error> {
        let (wish, intent) = self.rollback_wish()?;
        let plan = plan::plan(&self.inventory()?, &wish, policy)?;
        self.apply(&plan, &intent)
    }
}
