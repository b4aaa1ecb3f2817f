// SPDX-License-Identifier: Apache-2.0
//! Access to the GPU driver.
//!
//! One table of NVML functions ([`table`]), filled by `dlopen` of the driver's library or by the
//! simulator; above it [`Driver`], the one code path that turns NVML's answers into
//! [`geometry::inventory`] types and counts every call. What callers need is in small traits
//! ([`ReadGpus`], [`Instances`], [`MigMode`], [`Reset`]), so that they can be given less.

#![allow(unsafe_code)]

mod board;
mod calls;
mod choice;
mod driver;
mod error;
mod events;
mod instances;
mod library;
mod names;
mod profiles;
mod raw;
mod read;
mod smi;
pub mod table;
mod telemetry;
mod topology;
mod traits;

/// NVML's types and constants, and the C types in its signatures.
pub mod sys {
    pub use std::ffi::{c_char, c_int, c_uint, c_ulong, c_ulonglong};

    pub use nvml_wrapper_sys::bindings::*;
}

pub use calls::CallCounts;
pub use choice::Vitals;
pub use driver::{ClosedReset, Driver};
pub use error::{Error, NvmlCode};
pub use events::{Event, EventKind, Events};
pub use library::{LIBRARY_NAME, Library};
pub use smi::SmiReset;
pub use table::Functions;
pub use telemetry::{SliceAttributes, Telemetry, Utilization};
pub use topology::{CommonAncestor, Connection, FabricClique, Topology};
pub use traits::{Instances, MigMode, ReadGpus, Reset};
