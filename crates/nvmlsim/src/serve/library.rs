// SPDX-License-Identifier: Apache-2.0
//! The library, the system, and handles of devices.

use gpu::sys::*;

use super::{Answer, In, Out, Simulated};
use crate::code::{INVALID_ARGUMENT, NOT_FOUND};
use crate::simulated::Id;
use crate::world::World;

pub fn nvmlInit(sim: &Simulated) -> Answer<()> {
    sim.init()
}

pub fn nvmlInit_v2(sim: &Simulated) -> Answer<()> {
    sim.init()
}

pub fn nvmlInitWithFlags(sim: &Simulated, _flags: c_uint) -> Answer<()> {
    sim.init()
}

pub fn nvmlShutdown(sim: &Simulated) -> Answer<()> {
    sim.shut_down()
}

pub fn nvmlSystemGetDriverVersion(
    sim: &Simulated,
    version: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    version.put_text(length, &sim.world()?.driver_version)
}

pub fn nvmlSystemGetNVMLVersion(
    sim: &Simulated,
    version: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    let world = sim.world()?;
    version.put_text(
        length,
        &format!("{}.{}", world.cuda_version.0, world.driver_version),
    )
}

pub fn nvmlSystemGetCudaDriverVersion(sim: &Simulated, version: Out<c_int>) -> Answer<()> {
    let (major, minor) = sim.world()?.cuda_version;
    version.put(i32::from(major) * 1000 + i32::from(minor) * 10)
}

pub fn nvmlSystemGetCudaDriverVersion_v2(sim: &Simulated, version: Out<c_int>) -> Answer<()> {
    nvmlSystemGetCudaDriverVersion(sim, version)
}

pub fn nvmlSystemGetProcessName(
    _sim: &Simulated,
    pid: c_uint,
    name: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).map_err(|_| NOT_FOUND)?;
    name.put_text(length, command.trim_end())
}

pub fn nvmlDeviceGetCount(sim: &Simulated, count: Out<c_uint>) -> Answer<()> {
    count.put(sim.world()?.gpus.len() as c_uint)
}

pub fn nvmlDeviceGetCount_v2(sim: &Simulated, count: Out<c_uint>) -> Answer<()> {
    nvmlDeviceGetCount(sim, count)
}

pub fn nvmlDeviceGetHandleByIndex(
    sim: &Simulated,
    index: c_uint,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    let world = sim.world()?;
    world.gpu(index)?;
    device.put(world.gpu_id(index).handle())
}

pub fn nvmlDeviceGetHandleByIndex_v2(
    sim: &Simulated,
    index: c_uint,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    nvmlDeviceGetHandleByIndex(sim, index, device)
}

pub fn nvmlDeviceGetHandleByUUID(
    sim: &Simulated,
    uuid: In<c_char>,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let id = by_uuid(&world, uuid.text()?)?;
    device.put(id.handle())
}

fn by_uuid(world: &World, uuid: &str) -> Answer<Id> {
    for (index, gpu) in (0u32..).zip(&world.gpus) {
        if gpu.uuid.as_str() == uuid {
            return world.gpu(index).map(|_| world.gpu_id(index));
        }
        let mut slices = gpu.mig_devices();
        let slice = slices.find(|(gi, ci)| gpu.mig_uuid(gi, ci).as_str() == uuid);
        if let Some((instance, compute)) = slice {
            return world.gpu(index).map(|_| mig_id(index, instance, compute));
        }
    }
    Err(NOT_FOUND)
}

/// The handle of a compute instance as a device.
pub fn mig_id(gpu: u32, instance: &crate::world::Instance, compute: &crate::world::Compute) -> Id {
    Id::Mig {
        gpu,
        instance: instance.id,
        compute: compute.id,
        serial: compute.serial,
    }
}

pub fn nvmlDeviceGetHandleByPciBusId(
    sim: &Simulated,
    pci_bus_id: In<c_char>,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    let world = sim.world()?;
    // `domain:bus:device.function` in hexadecimal, of which the domain may have 4 or 8 digits.
    let text = pci_bus_id.text()?;
    let bus = text
        .rsplit(':')
        .nth(1)
        .and_then(|bus| u8::from_str_radix(bus, 16).ok());
    let bus = bus.ok_or(INVALID_ARGUMENT)?;
    let found = (0u32..).zip(&world.gpus).find(|(_, gpu)| gpu.bus == bus);
    let (index, _) = found.ok_or(NOT_FOUND)?;
    world.gpu(index)?;
    device.put(world.gpu_id(index).handle())
}

pub fn nvmlDeviceGetHandleByPciBusId_v2(
    sim: &Simulated,
    pci_bus_id: In<c_char>,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    nvmlDeviceGetHandleByPciBusId(sim, pci_bus_id, device)
}
