// SPDX-License-Identifier: Apache-2.0
//! The way back of a change that failed or was interrupted.

use geometry::inventory::Inventory;
use plan::{Policy, Wish};
use units::{Code, GpuUuid};

use crate::error::{Cause, Error};
use crate::execute::{Run, wish_of};
use crate::hardware::{GpuState, Hands};
use crate::history::GpuRecord;
use crate::host::{Ending, Host, Outcome, current, outcome, with_steps};
use crate::journal::{Journal, Record};

impl Host<'_> {
    /// Brings the old layout back and ends the change, or tells why that cannot be. `run` is the
    /// run whose steps are taken back; without one, what is there is not explained by the plan,
    /// and a new way to the old layout is planned.
    pub(crate) fn put_back(
        &self,
        hands: &Hands<'_>,
        journal: &Journal<'_>,
        run: Option<Run<'_>>,
        cause: Cause,
        recovered: bool,
    ) -> Outcome {
        // If it cannot be written, the journal tells no direction, and either is right.
        let _ = journal.record(&Record::Undoing {
            cause: cause.clone(),
        });
        let taken_back = match run {
            None => self.lead(hands, journal, |record| record.before),
            Some(run) => run
                .back()
                .and_then(|()| run.read_back_old())
                .or_else(|then| {
                    // What others do at the same time is not fought.
                    let foreign = [&cause, &then].map(|c| c.code == Code::ForeignChange);
                    if foreign.contains(&true) {
                        return Err(then);
                    }
                    self.lead(hands, journal, |record| record.before)
                }),
        };
        let ended = taken_back.and_then(|()| self.close(journal, Some(&cause), recovered));
        let ending = match ended {
            Ok(()) => Ending::PutBack { cause },
            Err(then) => Ending::Stuck {
                next_step: next_step(&then),
                cause,
                then,
            },
        };
        outcome(journal, ending)
    }

    /// Plans a new way from whatever is there to recorded states and goes it.
    pub(crate) fn lead(
        &self,
        hands: &Hands<'_>,
        journal: &Journal<'_>,
        to: impl Fn(GpuRecord) -> GpuState,
    ) -> Result<(), Cause> {
        let inventory = hands.inventory()?;
        let records = journal.header.gpus.iter().map(GpuRecord::of);
        let targets = records.map(|record| (record.uuid.clone(), to(record)));
        let wish = wish(&inventory, journal.header.id, targets)?;
        let plan = plan::plan(&inventory, &wish, &Policy::default())?;
        let gpus = with_steps(&plan);
        let read = current(&plan, &gpus, &inventory)?;
        journal.record(&Record::Replanned { gpus: gpus.clone() })?;
        let run = Run::new(hands, journal, &gpus, read);
        run.forward().and_then(|()| run.read_back())
    }
}

/// The wish for recorded states of GPUs, which are found by UUID.
///
/// # Errors
/// [`Error::GpuGone`] if one is not in the machine any more.
pub(crate) fn wish(
    inventory: &Inventory,
    id: u64,
    targets: impl IntoIterator<Item = (GpuUuid, GpuState)>,
) -> Result<Wish, Error> {
    let mut wish = Wish::default();
    for (uuid, state) in targets {
        let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == uuid);
        let Some(gpu) = gpu else {
            return Err(Error::GpuGone { gpu: uuid, id });
        };
        wish.gpus.insert(gpu.index, wish_of(&state));
    }
    Ok(wish)
}

/// What a person does about a change that is stuck.
fn next_step(then: &Cause) -> String {
    let first = match then.code {
        Code::InUse => "end what uses the GPU",
        Code::ForeignChange => {
            "stop what else changes the GPUs and look at `slicewright host list`"
        }
        Code::StateUnwritable => "make the state folder writable",
        Code::ResetNeeded => "stop what uses the GPU or its peers, so that it can be reset",
        Code::RebootNeeded => "reboot the machine",
        Code::NoPermission => "become root",
        _ => "look at the driver's log (`dmesg`, `nvidia-smi`)",
    };
    format!("{first}, then run `slicewright host recover`")
}
