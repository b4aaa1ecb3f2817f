// SPDX-License-Identifier: Apache-2.0
//! What `slicewright sim` does to a world that is there, one function a verb.

use std::convert::Infallible;
use std::fmt::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::fault::{Fault, FaultError};
use crate::handle::{Handle, SimError};
use crate::holders::Target;
use crate::world::{Gpu, World};

/// `sim fault`: does what the lines say, all or none.
///
/// # Errors
/// If a line is wrong, or the world cannot be read or written.
pub fn fault<S: AsRef<str>>(handle: &Handle, lines: &[S]) -> Result<(), SimError> {
    let faults = lines.iter().map(|line| line.as_ref().parse());
    let faults: Vec<Fault> = faults.collect::<Result<_, FaultError>>()?;
    for fault in &faults {
        handle.world()?.knows(fault)?;
    }
    handle.change(|world| faults.iter().for_each(|fault| world.inject(fault)))
}

/// `sim reboot`: restarts the machine. Processes that hold something are not ended.
///
/// # Errors
/// If the world cannot be read or written.
pub fn reboot(handle: &Handle) -> Result<(), SimError> {
    handle.change(World::reboot)
}

/// `sim hold`: holds the GPU or MIG device with that UUID and becomes the command. The command
/// itself does not see the hold, as no process sees its own record locks; all others do.
///
/// # Errors
/// If there is no such device, or the command cannot be started.
pub fn hold(handle: &Handle, uuid: &str, mut command: Command) -> Result<Infallible, SimError> {
    let hold = handle.hold(uuid)?;
    hold.keep_over_exec().map_err(|source| SimError::Hold {
        what: uuid.to_owned(),
        source,
    })?;
    Err(SimError::Run {
        program: command.get_program().to_string_lossy().into_owned(),
        source: command.exec(),
    })
}

/// `sim show`: the machine as text, one line a fact.
///
/// # Errors
/// If the world cannot be read.
pub fn show(handle: &Handle) -> Result<String, SimError> {
    let world = handle.world()?;
    let mut text = format!(
        "driver {}, CUDA {}.{}, start {}, {} ms a change\n",
        world.driver_version,
        world.cuda_version.0,
        world.cuda_version.1,
        world.boot,
        world.latency_ms
    );
    for (index, gpu) in (0u32..).zip(&world.gpus) {
        show_gpu(&mut text, handle, index, gpu);
    }
    for rule in &world.rules {
        line(
            &mut text,
            format_args!("fault: {rule} (met {} times)", rule.seen),
        );
    }
    Ok(text)
}

fn show_gpu(text: &mut String, handle: &Handle, index: u32, gpu: &Gpu) {
    let has_mig = gpu.board().is_ok_and(geometry::Board::has_mig);
    let mode = if has_mig {
        format!("MIG {}", gpu.mode())
    } else {
        "no MIG".into()
    };
    let mirrored = if gpu.mirrored { ", mirrored" } else { "" };
    let lost = if gpu.lost { ", lost" } else { "" };
    let held = holders(handle, Target::gpu(index));
    let (board, uuid) = (&gpu.board, &gpu.uuid);
    line(
        text,
        format_args!("GPU {index}: {board}, {mode}{mirrored}{lost}, {uuid}{held}"),
    );
    for instance in &gpu.instances {
        let Ok(profile) = gpu.profile_of(instance) else {
            continue;
        };
        let (id, place) = (instance.id, instance.placement);
        line(
            text,
            format_args!("  GPU instance {id}: {} at {place}", profile.name),
        );
        for compute in &instance.compute {
            let slices = gpu
                .compute_profile_of(instance, compute)
                .map(|profile| profile.slices);
            let (id, place) = (compute.id, compute.placement);
            let uuid = gpu.mig_uuid(instance, compute);
            let held = holders(handle, Target::compute(index, instance.id, compute.id));
            let slices = slices.unwrap_or_default();
            line(
                text,
                format_args!("    compute instance {id}: {slices}c at {place}, {uuid}{held}"),
            );
        }
    }
}

fn holders(handle: &Handle, target: Target) -> String {
    let pids = handle.holders(target);
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    if pids.is_empty() {
        String::new()
    } else {
        format!(", held by {}", pids.join(" "))
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{line}");
}
