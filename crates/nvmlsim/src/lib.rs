// SPDX-License-Identifier: Apache-2.0
//! A GPU driver in software.
//!
//! One [`World`] is a simulated machine, two faces show it: inside a process [`Simulated`], which
//! fills `gpu`'s function table and stands for one process' use of NVML; and as
//! `libnvidia-ml.so.1`, which serves any NVML client from the world file that [`world_file`] finds. A [`Handle`] is a world in memory or in a file that processes
//! share. What it enforces and where it is unsure: `docs/simulator.md`.

#![allow(unsafe_code)]

mod abi;
pub mod code;
mod cuda;
pub mod device_files;
mod fault;
mod file;
mod handle;
mod holders;
mod locate;
mod serve;
mod simulated;
pub mod verbs;
pub mod world;

pub use fault::{Effect, Fault, FaultError, Rule};
pub use handle::{Handle, SimError};
pub use holders::{HoldGuard, Target};
pub use locate::{INSTALLED_WORLD, WORLD_VARIABLE, world_file};
pub use simulated::Simulated;
pub use world::{Options, Spec, SpecError, World, driver_version};
