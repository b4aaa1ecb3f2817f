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

mod condition;
mod refusal;
mod step;
mod wish;

pub use refusal::{Refusal, Warning};
pub use step::{Action, Condition, GpuPlan, Plan, Step};
pub use wish::{GpuWish, Policy, Wish};

use geometry::inventory::Inventory;

/// Plans the way from `inventory` to `wish`.
///
/// # Errors
/// A [`Refusal`] if the wish cannot be fulfilled, or not without hurting a holder.
pub fn plan(inventory: &Inventory, wish: &Wish, policy: &Policy) -> Result<Plan, Refusal> {
    let _ = (inventory, wish, policy);
    Err(Refusal::new(
        units::Code::NotSupportedYet,
        "planning is not built yet",
    ))
}
