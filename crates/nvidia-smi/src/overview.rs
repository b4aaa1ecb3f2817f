// SPDX-License-Identifier: Apache-2.0
//! The table that `nvidia-smi` prints without options.

use std::io::Write;

use geometry::inventory::{Gpu, Inventory};
use gpu::{Driver, Telemetry};

use crate::failure::Failure;
use crate::query::mig_devices;
use crate::select::Selection;

const RULE: &str =
    "+-----------------------------------------+------------------------+----------------------+";
const WHOLE: &str =
    "+-----------------------------------------------------------------------------------------+";

/// Prints the GPUs, their MIG devices and the processes on them.
///
/// # Errors
/// If NVML cannot be asked.
pub fn print(
    driver: &Driver,
    inventory: &Inventory,
    chosen: &Selection<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (version, (major, minor)) = (&inventory.driver_version, inventory.cuda_version);
    writeln!(out, "{WHOLE}")?;
    let title = format!(
        " NVIDIA-SMI {version:<18} Driver Version: {version:<14} CUDA Version: {major}.{minor}"
    );
    writeln!(out, "|{title:<89}|")?;
    writeln!(out, "{RULE}")?;
    writeln!(
        out,
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |"
    )?;
    writeln!(
        out,
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |"
    )?;
    writeln!(
        out,
        "|                                         |                        |               MIG M. |"
    )?;
    writeln!(out, "{}", RULE.replace('-', "=").replace('+', "|"))?;
    for gpu in &chosen.gpus {
        device(driver, gpu, out)?;
    }
    mig_table(&chosen.gpus, out)?;
    processes(&chosen.gpus, out)
}

fn device(driver: &Driver, gpu: &Gpu, out: &mut dyn Write) -> Result<(), Failure> {
    let vitals = driver.vitals(&gpu.uuid)?;
    let busy = driver.utilization(&gpu.uuid)?;
    let or_na = |text: Option<String>| text.unwrap_or_else(|| "N/A".into());
    let temperature = or_na(vitals.temperature_c.map(|degrees| format!("{degrees}C")));
    let watts = |milliwatts: Option<u32>| or_na(milliwatts.map(|mw| format!("{}W", mw / 1000)));
    let power = format!(
        "{} / {}",
        watts(vitals.power_mw),
        watts(vitals.power_limit_mw)
    );
    let used = or_na(vitals.memory_used_mib.map(|mib| format!("{mib}MiB")));
    let memory = format!("{used} / {}MiB", gpu.memory_mib);
    let busy = or_na(busy.map(|busy| format!("{}%", busy.gpu)));
    let mode = match gpu.mode {
        None => "N/A",
        Some(mode) if mode.is_on() => "Enabled",
        Some(_) => "Disabled",
    };
    let (index, name, bus) = (gpu.index, &gpu.name, &gpu.pci_bus_id);
    writeln!(
        out,
        "| {index:>3}  {name:<25.25} {:>8} | {bus:<16}   {:>3} | {:>20} |",
        "N/A", "N/A", "N/A"
    )?;
    writeln!(
        out,
        "| N/A  {temperature:>4}    N/A   {power:>20} | {memory:>22} | {busy:>8}  {:>10} |",
        "N/A"
    )?;
    writeln!(out, "|{:41}|{:24}| {mode:>20} |", "", "")?;
    writeln!(out, "{RULE}")?;
    Ok(())
}

fn mig_table(gpus: &[&Gpu], out: &mut dyn Write) -> Result<(), Failure> {
    if !gpus
        .iter()
        .any(|gpu| gpu.mode.is_some_and(|mode| mode.is_on()))
    {
        return Ok(());
    }
    writeln!(out)?;
    let line = |out: &mut dyn Write, text: &str| writeln!(out, "|{text:<89}|");
    writeln!(out, "{WHOLE}")?;
    line(out, " MIG devices:")?;
    line(out, " GPU  GI  CI  MIG  Profile            UUID")?;
    writeln!(out, "{}", WHOLE.replace('-', "=").replace('+', "|"))?;
    let mut found = false;
    for gpu in gpus {
        for (index, (instance, compute)) in mig_devices(gpu).into_iter().enumerate() {
            let uuid = compute.uuid.as_ref().map_or("N/A", |uuid| uuid.as_str());
            let (profile, id) = (compute.profile.to_string(), compute.id);
            let gpu = gpu.index;
            line(
                out,
                &format!(" {gpu:>3}  {instance:>2}  {id:>2}  {index:>3}  {profile:<18} {uuid}"),
            )?;
            found = true;
        }
    }
    if !found {
        line(out, "  No MIG devices found")?;
    }
    writeln!(out, "{WHOLE}")?;
    Ok(())
}

fn processes(gpus: &[&Gpu], out: &mut dyn Write) -> Result<(), Failure> {
    let line = |out: &mut dyn Write, text: &str| writeln!(out, "|{text:<89}|");
    writeln!(out, "\n{WHOLE}")?;
    line(out, " Processes:")?;
    line(
        out,
        "  GPU   GI   CI              PID   Type   Process name",
    )?;
    writeln!(out, "{}", WHOLE.replace('-', "=").replace('+', "|"))?;
    let mut found = false;
    for gpu in gpus {
        let whole = gpu
            .holders
            .iter()
            .map(|holder| ("N/A".into(), "N/A".into(), holder));
        let slices = mig_devices(gpu)
            .into_iter()
            .flat_map(|(instance, compute)| {
                let holders = compute.holders.iter();
                holders.map(move |holder| (instance.to_string(), compute.id.to_string(), holder))
            });
        for (instance, compute, holder) in whole.chain(slices) {
            let text = format!(
                " {:>4}  {instance:>3}  {compute:>3}  {:>15}      C   {}",
                gpu.index, holder.pid, holder.name
            );
            line(out, &text)?;
            found = true;
        }
    }
    if !found {
        line(out, "  No running processes found")?;
    }
    writeln!(out, "{WHOLE}")?;
    Ok(())
}
