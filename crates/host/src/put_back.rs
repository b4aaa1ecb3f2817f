// SPDX-License-Identifier: Apache-2.0
//! The way back of a change that failed or was interrupted.

use geometry::inventory::Inventory;
use plan::{GpuWish, Policy, Wish};
use units::Code;

use crate::error::{Cause, Error};
use crate::execute::Run;
use crate::hardware::Hands;
use crate::history::GpuRecord;
use crate::host::{Ending, Host, Outcome, current, outcome};
use crate::journal::{Journal, Record};
use crate::recover::Toward;

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
            None => self.lead(hands, journal, Toward::Old),
            Some(run) => run
                .back()
                .and_then(|()| run.read_back_old())
                .or_else(|then| {
                    // What others do at the same time is not fought.
                    let foreign = [&cause, &then].map(|c| c.code == Code::ForeignChange);
                    if foreign.contains(&true) {
                        return Err(then);
                    }
                    self.lead(hands, journal, Toward::Old)
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
        toward: Toward,
    ) -> Result<(), Cause> {
        let inventory = hands.inventory()?;
        let records: Vec<GpuRecord> = journal.header.gpus.iter().map(GpuRecord::of).collect();
        let wish = wish(&inventory, journal.header.id, &records, toward)?;
        // What was to stay pending was not to be reset.
        let pending = records.iter().any(|record| record.after.mode.is_pending());
        let policy = Policy {
            reset: toward == Toward::Old || !pending,
            ..Policy::default()
        };
        let plan = plan::plan(&inventory, &wish, &policy)?;
        // Those without steps too: all are read back.
        let read = current(&plan, &plan.gpus, &inventory)?;
        journal.record(&Record::Replanned {
            gpus: plan.gpus.clone(),
        })?;
        let run = Run::new(hands, journal, &plan.gpus, read);
        run.forward().and_then(|()| run.read_back())
    }
}

/// The wish for one end of change `id`; GPUs are found by UUID. An old mode that was pending is
/// wished as it was in force, a new one as it was asked for.
///
/// # Errors
/// [`Error::GpuGone`] if one is not in the machine any more; [`Code::GpuLost`] if it fell off the bus.
pub(crate) fn wish(
    inventory: &Inventory,
    id: u64,
    records: &[GpuRecord],
    toward: Toward,
) -> Result<Wish, Error> {
    let mut wish = Wish::default();
    for record in records {
        let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == record.uuid);
        let gpu = gpu.ok_or_else(|| gone(inventory, record, id))?;
        let (on, layout) = match toward {
            Toward::Old => (record.before.mode.is_on(), &record.before.layout),
            Toward::New => (record.after.mode.will_be_on(), &record.after.layout),
        };
        let wanted = if on {
            GpuWish::Exact(layout.clone())
        } else {
            GpuWish::Off
        };
        wish.gpus.insert(gpu.index, wanted);
    }
    Ok(wish)
}

/// A GPU that the driver no longer lists was lost, if any was: a lost GPU tells no UUID.
fn gone(inventory: &Inventory, record: &GpuRecord, id: u64) -> Error {
    if inventory.lost.is_empty() {
        return Error::GpuGone {
            gpu: record.uuid.clone(),
            id,
        };
    }
    let lost: Vec<String> = inventory.lost.iter().map(ToString::to_string).collect();
    Error::Refused(plan::Refusal::new(
        Code::GpuLost,
        format!(
            "{}, of which change {id} is, cannot be reached: GPU {} fell off the bus",
            record.uuid,
            lost.join(", ")
        ),
    ))
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
        Code::GpuLost | Code::RebootNeeded => "reboot the machine",
        Code::NoPermission => "become root",
        _ => "look at the driver's log (`dmesg`, `nvidia-smi`)",
    };
    format!("{first}, then run `slicewright host recover`")
}
