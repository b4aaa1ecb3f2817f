// SPDX-License-Identifier: Apache-2.0
//! Who a device is, and its memory.

use geometry::Board;
use gpu::sys::*;

use super::{Answer, Out, Simulated, version};
use crate::code::{ARGUMENT_VERSION_MISMATCH, NOT_SUPPORTED};
use crate::simulated::{Device, text_array};

/// What a process that holds a device is said to use of its memory, in bytes.
pub const HOLDER_MEMORY: u64 = 512 << 20;
const MIB: u64 = 1 << 20;

fn product(board: &Board) -> &str {
    board.product_names.first().unwrap_or(&board.key)
}

pub fn nvmlDeviceGetName(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    name: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    let world = sim.world()?;
    let device = world.device(device)?;
    let board = device.gpu.board()?;
    match device.mig {
        None => name.put_text(length, product(board)),
        Some((instance, compute)) => {
            let profile = device.gpu.profile_of(instance)?;
            let slices = device.gpu.compute_profile_of(instance, compute)?.slices;
            let profile = profile
                .name
                .with_compute(slices)
                .unwrap_or(profile.name.clone());
            name.put_text(length, &format!("{} MIG {profile}", product(board)))
        }
    }
}

pub fn nvmlDeviceGetUUID(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    uuid: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    let world = sim.world()?;
    let device = world.device(device)?;
    match device.mig {
        None => uuid.put_text(length, device.gpu.uuid.as_str()),
        Some((gi, ci)) => uuid.put_text(length, device.gpu.mig_uuid(gi, ci).as_str()),
    }
}

pub fn nvmlDeviceGetMinorNumber(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    minor_number: Out<c_uint>,
) -> Answer<()> {
    minor_number.put(sim.world()?.whole(device)?.1.minor)
}

/// Of a MIG device, its index among those of its GPU.
pub fn nvmlDeviceGetIndex(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    index: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let device = world.device(device)?;
    let Some((_, wanted)) = device.mig else {
        return index.put(device.index);
    };
    let mut all = device.gpu.mig_devices();
    let at = all.position(|(_, compute)| compute.serial == wanted.serial);
    index.put(at.unwrap_or_default() as c_uint)
}

pub fn nvmlDeviceGetPciInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    pci: Out<nvmlPciInfo_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let gpu = world.device(device)?.gpu;
    let id = gpu.board()?.pci_devices.first().map_or(0x10DE, |pci| pci.0);
    pci.put(nvmlPciInfo_t {
        busIdLegacy: text_array(&gpu.pci_bus_id()[4..]),
        domain: 0,
        bus: gpu.bus.into(),
        device: 0,
        pciDeviceId: id,
        // NVIDIA gives its own boards a subsystem id of theirs; which one matters to nobody here.
        pciSubSystemId: 0x16C1_10DE,
        busId: text_array(&gpu.pci_bus_id()),
    })
}

pub fn nvmlDeviceGetPciInfo_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    pci: Out<nvmlPciInfo_t>,
) -> Answer<()> {
    nvmlDeviceGetPciInfo(sim, device, pci)
}

pub fn nvmlDeviceGetPciInfo_v3(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    pci: Out<nvmlPciInfo_t>,
) -> Answer<()> {
    nvmlDeviceGetPciInfo(sim, device, pci)
}

pub fn nvmlDeviceGetSerial(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    serial: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    serial.put_text(length, &sim.world()?.whole(device)?.1.serial)
}

pub fn nvmlDeviceGetBoardPartNumber(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    part_number: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    part_number.put_text(length, "900-00000-0000-000")
}

pub fn nvmlDeviceGetBoardId(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    board_id: Out<c_uint>,
) -> Answer<()> {
    board_id.put(u32::from(sim.world()?.whole(device)?.1.bus) << 8)
}

pub fn nvmlDeviceGetBrand(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    kind: Out<nvmlBrandType_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let tesla = product(world.device(device)?.gpu.board()?).starts_with("Tesla");
    kind.put(match tesla {
        true => nvmlBrandType_enum_NVML_BRAND_TESLA,
        false => nvmlBrandType_enum_NVML_BRAND_NVIDIA,
    })
}

