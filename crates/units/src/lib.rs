// SPDX-License-Identifier: Apache-2.0
//! Names and quantities as types.
//!
//! Everything that a person types or a driver reports as text becomes one of these types at the
//! edge of the program and stays one: a [`ProfileName`] is always well formed, a [`GpuUuid`] is
//! never a MIG UUID, a [`Placement`] says its unit. Codes of errors and warnings are here too
//! ([`Code`]), so that every crate speaks the same ones.
//!
//! This crate is pure: no I/O, no clock, no environment, no randomness.

#![forbid(unsafe_code)]

mod code;
mod ids;
mod mode;
mod placement;
mod profile;

pub use code::{Code, UnknownCode};
pub use ids::{GpuUuid, MigUuid, ParseUuidError, PciDevice};
pub use mode::Mode;
pub use placement::Placement;
pub use profile::{Attributes, ParseProfileError, ProfileName};
