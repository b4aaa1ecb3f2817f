// SPDX-License-Identifier: Apache-2.0
//! Decisions: plain data in, plain data with reasons out.

mod clients;
mod desired;
mod health;
mod labels;
mod mig;
mod moves;
mod reboot;
mod stranded;

pub use clients::{LabelChange, PodOnNode, apps, driver_is_replaced, opt_in, pause, resume, rival};
pub use desired::{Desired, Kept, MigWanted, SharingConfig, Told, config_maps, resolve, services};
pub use health::Health;
pub use labels::{State, change, node_labels};
pub use mig::{Allocation, Goes, MigChange, MigDecision, decide, opened};
pub use moves::moves;
pub use reboot::{RebootAsked, may_reboot};
pub use stranded::{PodSeen, stranded};
