// SPDX-License-Identifier: Apache-2.0
//! What the agent decides, from plain data and simulated machines.

#![allow(clippy::panic, clippy::unwrap_used)]

mod health;
mod layouts;
mod moves;
mod support;
mod wishes;
