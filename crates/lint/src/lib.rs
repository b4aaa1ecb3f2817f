// SPDX-License-Identifier: Apache-2.0
//! Checks any plan against any inventory, independently of the planner.
//!
//! The linter replays the steps on its own small model of a GPU, cuts them off everywhere, and
//! takes them back from there. It shares the types with the planner and the tables of the board
//! with `geometry`, but calls neither: what it accepts has been judged twice.
//!
//! This crate is pure: no I/O, no clock, no environment, no randomness.

#![forbid(unsafe_code)]

mod agree;
mod model;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;

use geometry::inventory::Inventory;
use plan::Plan;

/// Something in a plan that does not hold together. The planner never makes such a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Index of the GPU.
    pub gpu: u32,
    /// The step, counted from 0; `None` if it is about the GPU's plan as a whole.
    pub step: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            Some(step) => write!(f, "GPU {}, step {step}: {}", self.gpu, self.message),
            None => write!(f, "GPU {}: {}", self.gpu, self.message),
        }
    }
}

/// Everything that is wrong with `plan` on `inventory`; nothing if it is sound:
///
/// - what it says of before, after, what stays, goes and comes agrees with inventory and steps;
/// - every step is legal on the board and does something; what it requires holds, its check tells
///   whether it is done, at every moment of the plan;
/// - cut off anywhere, it can be gone on with and taken back;
/// - nobody is hurt who is not named, and mode and reset are touched only where needed.
pub fn check(inventory: &Inventory, plan: &Plan) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for gpu_plan in &plan.gpus {
        let mut add = |step: Option<usize>, message: String| {
            findings.push(Finding {
                gpu: gpu_plan.index,
                step,
                message,
            });
        };
        if !seen.insert(gpu_plan.index) {
            add(None, "it is planned twice".into());
        }
        let gpu = inventory
            .gpus
            .iter()
            .find(|gpu| gpu.index == gpu_plan.index);
        match gpu {
            None => add(None, "there is no such GPU".into()),
            Some(gpu) => {
                agree::check(gpu, gpu_plan, &mut add);
                replay::check(gpu, gpu_plan, &mut add);
            }
        }
    }
    findings
}
