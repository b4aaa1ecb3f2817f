// SPDX-License-Identifier: Apache-2.0
//! From an inventory and a wish to an immutable plan of steps, with its impact.
//!
//! ```text
//! config + name ──resolve──> Wish ──┐
//! layout, checkpoint, history ──────┤
//!                     Inventory ────┴──plan──> Plan | Refusal ──report──> JSON
//! ```
//!
//! A plan leaves nothing to choose: every step names its placement, its precondition, its undo and
//! its check. This crate is pure: it reads nothing and changes nothing.

#![forbid(unsafe_code)]

mod change;
mod condition;
mod difference;
mod mode;
mod planner;
mod refusal;
mod report;
mod resolve;
mod step;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
mod text;
mod wish;

pub use difference::{Difference, difference};
pub use planner::plan;
pub use refusal::{Refusal, Warning};
pub use report::{ComputeReport, GpuReport, Hurt, Impact, InstanceReport, Outcome, Report, impact};
pub use resolve::{generated, resolve, resolve_layout};
pub use step::{Action, Condition, GpuPlan, Plan, Step};
pub use text::{layout_text, parse_layout};
pub use wish::{GpuWish, Policy, Wish};
