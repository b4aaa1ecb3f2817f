// SPDX-License-Identifier: Apache-2.0
//! NVIDIA's configuration files: read with positions, checked, printed.
//!
//! - [`tree`] makes a tree with positions of a YAML or JSON text, within fixed limits.
//! - [`manifest`] tells files apart by content and opens ConfigMap manifests.
//! - [`mig`] is the MIG config file of `nvidia-mig-parted`; [`generate`] makes the one that NVIDIA
//!   generates for given hardware, [`export`] the one that describes what is there.
//!
//! All faults of a file are found at once, as [`Diagnostic`]s with file, line, column, path, what
//! was found and what is allowed. What the original silently accepts to the user's harm is an error
//! if it concerns the selected configuration, else a warning.
//!
//! This crate is pure: no I/O, no clock, no environment, no randomness.

#![forbid(unsafe_code)]

pub mod check;
pub mod checkpoint;
pub mod deviceplugin;
pub mod diagnostic;
pub mod export;
pub mod generate;
pub mod gpu_clients;
pub mod hooks;
pub mod laws;
pub mod manifest;
pub mod mig;
pub mod nearest;
pub mod sink;
pub mod tree;

pub use diagnostic::{Diagnostic, Problems, Severity};
