// SPDX-License-Identifier: Apache-2.0
//! Access to the GPU driver.
//!
//! One table of NVML functions ([`table`]), filled by `dlopen` of the driver's library or by the
//! simulator; above it [`Driver`], the one code path that turns NVML's answers into
//! [`geometry::inventory`] types and counts every call. What callers need is in small traits
//! ([`ReadGpus`], [`Instances`], [`MigMode`], [`Reset`]), so that they can be given less.

mod error;
mod traits;

pub use error::{Error, NvmlCode};
pub use traits::{Instances, MigMode, ReadGpus, Reset};
