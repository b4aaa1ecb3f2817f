// SPDX-License-Identifier: Apache-2.0
//! Carries plans out: GPUs side by side, the steps of each in order, everything read back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use geometry::inventory::Gpu;
use plan::{Action, Condition, GpuPlan, Step};
use units::Code;

use crate::error::Cause;
use crate::hardware::{GpuState, Hands, effect};
use crate::history::GpuRecord;
use crate::holders;
use crate::journal::{Journal, Record};

/// One GPU of a run.
struct Lane<'a> {
    plan: &'a GpuPlan,
    /// As it was last looked at.
    gpu: Mutex<Gpu>,
    /// What the plan makes of the GPU: before the first step, and after each.
    states: Vec<GpuState>,
}

impl<'a> Lane<'a> {
    fn new(plan: &'a GpuPlan, gpu: Gpu) -> Self {
        let change = gpu.board.mode_change;
        let mut states = vec![GpuRecord::of(plan).before];
        for step in &plan.steps {
            let next = states[states.len() - 1].after(&step.action, change);
            states.push(next);
        }
        Self {
            plan,
            gpu: Mutex::new(gpu),
            states,
        }
    }

    /// How many steps are done, if the plan explains what is there.
    fn position(&self, state: &GpuState) -> Option<usize> {
        self.states.iter().rposition(|known| known.is_same(state))
    }
}

/// A run of the plans of some GPUs, there and back.
pub(crate) struct Run<'a> {
    hands: &'a Hands<'a>,
    journal: &'a Journal<'a>,
    lanes: Vec<Lane<'a>>,
}

impl<'a> Run<'a> {
    /// A run of `plans` on `gpus`, which are the same GPUs as last read.
    pub(crate) fn new(
        hands: &'a Hands<'a>,
        journal: &'a Journal<'a>,
        plans: &'a [GpuPlan],
        gpus: Vec<Gpu>,
    ) -> Self {
        let lanes = plans.iter().zip(gpus);
        Self {
            hands,
            journal,
            lanes: lanes.map(|(plan, gpu)| Lane::new(plan, gpu)).collect(),
        }
    }

    /// Whether every GPU, as last read, is in a state that its plan explains.
    pub(crate) fn is_explained(&self) -> bool {
        self.lanes.iter().all(|lane| {
            let gpu = lane.gpu.lock().unwrap_or_else(PoisonError::into_inner);
            lane.position(&GpuState::of(&gpu)).is_some()
        })
    }

    /// Does every step that is not done yet. The first failure stops all GPUs at their next step.
    ///
    /// # Errors
    /// What failed first.
    pub(crate) fn forward(&self) -> Result<(), Cause> {
        let stop = AtomicBool::new(false);
        self.side_by_side(|lane, gpu| {
            let done = self.forward_lane(lane, gpu, &stop);
            stop.fetch_or(done.is_err(), Ordering::Relaxed);
            done
        })
    }

    /// Takes back every step that is done, on every GPU whatever happens to others.
    ///
    /// # Errors
    /// What failed first.
    pub(crate) fn back(&self) -> Result<(), Cause> {
        self.side_by_side(|lane, gpu| self.back_lane(lane, gpu))
    }

    /// Runs something for each GPU: for the first on this thread, for each other on its own.
    fn side_by_side(
        &self,
        work: impl Fn(&Lane<'a>, &mut Gpu) -> Result<(), Cause> + Sync,
    ) -> Result<(), Cause> {
        let first = Mutex::new(None);
        let guarded = |lane: &Lane<'a>| {
            let mut gpu = lane.gpu.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(cause) = work(lane, &mut gpu) {
                let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(cause);
            }
        };
        let mut lanes = self.lanes.iter();
        let own = lanes.next();
        thread::scope(|scope| {
            for lane in lanes {
                scope.spawn(|| guarded(lane));
            }
            own.map(&guarded);
        });
        let first = first.into_inner().unwrap_or_else(PoisonError::into_inner);
        first.map_or(Ok(()), Err)
    }

    fn forward_lane(&self, lane: &Lane<'_>, gpu: &mut Gpu, stop: &AtomicBool) -> Result<(), Cause> {
        let state = self.hands.look(gpu)?;
        let from = lane.position(&state);
        let from = from.ok_or_else(|| foreign(lane.plan, &state, &lane.states[0]))?;
        for (at, step) in lane.plan.steps.iter().enumerate().skip(from) {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            self.step(lane, gpu, at, step)?;
        }
        Ok(())
    }