pub fn nvmlDeviceGetArchitecture(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    arch: Out<nvmlDeviceArchitecture_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let board = world.device(device)?.gpu.board()?;
    arch.put(
        match board.architecture.split(' ').next().unwrap_or_default() {
            "Volta" => NVML_DEVICE_ARCH_VOLTA,
            "Turing" => NVML_DEVICE_ARCH_TURING,
            "Ampere" => NVML_DEVICE_ARCH_AMPERE,
            "Ada" => NVML_DEVICE_ARCH_ADA,
            "Hopper" => NVML_DEVICE_ARCH_HOPPER,
            "Blackwell" => NVML_DEVICE_ARCH_BLACKWELL,
            _ => NVML_DEVICE_ARCH_UNKNOWN,
        },
    )
}

pub fn nvmlDeviceGetCudaComputeCapability(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    major: Out<c_int>,
    minor: Out<c_int>,
) -> Answer<()> {
    let world = sim.world()?;
    let board = world.device(device)?.gpu.board()?;
    // Of a board of which nobody has published it, the architecture's usual one.
    let usual = if board.architecture.starts_with("Blackwell") {
        (10, 0)
    } else {
        (9, 0)
    };
    let capability = board.compute_capability.unwrap_or(usual);
    major.put(capability.0.into())?;
    minor.put(capability.1.into())
}

pub fn nvmlDeviceGetNumaNodeId(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    node: Out<c_uint>,
) -> Answer<()> {
    node.put(sim.world()?.whole(device)?.1.numa_node)
}

pub fn nvmlDeviceGetVbiosVersion(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    version: Out<c_char>,
    length: c_uint,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    version.put_text(length, "96.00.00.00.01")
}

pub fn nvmlDeviceGetVirtualizationMode(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    mode: Out<nvmlGpuVirtualizationMode_t>,
) -> Answer<()> {
    sim.world()?.device(device)?;
    mode.put(nvmlGpuVirtualizationMode_NVML_GPU_VIRTUALIZATION_MODE_NONE)
}

pub fn nvmlDeviceGetNumGpuCores(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    num_cores: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let board = world.whole(device)?.1.board()?;
    let processors = board.profiles.last().and_then(|largest| largest.sm_count);
    // Compute capability 8.0 has 64 cores a multiprocessor, later ones 128 (CUDA's guide).
    let each = if board.compute_capability == Some((8, 0)) {
        64
    } else {
        128
    };
    num_cores.put(u32::from(processors.ok_or(NOT_SUPPORTED)?) * each)
}

pub fn nvmlDeviceGetMultiGpuBoard(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    multi_gpu_bool: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    multi_gpu_bool.put(0)
}

/// Memory in bytes: total and used.
fn memory(sim: &Simulated, device: Device<'_>) -> Answer<(u64, u64)> {
    let gpu = device.gpu;
    let total = match device.mig {
        None => gpu.memory_mib,
        Some((instance, _)) => gpu
            .board()?
            .nominal_profile_memory_mib(gpu.profile_of(instance)?),
    };
    let holders = super::processes::holders(sim, device).len() as u64;
    Ok((total * MIB, (holders * HOLDER_MEMORY).min(total * MIB)))
}

pub fn nvmlDeviceGetMemoryInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    info: Out<nvmlMemory_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (total, used) = memory(sim, world.device(device)?)?;
    info.put(nvmlMemory_t {
        total,
        free: total - used,
        used,
    })
}

pub fn nvmlDeviceGetMemoryInfo_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    info: Out<nvmlMemory_v2_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (total, used) = memory(sim, world.device(device)?)?;
    let known = version::<nvmlMemory_v2_t>(2);
    if info.cast::<c_uint>().get()? != known {
        return Err(ARGUMENT_VERSION_MISMATCH);
    }
    info.put(nvmlMemory_v2_t {
        version: known,
        total,
        reserved: 0,
        free: total - used,
        used,
    })
}

pub fn nvmlDeviceGetBAR1MemoryInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    info: Out<nvmlBAR1Memory_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (total, _) = memory(sim, world.device(device)?)?;
    let total = total.next_power_of_two();
    info.put(nvmlBAR1Memory_t {
        bar1Total: total,
        bar1Free: total - MIB,
        bar1Used: MIB,
    })
}
