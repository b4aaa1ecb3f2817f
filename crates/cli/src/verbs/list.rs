// SPDX-License-Identifier: Apache-2.0
//! `slicewright host list`.

use geometry::inventory::{Gpu, GpuInstance, Holder, Inventory};
use serde::Serialize;
use units::{Code, GpuUuid, Mode};

use crate::args::Format;
use crate::failure::Failure;
use crate::output::Output;
use crate::picture::picture;
use crate::table::Table;

/// Prints an inventory in the form that was asked for.
///
/// # Errors
/// If it cannot be written.
pub fn print(inventory: &Inventory, output: &mut Output<'_>) -> Result<(), Failure> {
    for gpu in &inventory.gpus {
        for orphan in gpu
            .instances
            .iter()
            .filter(|instance| instance.compute.is_empty())
        {
            let GpuInstance {
                id,
                profile,
                placement,
                ..
            } = orphan;
            let message = format!(
                "GPU {}: instance {id} ({profile} at {placement}) has no compute instance",
                gpu.index
            );
            output.warn(Code::OrphanInstance, message);
        }
    }
    for index in &inventory.lost {
        output.warn(Code::GpuLost, format!("GPU {index} fell off the bus"));
    }
    match output.format {
        Some(Format::Json | Format::Yaml) => output.machine(&ListReport::of(inventory)),
        Some(Format::NvidiaSmi) => output.text(nvidia_smi(inventory)),
        Some(Format::Wide) => {
            output.text(gpus(inventory))?;
            let slices = slices(inventory);
            if slices.is_empty() {
                Ok(())
            } else {
                output.text(format_args!("\n{slices}"))
            }
        }
        Some(Format::Table) | None => output.text(
            gpus(inventory)
                .without("UUID")
                .without("PCI ADDRESS")
                .without("PCI DEVICE"),
        ),
    }
}

fn gpus(inventory: &Inventory) -> Table {
    let mut table = Table::new(&[
        "GPU",
        "NAME",
        "MIG",
        "INSTANCES",
        "IN USE BY",
        "UUID",
        "PCI ADDRESS",
        "PCI DEVICE",
    ]);
    for gpu in &inventory.gpus {
        table.row([
            gpu.index.to_string(),
            gpu.name.clone(),
            mode(gpu.mode),
            drawn(gpu),
            holders(all_holders(gpu)),
            gpu.uuid.to_string(),
            gpu.pci_bus_id.clone(),
            gpu.pci_device.to_string(),
        ]);
    }
    table
}

/// The mode in a word or two; `none` on a GPU without MIG.
pub fn mode(mode: Option<Mode>) -> String {
    mode.map_or_else(|| "none".to_owned(), |mode| mode.to_string())
}

/// The instances of a GPU as a picture, or `-` where there cannot be any.
pub fn drawn(gpu: &Gpu) -> String {
    match gpu.mode {
        Some(mode) if mode.is_on() => picture(&gpu.layout(), gpu.board.placement_units),
        _ => "-".to_owned(),
    }
}

fn all_holders(gpu: &Gpu) -> impl Iterator<Item = &Holder> {
    let slices = gpu.instances.iter().flat_map(|instance| &instance.compute);
    gpu.holders
        .iter()
        .chain(slices.flat_map(|slice| &slice.holders))
}

/// `python3 (pid 4711)`, several with commas; `-` for none.
fn holders<'a>(holders: impl IntoIterator<Item = &'a Holder>) -> String {
    let name = |holder: &Holder| match holder.name.as_str() {
        "" => format!("pid {}", holder.pid),
        name => format!("{name} (pid {})", holder.pid),
    };
    let names: std::collections::BTreeSet<String> = holders.into_iter().map(name).collect();
    if names.is_empty() {
        return "-".to_owned();
    }
    names.into_iter().collect::<Vec<_>>().join(", ")
}

