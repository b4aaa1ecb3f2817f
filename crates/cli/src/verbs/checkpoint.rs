// SPDX-License-Identifier: Apache-2.0
//! Exact layouts in files: `slicewright host checkpoint` and `restore`, in mig-parted's format.

use std::path::PathBuf;

use config::checkpoint::{self, Checkpoint, DeviceState};
use geometry::inventory::Inventory;
use host::Intent;
use plan::{GpuWish, Policy, Wish};
use units::Code;

use super::apply::{Change, carry_out};
use super::hooks::Hooks;
use super::planning;
use crate::args::{CheckpointArgs, Format, RestoreArgs};
use crate::env::Env;
use crate::failure::Failure;
use crate::files;
use crate::machine::Machine;
use crate::output::Output;

const VARIABLE: &str = "MIG_PARTED_CHECKPOINT_FILE";

/// Writes the exact layout of all GPUs with MIG.
///
/// # Errors
/// If it cannot be read or written.
pub fn checkpoint(
    machine: &Machine,
    args: &CheckpointArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    if !matches!(output.format, None | Some(Format::Json)) {
        return Err(Failure::new(Code::Usage, "a checkpoint is written as json"));
    }
    let file = args
        .checkpoint_file
        .clone()
        .or_else(|| env.get(VARIABLE).map(PathBuf::from));
    let checkpoint = Checkpoint::of(&machine.inventory()?)
        .map_err(|error| Failure::new(Code::BoardUnknown, error.to_string()))?;
    let end = if file.is_none() { "\n" } else { "" };
    files::write(file.as_deref(), &(checkpoint.print() + end), output)?;
    Ok(0)
}

/// Brings a checkpoint back.
///
/// # Errors
/// If it is not of this machine, or nothing was done.
pub fn restore(
    machine: &Machine,
    args: &RestoreArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let file = args
        .checkpoint_file
        .clone()
        .or_else(|| env.get(VARIABLE).map(str::to_owned));
    let file =
        file.ok_or_else(|| Failure::new(Code::Usage, "restore needs a checkpoint: -f FILE"))?;
    let text = files::read(&file, Code::ConfigInvalid)?;
    let checkpoint = checkpoint::parse(files::shown(&file), &text)?;
    let mode_only = args.mode_only || env.is_true("MIG_PARTED_MODE_CHANGE_ONLY");
    let wish_of = |inventory: &Inventory| {
        let wish = wish(&checkpoint, inventory)?;
        Ok(if mode_only { wish.mode_only() } else { wish })
    };
    if args.dry_run {
        let inventory = machine.inventory()?;
        let wish = wish_of(&inventory);
        return planning::run_wish(machine, &inventory, wish, &Policy::default(), output);
    }
    let variables = [
        (VARIABLE, file.clone()),
        ("MIG_PARTED_MODE_CHANGE_ONLY", mode_only.to_string()),
    ];
    let variables = variables
        .map(|(name, value)| (name.to_owned(), value))
        .into();
    let hooks = Hooks::read(args.hooks_file.as_ref(), args.debug, env, variables, output)?;
    let change = Change {
        intent: Intent::restore(files::shown(&file)),
        policy: Policy::default(),
        wish: Box::new(wish_of),
    };
    carry_out(machine, &machine.lock()?, &change, &hooks, output)
}

/// What a checkpoint wants of this machine. GPUs that it does not name stay as they are.
fn wish(checkpoint: &Checkpoint, inventory: &Inventory) -> Result<Wish, Failure> {
    let gpus = checkpoint
        .devices
        .iter()
        .map(|device| of_device(device, inventory));
    Ok(Wish {
        gpus: gpus.collect::<Result<_, _>>()?,
        ..Wish::default()
    })
}

fn of_device(device: &DeviceState, inventory: &Inventory) -> Result<(u32, GpuWish), Failure> {
    let mismatch = |message| Failure::new(Code::CheckpointMismatch, message);
    let gpu = inventory.gpus.iter().find(|gpu| gpu.uuid == device.uuid);
    let gpu = gpu.ok_or_else(|| {
        mismatch(format!(
            "{} of the checkpoint is not in this machine",
            device.uuid
        ))
    })?;
    if !device.mig_mode {
        return Ok((gpu.index, GpuWish::Off));
    }
    let layout = device.layout(&gpu.board);
    let layout = layout.map_err(|error| mismatch(format!("GPU {}: {error}", gpu.index)))?;
    Ok((gpu.index, GpuWish::Exact(layout)))
}
