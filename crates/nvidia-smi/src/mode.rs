// SPDX-License-Identifier: Apache-2.0
//! `nvidia-smi -mig` and `--gpu-reset`.

use std::io::Write;

use gpu::{Driver, MigMode, NvmlCode, Reset};
use nvmlsim::{Handle, Simulated, WORLD_VARIABLE, world_file};
use units::GpuUuid;

use crate::failure::{Failure, words};
use crate::select::Selection;

/// Sets MIG on or off on the chosen GPUs, and warns where that is not in force yet.
///
/// # Errors
/// If NVML refuses.
pub fn set(
    driver: &Driver,
    chosen: &Selection<'_>,
    on: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (verb, done, state) = if on {
        ("enable", "Enabled", "enable")
    } else {
        ("disable", "Disabled", "disable")
    };
    for gpu in &chosen.gpus {
        let bus = &gpu.pci_bus_id;
        if let Err(error) = driver.set_mode(&gpu.uuid, on) {
            let what = format!("Unable to {verb} MIG Mode for GPU {bus}");
            return Err(match error.nvml() {
                Some(code) => Failure::Refused { what, code },
                None => Failure::Driver(error),
            });
        }
        let pending = driver
            .mode(&gpu.uuid)?
            .is_some_and(|mode| mode.is_pending());
        if !pending {
            writeln!(out, "{done} MIG Mode for GPU {bus}")?;
            continue;
        }
        // NVML tells why in an answer that the driver crate does not keep: something that uses the
        // GPU, or the architecture.
        let code = if gpu.is_busy() {
            NvmlCode::IN_USE
        } else {
            NvmlCode::RESET_REQUIRED
        };
        writeln!(
            out,
            "Warning: MIG mode is in pending {state} state for GPU {bus}:{}",
            words(code)
        )?;
        if code == NvmlCode::IN_USE {
            writeln!(
                out,
                "{bus} is currently being used by one or more other processes (e.g. CUDA \
                 application or a monitoring application such as another instance of nvidia-smi). \
                 Please first kill all processes using the device and retry the command or reboot \
                 the system to make MIG mode effective."
            )?;
        }
    }
    writeln!(out, "All done.")?;
    Ok(())
}

/// Resets the chosen GPUs, in the world.
///
/// # Errors
/// If one of them is in use, or there is no world.
pub fn reset(chosen: &Selection<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let no_world = || Failure::Usage(format!("{WORLD_VARIABLE} does not name a simulated world."));
    let path = world_file().ok_or_else(no_world)?;
    let handle = Handle::open(&path).map_err(|error| Failure::Usage(error.to_string()))?;
    let uuids: Vec<GpuUuid> = chosen.gpus.iter().map(|gpu| gpu.uuid.clone()).collect();
    if let Err(error) = Simulated::new(handle).reset(&uuids) {
        for gpu in chosen.gpus.iter().filter(|gpu| gpu.is_busy()) {
            writeln!(
                out,
                "GPU {} is currently in use by another process.",
                gpu.pci_bus_id
            )?;
        }
        writeln!(out, "{error}")?;
        return Err(Failure::Said(NvmlCode::IN_USE.0 as u8));
    }
    for gpu in &chosen.gpus {
        writeln!(out, "GPU {} was successfully reset.", gpu.pci_bus_id)?;
    }
    writeln!(out, "All done.")?;
    Ok(())
}
