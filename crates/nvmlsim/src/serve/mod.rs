// SPDX-License-Identifier: Apache-2.0
//! What each NVML function does, by its own name. Null pointers, stale handles and versions that
//! are not served are answered with NVML's codes; nothing here can harm the caller.

#![allow(non_snake_case, non_upper_case_globals)]

mod events;
mod identity;
mod instances;
mod library;
mod links;
mod mig;
mod processes;
mod profiles;
mod telemetry;

pub use events::*;
pub use identity::*;
pub use instances::*;
pub use library::*;
pub use links::*;
pub use mig::*;
pub use processes::*;
pub use profiles::*;
pub use telemetry::*;

use crate::code::Answer;
use crate::simulated::{In, Out, Simulated};

/// The version tag of a versioned struct.
const fn version<T>(number: u32) -> u32 {
    size_of::<T>() as u32 | number << 24
}
