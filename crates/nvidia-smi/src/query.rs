// SPDX-License-Identifier: Apache-2.0
//! `nvidia-smi -L` and `--query-gpu`.

use std::io::Write;

use geometry::inventory::{ComputeInstance, Gpu, Inventory};
use gpu::{Driver, Telemetry, Vitals};

use crate::args::Format;
use crate::failure::Failure;
use crate::select::Selection;

/// `-L`: the GPUs and their MIG devices.
///
/// # Errors
/// If the output is gone.
pub fn list(chosen: &Selection<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    for gpu in &chosen.gpus {
        writeln!(out, "GPU {}: {} (UUID: {})", gpu.index, gpu.name, gpu.uuid)?;
        for (index, (_, compute)) in mig_devices(gpu).into_iter().enumerate() {
            let uuid = compute.uuid.as_ref().map_or("N/A", |uuid| uuid.as_str());
            let profile = compute.profile.to_string();
            writeln!(out, "  MIG {profile:<11} Device {index:>2}: (UUID: {uuid})")?;
        }
    }
    Ok(())
}

/// The MIG devices of a GPU in the order of their indices: by GPU instance id, then their own.
pub fn mig_devices(gpu: &Gpu) -> Vec<(u32, &ComputeInstance)> {
    let instances = gpu.instances.iter();
    let mut all: Vec<(u32, &ComputeInstance)> = instances
        .flat_map(|instance| {
            instance
                .compute
                .iter()
                .map(|compute| (instance.id, compute))
        })
        .collect();
    all.sort_by_key(|(instance, compute)| (*instance, compute.id));
    all
}

/// What a field is printed as: a text, or a number with its unit.
enum Value {
    Text(String),
    Number(String, &'static str),
    /// The GPU does not tell.
    Absent,
}

/// `--query-gpu`: a line of values a GPU.
///
/// # Errors
/// If a field is not known, or NVML cannot be asked.
pub fn print(
    driver: &Driver,
    inventory: &Inventory,
    chosen: &Selection<'_>,
    fields: &[String],
    format: Format,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut lines = Vec::new();
    let mut head = Vec::new();
    for gpu in &chosen.gpus {
        let vitals = driver.vitals(&gpu.uuid)?;
        let busy = driver.utilization(&gpu.uuid)?.map(|busy| busy.gpu);
        head.clear();
        let mut line = Vec::new();
        for field in fields {
            let value = value(inventory, gpu, vitals, busy, field).ok_or_else(|| {
                Failure::Usage(format!("Field \"{field}\" is not a valid field to query."))
            })?;
            let unit = match value {
                Value::Number(_, unit) if !format.no_units => format!(" [{unit}]"),
                _ => String::new(),
            };
            head.push(format!("{field}{unit}"));
            line.push(match value {
                Value::Text(text) => text,
                Value::Number(number, _) if format.no_units => number,
                Value::Number(number, unit) => format!("{number} {unit}"),
                Value::Absent => "[N/A]".to_owned(),
            });
        }
        lines.push(line.join(", "));
    }
    if !format.no_header {
        writeln!(out, "{}", head.join(", "))?;
    }
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn value(
    inventory: &Inventory,
    gpu: &Gpu,
    vitals: Vitals,
    busy: Option<u32>,
    field: &str,
) -> Option<Value> {
    let text = |text: &str| Value::Text(text.to_owned());
    let number = |number: Option<u64>, unit| match number {
        Some(number) => Value::Number(number.to_string(), unit),
        None => Value::Absent,
    };
    let watts = |milliwatts: Option<u32>| match milliwatts {
        Some(milliwatts) => Value::Number(format!("{:.2}", f64::from(milliwatts) / 1000.0), "W"),
        None => Value::Absent,
    };
    let switch = |on: Option<bool>| match on {
        Some(true) => text("Enabled"),
        Some(false) => text("Disabled"),
        None => Value::Absent,
    };
    let used = vitals.memory_used_mib;
    Some(match field {
        "index" => text(&gpu.index.to_string()),
        "count" => text(&inventory.gpus.len().to_string()),
        "name" | "gpu_name" => text(&gpu.name),
        "uuid" | "gpu_uuid" => text(gpu.uuid.as_str()),
        "pci.bus_id" | "gpu_bus_id" => text(&gpu.pci_bus_id),
        "pci.device_id" => text(&gpu.pci_device.to_string()),
        "pci.sub_device_id" => text(&gpu.pci_subsystem.to_string()),
        "driver_version" => text(&inventory.driver_version),
        "compute_cap" => text(&format!(
            "{}.{}",
            gpu.compute_capability.0, gpu.compute_capability.1
        )),
        "mig.mode.current" => switch(gpu.mode.map(|mode| mode.is_on())),
        "mig.mode.pending" => switch(gpu.mode.map(|mode| mode.will_be_on())),
        "memory.total" => number(Some(gpu.memory_mib), "MiB"),
        "memory.used" => number(used, "MiB"),
        "memory.free" => number(used.map(|used| gpu.memory_mib.saturating_sub(used)), "MiB"),
        "utilization.gpu" => number(busy.map(u64::from), "%"),
        "temperature.gpu" => match vitals.temperature_c {
            Some(degrees) => text(&degrees.to_string()),
            None => Value::Absent,
        },
        "power.draw" => watts(vitals.power_mw),
        "power.limit" => watts(vitals.power_limit_mw),
        _ => return None,
    })
}