fn slices(inventory: &Inventory) -> Table {
    let header = [
        "GPU",
        "INSTANCE",
        "PROFILE",
        "PLACEMENT",
        "SLICE",
        "PROFILE",
        "UUID",
        "IN USE BY",
    ];
    let mut table = Table::new(&header);
    for gpu in &inventory.gpus {
        for instance in &gpu.instances {
            let place = [
                gpu.index.to_string(),
                instance.id.to_string(),
                instance.profile.to_string(),
                instance.placement.to_string(),
            ];
            slice_rows(&mut table, &place, instance);
        }
    }
    table
}

fn slice_rows(table: &mut Table, place: &[String; 4], instance: &GpuInstance) {
    let [gpu, id, profile, placement] = place.clone();
    if instance.compute.is_empty() {
        let none = || "-".to_owned();
        table.row([gpu, id, profile, placement, none(), none(), none(), none()]);
        return;
    }
    for slice in &instance.compute {
        table.row([
            gpu.clone(),
            id.clone(),
            profile.clone(),
            placement.clone(),
            slice.id.to_string(),
            slice.profile.to_string(),
            slice
                .uuid
                .as_ref()
                .map_or_else(|| "-".to_owned(), ToString::to_string),
            holders(&slice.holders),
        ]);
    }
}

/// The lines of `nvidia-smi -L`: MIG devices in the driver's order, which is that of the ids.
fn nvidia_smi(inventory: &Inventory) -> String {
    let mut text = String::new();
    for gpu in &inventory.gpus {
        text.push_str(&format!(
            "GPU {}: {} (UUID: {})\n",
            gpu.index, gpu.name, gpu.uuid
        ));
        let mut instances: Vec<&GpuInstance> = gpu.instances.iter().collect();
        instances.sort_by_key(|instance| instance.id);
        let slices = instances.into_iter().flat_map(|instance| &instance.compute);
        let devices = slices.filter_map(|slice| Some((&slice.profile, slice.uuid.as_ref()?)));
        for (number, (profile, uuid)) in devices.enumerate() {
            let profile = profile.to_string();
            text.push_str(&format!(
                "  MIG {profile:<11} Device {number:>2}: (UUID: {uuid})\n"
            ));
        }
    }
    text
}

/// What programs get. Version 1.
#[derive(Serialize)]
struct ListReport<'a> {
    version: &'static str,
    driver_version: &'a str,
    cuda_version: String,
    gpus: Vec<GpuReport<'a>>,
    /// Indices of GPUs that fell off the bus.
    lost: &'a [u32],
}

#[derive(Serialize)]
struct GpuReport<'a> {
    index: u32,
    uuid: &'a GpuUuid,
    name: &'a str,
    board: &'a str,
    pci_bus_id: &'a str,
    pci_device: String,
    pci_subsystem: String,
    minor: Option<u32>,
    numa_node: Option<u32>,
    memory_mib: u64,
    compute_capability: String,
    mode: Option<Mode>,
    instances: &'a [GpuInstance],
    holders: &'a [Holder],
}

impl<'a> ListReport<'a> {
    fn of(inventory: &'a Inventory) -> Self {
        let (major, minor) = inventory.cuda_version;
        Self {
            version: "v1",
            driver_version: &inventory.driver_version,
            cuda_version: format!("{major}.{minor}"),
            gpus: inventory.gpus.iter().map(GpuReport::of).collect(),
            lost: &inventory.lost,
        }
    }
}

impl<'a> GpuReport<'a> {
    fn of(gpu: &'a Gpu) -> Self {
        let (major, minor) = gpu.compute_capability;
        Self {
            index: gpu.index,
            uuid: &gpu.uuid,
            name: &gpu.name,
            board: &gpu.board.key,
            pci_bus_id: &gpu.pci_bus_id,
            pci_device: gpu.pci_device.to_string(),
            pci_subsystem: gpu.pci_subsystem.to_string(),
            minor: gpu.minor,
            numa_node: gpu.numa_node,
            memory_mib: gpu.memory_mib,
            compute_capability: format!("{major}.{minor}"),
            mode: gpu.mode,
            instances: &gpu.instances,
            holders: &gpu.holders,
        }
    }
}
