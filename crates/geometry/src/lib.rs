// SPDX-License-Identifier: Apache-2.0
//! What can be cut out of a GPU, and where.
//!
//! - [`Board`] is a GPU model with its MIG tables; [`catalogue`] has those that are known, and a
//!   driver's answers make the same type.
//! - [`place::place`] finds the placement of wanted instances that keeps the most of what runs, or proves
//!   that there is none.
//! - [`rules`] says what may stand beside what; [`enumerate`] counts all layouts of a board.
//! - [`inventory`] is what a driver reported of one machine at one moment, as plain data.
//!
//! This crate is pure: no I/O, no clock, no environment, no randomness. The same input gives the
//! same bytes.

#![forbid(unsafe_code)]

pub mod board;
pub mod catalogue;
pub mod enumerate;
pub mod inventory;
pub mod layout;
pub mod place;
pub mod rules;

pub use board::{Board, ComputeProfile, Confidence, Engines, ModeChange, Profile};
pub use layout::{ComputeSpec, InstanceSpec, Layout};
