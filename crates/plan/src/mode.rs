// SPDX-License-Identifier: Apache-2.0
//! The way of one GPU's MIG mode: whether it is set, whether the GPU is reset.

use geometry::ModeChange;
use units::Mode;

use crate::step::{Action, Condition, Step};

/// What a mode that is wanted takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModeWay {
    /// Whether MIG is wanted.
    on: bool,
    /// What the board takes.
    change: ModeChange,
    /// Mode before.
    before: Mode,
    /// Mode after.
    pub(crate) after: Mode,
    /// Whether the mode is set.
    set: bool,
    /// Whether the GPU is reset.
    pub(crate) reset: bool,
}

impl ModeWay {
    /// The way from `before` to on or off. Without resets a mode that needs one stays pending.
    pub(crate) fn new(change: ModeChange, before: Mode, on: bool, may_reset: bool) -> Self {
        let set = before.will_be_on() != on;
        let at_once = set && change == ModeChange::Immediate && !before.is_pending();
        let now = Mode::from_states(if at_once { on } else { before.is_on() }, on);
        let reset = now.is_pending() && may_reset;
        Self {
            on,
            change,
            before,
            after: if reset {
                Mode::from_states(on, on)
            } else {
                now
            },
            set,
            reset,
        }
    }

    /// Whether the mode in force changes, so that nothing may use the GPU.
    pub(crate) fn needs_idle(&self) -> bool {
        self.before.is_on() != self.after.is_on()
    }

    /// The steps: before those of instances if MIG is wanted, after them if not.
    pub(crate) fn steps(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.set {
            steps.push(self.set_step());
        }
        if self.reset {
            steps.push(self.reset_step());
        }
        steps
    }

    fn set_step(&self) -> Step {
        let on = self.on;
        let mut requires = vec![Condition::ModeRequested { on: !on }];
        if !self.before.is_pending() {
            requires.extend([Condition::NothingPending, Condition::NoInstances]);
            if self.change == ModeChange::Immediate {
                requires.push(Condition::Idle);
            }
        }
        // Where modes change at once, asking again for a mode that was pending would bring it now.
        let retaken = self.before.is_pending() && self.change == ModeChange::Immediate;
        let undo = if retaken {
            Vec::new()
        } else {
            vec![Action::SetMode { on: !on }]
        };
        Step {
            action: Action::SetMode { on },
            requires,
            check: Condition::ModeRequested { on },
            undo,
        }
    }

    fn reset_step(&self) -> Step {
        let on = self.on;
        let mut undo = vec![Action::SetMode { on: !on }];
        if self.change == ModeChange::NeedsReset {
            undo.push(Action::Reset);
            if !self.set {
                undo.push(Action::SetMode { on });
            }
        }
        Step {
            action: Action::Reset,
            requires: vec![
                Condition::ModeRequested { on },
                Condition::NoInstances,
                Condition::Idle,
            ],
            check: Condition::ModeInForce { on },
            undo,
        }
    }
}
