// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes API server in the process, for tests and demonstrations: not for production.
//!
//! [`patch`] and [`selector`] are its pure parts: how objects change, and which are meant. They know
//! no resource but by what they are told, and neither clock nor store.

#![forbid(unsafe_code)]

pub mod patch;
pub mod selector;