    /// One step: nothing foreign, preconditions, the act, its check, the record.
    ///
    /// The look after one step is the look before the next if that creates: the driver refuses a
    /// place that is taken, and the look after it finds the rest. What takes something away is
    /// looked at anew: the driver uses ids again, and what goes by a stale one is lost.
    fn step(&self, lane: &Lane<'_>, gpu: &mut Gpu, at: usize, step: &Step) -> Result<(), Cause> {
        if !step.action.creates() {
            self.hands.look(gpu)?;
        }
        let state = GpuState::of(gpu);
        if !state.is_same(&lane.states[at]) {
            return Err(foreign(lane.plan, &state, &lane.states[at]));
        }
        if step.requires.contains(&Condition::Idle) {
            holders::idle(lane.plan, &self.hands.gpu(&gpu.uuid)?)?;
        }
        let mut needs = step.requires.iter().filter(|it| **it != Condition::Idle);
        if let Some(unmet) = needs.find(|condition| !condition.holds(gpu)) {
            let index = lane.plan.index;
            let message = format!("GPU {index} changed meanwhile: {unmet:?} does not hold");
            return Err(Cause::new(Code::ForeignChange, message));
        }
        let done = self.hands.act(gpu, &step.action);
        done.map_err(|cause| self.who_uses(gpu, cause))?;
        let state = self.hands.look(gpu)?;
        if !state.is_same(&lane.states[at + 1]) || !step.check.holds(gpu) {
            return Err(not_done(
                lane.plan,
                &step.action,
                &state,
                &lane.states[at + 1],
            ));
        }
        self.journal.record(&Record::Done {
            gpu: lane.plan.index,
            step: at,
        })
    }

    /// The cause with those who use the GPU, if the driver refused because of them.
    fn who_uses(&self, gpu: &Gpu, cause: Cause) -> Cause {
        let now = match cause.code {
            Code::InUse => self.hands.gpu(&gpu.uuid).ok(),
            _ => None,
        };
        match now.map(|now| holders::named(&now)).as_deref() {
            None | Some("") => cause,
            Some(who) => {
                let message = format!("{cause}; GPU {} is used by {who}", gpu.index);
                Cause::new(cause.code, message)
            }
        }
    }

    fn back_lane(&self, lane: &Lane<'_>, gpu: &mut Gpu) -> Result<(), Cause> {
        self.hands.look(gpu)?;
        for (at, step) in lane.plan.steps.iter().enumerate().rev() {
            if !step.check.holds(gpu) {
                continue;
            }
            for action in &step.undo {
                self.back_action(lane, gpu, action)?;
            }
            // Undoing goes on without records if they cannot be written: the header has the whole
            // plan, and whoever comes later reads from the hardware how far it came.
            let _ = self.journal.record(&Record::Undone {
                gpu: lane.plan.index,
                step: at,
            });
        }
        Ok(())
    }

    fn back_action(&self, lane: &Lane<'_>, gpu: &mut Gpu, action: &Action) -> Result<(), Cause> {
        let before = self.hands.look(gpu)?;
        if effect(action).holds(gpu) {
            return Ok(());
        }
        let expected = before.after(action, gpu.board.mode_change);
        self.hands.act(gpu, action)?;
        let state = self.hands.look(gpu)?;
        if state.is_same(&expected) {
            return Ok(());
        }
        Err(not_done(lane.plan, action, &state, &expected))
    }

    /// Reads everything back and compares it with the plans.
    ///
    /// # Errors
    /// The first GPU that is not as planned.
    pub(crate) fn read_back(&self) -> Result<(), Cause> {
        self.compare(|lane| GpuRecord::of(lane.plan).after)
    }

    /// Reads everything back and compares it with what was there before.
    ///
    /// # Errors
    /// The first GPU that is not as before.
    pub(crate) fn read_back_old(&self) -> Result<(), Cause> {
        self.compare(|lane| GpuRecord::of(lane.plan).before)
    }

    fn compare(&self, wanted: impl Fn(&Lane<'_>) -> GpuState) -> Result<(), Cause> {
        let inventory = self.hands.inventory()?;
        for lane in &self.lanes {
            let wanted = wanted(lane);
            let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == lane.plan.uuid);
            let state = gpu.map(GpuState::of);
            if !state.as_ref().is_some_and(|state| state.is_same(&wanted)) {
                return Err(differs(lane.plan, state.as_ref(), &wanted));
            }
        }
        Ok(())
    }
}

fn foreign(plan: &GpuPlan, found: &GpuState, expected: &GpuState) -> Cause {
    let message = format!(
        "something else changes GPU {} at the same time: expected was {expected}, found {found}",
        plan.index
    );
    Cause::new(Code::ForeignChange, message)
}

fn differs(plan: &GpuPlan, found: Option<&GpuState>, wanted: &GpuState) -> Cause {
    match found {
        Some(found) => foreign(plan, found, wanted),
        None => Cause::new(
            Code::DriverFailed,
            format!("GPU {} ({}) is not there any more", plan.index, plan.uuid),
        ),
    }
}

/// Why a step that the driver accepted is not done.
fn not_done(plan: &GpuPlan, action: &Action, found: &GpuState, expected: &GpuState) -> Cause {
    let index = plan.index;
    match action {
        Action::SetMode { .. } if found.mode.is_pending() => Cause::new(
            Code::ResetNeeded,
            format!(
                "GPU {index}: the driver accepted the change of the MIG mode, but it is {} until \
                 the GPU is reset",
                found.mode
            ),
        ),
        Action::Reset if found.mode.is_pending() => Cause::new(
            Code::RebootNeeded,
            format!(
                "GPU {index}: MIG is {} even after the reset; it takes a reboot of the machine",
                found.mode
            ),
        ),
        _ => foreign(plan, found, expected),
    }
}
