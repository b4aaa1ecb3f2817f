// SPDX-License-Identifier: Apache-2.0
//! What goes beyond the recorded programs, and laws of everything that is published.

#![allow(clippy::unwrap_used)]

mod answers;
mod laws;
mod machine;
mod names;
mod preferred;
mod withheld;
