// SPDX-License-Identifier: Apache-2.0
//! A stand-in for `nvidia-smi` on simulated machines: the verbs that MIG needs, with the
//! original's output.
//!
//! It asks NVML through the C ABI only: of the library that `NVMLSIM_LIBRARY` names, else of
//! `libnvidia-ml.so.1` where the dynamic linker looks. NVML has no reset, so that one verb goes to
//! the world that `NVMLSIM_WORLD` names.

#![forbid(unsafe_code)]

mod args;
mod create;
mod destroy;
mod failure;
mod mig_tables;
mod mode;
mod overview;
mod query;
mod select;

use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use geometry::inventory::Inventory;
use gpu::{Driver, ReadGpus};

use crate::args::{Action, Args};
use crate::failure::Failure;
use crate::select::Selection;

/// The environment variable that names the NVML library.
const LIBRARY_VARIABLE: &str = "NVMLSIM_LIBRARY";

/// The exit status when a GPU is lost: NVML's code, as the original.
const LOST: u8 = 15;

fn main() -> ExitCode {
    let mut out = stdout().lock();
    let outcome = run(std::env::args().skip(1).collect(), &mut out);
    let said = outcome
        .as_ref()
        .map_or_else(Failure::to_string, |()| String::new());
    if !said.is_empty() {
        // With the output gone there is nobody to tell.
        let _ = writeln!(out, "{said}");
    }
    ExitCode::from(outcome.map_or_else(|failure| failure.status(), |()| 0))
}

fn run(words: Vec<String>, out: &mut dyn Write) -> Result<(), Failure> {
    let Args {
        action,
        gpus,
        instances,
        compute,
    } = Args::parse(words)?;
    let library = std::env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let driver = Driver::load(library.as_deref())?;
    let inventory = driver.inventory()?;
    let chosen = Selection::of(&inventory, gpus.as_deref(), instances, compute)?;
    let lost = if gpus.is_none() {
        &inventory.lost[..]
    } else {
        &[]
    };
    for index in lost {
        writeln!(
            out,
            "Unable to determine the device handle for GPU{index}: GPU is lost.  \
             Reboot the system to recover this GPU"
        )?;
    }
    perform(action, driver, &inventory, &chosen, out)?;
    match lost {
        [] => Ok(()),
        _ => Err(Failure::Said(LOST)),
    }
}

fn perform(
    action: Action,
    driver: Driver,
    inventory: &Inventory,
    chosen: &Selection<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    match action {
        Action::Overview => overview::print(&driver, inventory, chosen, out),
        Action::List => query::list(chosen, out),
        Action::Query { fields, format } => {
            query::print(&driver, inventory, chosen, &fields, format, out)
        }
        Action::Mode(on) => mode::set(&driver, chosen, on, out),
        Action::Reset => {
            drop(driver);
            mode::reset(chosen, out)
        }
        Action::Profiles => mig_tables::profiles(&driver, chosen, out),
        Action::Placements => mig_tables::placements(chosen, out),
        Action::Instances => mig_tables::instances(chosen, out),
        Action::ComputeInstances => mig_tables::compute_instances(chosen, out),
        Action::Create {
            profiles,
            with_compute,
        } => create::gpu_instances(&driver, chosen, &profiles, with_compute, out),
        Action::CreateCompute { profiles } => {
            create::compute_instances(&driver, chosen, &profiles, out)
        }
        Action::DestroyCompute => destroy::compute_instances(&driver, chosen, out),
        Action::Destroy => destroy::gpu_instances(&driver, chosen, out),
    }
}
