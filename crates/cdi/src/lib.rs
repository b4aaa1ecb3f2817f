// SPDX-License-Identifier: Apache-2.0
//! CDI specifications: how a container runtime gives a GPU or slice to a container.
//!
//! [`gpus`] makes the specification of a node's devices from plain data, in the form that NVIDIA's
//! device plugin writes; [`DriverFiles::find`] looks what of the driver has to go into containers;
//! [`Folder`] writes it, whole or not at all. Names are those of the answers to the kubelet
//! (`publish::cdi_name`).
//!
//! This crate knows neither the driver's library nor the kubelet.

#![forbid(unsafe_code)]

mod driver_files;
mod folder;
mod hooks;
mod make;
mod spec;

pub use driver_files::{DriverFiles, Library};
pub use folder::{Error, Folder};
pub use hooks::Hooks;
pub use make::{Input, gpus, imex_channel};
pub use spec::{Device, DeviceNode, Edits, Hook, Mount, Spec};
