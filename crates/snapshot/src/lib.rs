// SPDX-License-Identifier: Apache-2.0
//! Reads a node into one plain value: what the driver says, and what Linux shows beside it.
//!
//! A [`Reader`] is kept for as long as a driver is open. What cannot change in that time is read
//! once. A file that is missing or has an odd form is a fact that is not known, never an error:
//! only the driver itself can fail. Nothing is decided here.

#![forbid(unsafe_code)]

mod caps;
mod features;
mod handles;
mod links;
mod pci;
mod reader;
mod slices;

pub use features::{remove_features, write_features};
pub use handles::{CapHandle, cap_handles};
pub use reader::{Reader, Reading, Roots};
