// SPDX-License-Identifier: Apache-2.0
//! Replays a plan on the model, cuts it off everywhere, goes on and takes it back from there.

use std::collections::BTreeSet;

use geometry::ModeChange;
use geometry::inventory::{Gpu, Holder};
use plan::{GpuPlan, Step};

use crate::model::{Model, State};

/// Tells everything that goes wrong.
pub(crate) fn check(gpu: &Gpu, plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    let named: BTreeSet<&Holder> = plan.holders.iter().collect();
    let slices = gpu.instances.iter().flat_map(|i| &i.compute);
    let mut holders = gpu.holders.iter().chain(slices.flat_map(|s| &s.holders));
    let replay = Replay {
        model: Model::new(gpu),
        change: gpu.board.mode_change,
        before: State::of(gpu, holders.any(|holder| !named.contains(holder))),
        steps: &plan.steps,
    };
    let Some(states) = replay.forward(add) else {
        return;
    };
    replay.checks(&states, add);
    replay.back(&states, add);
    if let Some(last) = states.last() {
        if last.mode() != plan.mode_after {
            let mode = last.mode();
            add(
                None,
                format!("its mode ends {mode}, not {}", plan.mode_after),
            );
        }
        if !last.has(&plan.after) {
            add(None, "its steps do not lead to the layout after".into());
        }
    }
}

struct Replay<'a> {
    model: Model<'a>,
    change: ModeChange,
    before: State,
    steps: &'a [Step],
}

impl Replay<'_> {
    /// The state before the first step and after each one; `None` if one cannot be done.
    fn forward(&self, add: &mut impl FnMut(Option<usize>, String)) -> Option<Vec<State>> {
        let mut states = vec![self.before.clone()];
        let mut state = self.before.clone();
        for (number, step) in self.steps.iter().enumerate() {
            for condition in &step.requires {
                if !state.holds(condition) {
                    add(
                        Some(number),
                        format!("it requires {condition:?}, which does not hold"),
                    );
                }
            }
            if let Err(why) = self.model.apply(&mut state, &step.action) {
                add(Some(number), why);
                return None;
            }
            states.push(state.clone());
        }
        Some(states)
    }

    /// After the first k steps exactly their checks hold: so a plan that was cut off goes on with
    /// the steps whose check does not hold.
    fn checks(&self, states: &[State], add: &mut impl FnMut(Option<usize>, String)) {
        for (number, step) in self.steps.iter().enumerate() {
            let wrong = states
                .iter()
                .enumerate()
                .find(|(done, state)| state.holds(&step.check) != (number < *done));
            if let Some((done, _)) = wrong {
                let holds = if number < done {
                    "does not hold"
                } else {
                    "holds"
                };
                let message = format!("its check {holds} after {done} steps");
                add(Some(number), message);
            }
        }
    }

    /// From after every step, and from the middle of every undo, the way back ends as before.
    fn back(&self, states: &[State], add: &mut impl FnMut(Option<usize>, String)) {
        for (done, state) in states.iter().enumerate() {
            let Some(last) = done.checked_sub(1) else {
                continue;
            };
            match self.undone(state, done) {
                Err(why) => add(Some(last), format!("taking it back fails: {why}")),
                Ok(end) if !self.is_before(&end) => {
                    add(Some(last), "taking it back does not end as before".into());
                }
                Ok(_) => self.back_anew(state, done, add),
            }
        }
    }

    /// Cut off within the last step's undo, the way back is begun anew.
    fn back_anew(&self, state: &State, done: usize, add: &mut impl FnMut(Option<usize>, String)) {
        let Some(step) = done.checked_sub(1).and_then(|last| self.steps.get(last)) else {
            return;
        };
        let mut state = state.clone();
        let inner = step.undo.len().saturating_sub(1);
        for action in step.undo.iter().take(inner) {
            let again = self
                .model
                .apply(&mut state, action)
                .and_then(|()| self.undone(&state, done));
            if !again.is_ok_and(|end| end.same_in_force(&self.before)) {
                let message = "its undo cannot be begun anew when cut off".into();
                add(Some(done - 1), message);
                return;
            }
        }
    }

    /// Takes back, last first, those of the first `done` steps whose check holds.
    fn undone(&self, state: &State, done: usize) -> Result<State, String> {
        let mut state = state.clone();
        for step in self.steps.iter().take(done).rev() {
            if state.holds(&step.check) {
                for action in &step.undo {
                    self.model.apply(&mut state, action)?;
                }
            }
        }
        Ok(state)
    }

    /// All is as before. Where modes change at once, a mode that was pending is not put back:
    /// asking for it would bring it now.
    fn is_before(&self, state: &State) -> bool {
        let at_once = self.change == ModeChange::Immediate;
        *state == self.before || at_once && state.same_in_force(&self.before)
    }
}
