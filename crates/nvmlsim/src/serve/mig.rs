// SPDX-License-Identifier: Apache-2.0
//! MIG mode, and compute instances as devices.

use gpu::NvmlCode;
use gpu::sys::*;

use super::library::mig_id;
use super::{Answer, Out, Simulated};
use crate::code::{INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED};

pub fn nvmlDeviceGetMigMode(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    current_mode: Out<c_uint>,
    pending_mode: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    if !gpu.board()?.has_mig() {
        return Err(NOT_SUPPORTED);
    }
    current_mode.put(gpu.mig_current.into())?;
    pending_mode.put(gpu.mig_pending.into())
}

pub fn nvmlDeviceSetMigMode(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    mode: c_uint,
    activation_status: Out<nvmlReturn_t>,
) -> Answer<()> {
    if activation_status.is_null() || mode > 1 {
        return Err(INVALID_ARGUMENT);
    }
    let activation: NvmlCode = sim.change(|world| {
        let (index, _) = world.whole(device)?;
        let held = sim.handle().is_gpu_held(world, index);
        world.set_mode(index, mode == 1, held)
    })?;
    activation_status.put(activation.0)
}

pub fn nvmlDeviceIsMigDeviceHandle(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    is_mig_device: Out<c_uint>,
) -> Answer<()> {
    is_mig_device.put(sim.world()?.device(device)?.mig.is_some().into())
}

pub fn nvmlDeviceGetGpuInstanceId(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    id: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (instance, _) = world.device(device)?.mig.ok_or(NOT_SUPPORTED)?;
    id.put(instance.id)
}

pub fn nvmlDeviceGetComputeInstanceId(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    id: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, compute) = world.device(device)?.mig.ok_or(NOT_SUPPORTED)?;
    id.put(compute.id)
}

/// As many as the board has compute slices; 0 while MIG is off, and on a board without.
pub fn nvmlDeviceGetMaxMigDeviceCount(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    let slices = gpu.board()?.compute_slices;
    count.put(if gpu.mig_current { slices.into() } else { 0 })
}

pub fn nvmlDeviceGetMigDeviceHandleByIndex(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    index: c_uint,
    mig_device: Out<nvmlDevice_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (gpu_index, gpu) = world.whole(device)?;
    if !gpu.board()?.has_mig() {
        return Err(NOT_SUPPORTED);
    }
    let slice = gpu.mig_devices().nth(index as usize);
    let (instance, compute) = slice.ok_or(NOT_FOUND)?;
    mig_device.put(mig_id(gpu_index, instance, compute).handle())
}

pub fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
    sim: &Simulated,
    mig_device: Out<nvmlDevice_st>,
    device: Out<nvmlDevice_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let slice = world.device(mig_device)?;
    slice.slice()?;
    device.put(world.gpu_id(slice.index).handle())
}

pub fn nvmlDeviceGetAttributes(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    attributes: Out<nvmlDeviceAttributes_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let device = world.device(device)?;
    let (instance, compute) = device.mig.ok_or(NOT_SUPPORTED)?;
    let profile = device.gpu.profile_of(instance)?;
    let part = device.gpu.compute_profile_of(instance, compute)?;
    let engines = profile.engines;
    attributes.put(nvmlDeviceAttributes_t {
        multiprocessorCount: super::profiles::processors(profile, part),
        sharedCopyEngineCount: engines.copy.into(),
        sharedDecoderCount: engines.decoders.into(),
        sharedEncoderCount: engines.encoders.into(),
        sharedJpegCount: engines.jpeg.into(),
        sharedOfaCount: engines.ofa.into(),
        gpuInstanceSliceCount: profile.slices.into(),
        computeInstanceSliceCount: part.slices.into(),
        memorySizeMB: device.gpu.board()?.nominal_profile_memory_mib(profile),
    })
}

pub fn nvmlDeviceGetAttributes_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    attributes: Out<nvmlDeviceAttributes_t>,
) -> Answer<()> {
    nvmlDeviceGetAttributes(sim, device, attributes)
}
