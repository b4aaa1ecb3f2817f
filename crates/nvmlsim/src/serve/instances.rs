// SPDX-License-Identifier: Apache-2.0
//! Creating, destroying, listing and describing instances.

use gpu::sys::*;
use units::Placement;

use super::{Answer, In, Out, Simulated};
use crate::code::{IN_USE, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::holders::Target;
use crate::simulated::Id;
use crate::world::{Compute, Gpu, Instance};

fn instance_id(gpu: u32, instance: &Instance) -> Id {
    Id::GpuInstance {
        gpu,
        instance: instance.id,
        serial: instance.serial,
    }
}

fn compute_id(gpu: u32, instance: &Instance, compute: &Compute) -> Id {
    Id::Compute {
        gpu,
        instance: instance.id,
        compute: compute.id,
        serial: compute.serial,
    }
}

/// A place as C gives it; one that is out of any range is no place of any profile.
fn place(start: c_uint, size: c_uint) -> Answer<Option<Placement>> {
    match (u8::try_from(start), u8::try_from(size)) {
        (Ok(start), Ok(size)) => Ok(Some(Placement::new(start, size))),
        _ => Err(INVALID_ARGUMENT),
    }
}

fn mig_is_on(gpu: &Gpu) -> Answer<()> {
    if gpu.mig_current {
        Ok(())
    } else {
        Err(NOT_SUPPORTED)
    }
}

pub fn nvmlDeviceCreateGpuInstance(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    gpu_instance: Out<nvmlGpuInstance_t>,
) -> Answer<()> {
    create_gpu_instance(sim, device, profile_id, None, gpu_instance)
}

pub fn nvmlDeviceCreateGpuInstanceWithPlacement(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    placement: In<nvmlGpuInstancePlacement_t>,
    gpu_instance: Out<nvmlGpuInstance_t>,
) -> Answer<()> {
    let wanted = placement.get()?;
    let place = place(wanted.start, wanted.size)?;
    create_gpu_instance(sim, device, profile_id, place, gpu_instance)
}

fn create_gpu_instance(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile: u32,
    place: Option<Placement>,
    gpu_instance: Out<nvmlGpuInstance_t>,
) -> Answer<()> {
    if gpu_instance.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let id = sim.change(|world| {
        let (gpu, _) = world.whole(device)?;
        let id = world.create_gpu_instance(gpu, profile, place)?;
        Ok(instance_id(gpu, world.gpu(gpu)?.instance(id)?))
    })?;
    gpu_instance.put(id.handle())
}

pub fn nvmlGpuInstanceDestroy(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
) -> Answer<()> {
    sim.change(|world| {
        let (gpu, _, instance) = world.gpu_instance(gpu_instance)?;
        let id = instance.id;
        world.destroy_gpu_instance(gpu, id)
    })
}

/// The instances of a profile, by id. The caller's array holds as many as the profile allows.
pub fn nvmlDeviceGetGpuInstances(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    gpu_instances: Out<nvmlGpuInstance_t>,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (index, gpu) = world.whole(device)?;
    mig_is_on(gpu)?;
    gpu.board()?.profile(profile_id).ok_or(INVALID_ARGUMENT)?;
    let of_profile = gpu
        .instances
        .iter()
        .filter(|instance| instance.profile == profile_id);
    count.put(of_profile.clone().count() as c_uint)?;
    gpu_instances.put_all(of_profile.map(|instance| instance_id(index, instance).handle()))
}

pub fn nvmlDeviceGetGpuInstanceById(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    id: c_uint,
    gpu_instance: Out<nvmlGpuInstance_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (index, gpu) = world.whole(device)?;
    mig_is_on(gpu)?;
    gpu_instance.put(instance_id(index, gpu.instance(id)?).handle())
}

pub fn nvmlGpuInstanceGetInfo(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    info: Out<nvmlGpuInstanceInfo_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (gpu, _, instance) = world.gpu_instance(gpu_instance)?;
    info.put(nvmlGpuInstanceInfo_t {
        device: world.gpu_id(gpu).handle(),
        id: instance.id,
        profileId: instance.profile,
        placement: nvmlGpuInstancePlacement_t {
            start: instance.placement.start.into(),
            size: instance.placement.size.into(),
        },
    })
}

pub fn nvmlGpuInstanceCreateComputeInstance(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile_id: c_uint,
    compute_instance: Out<nvmlComputeInstance_t>,
) -> Answer<()> {
    create_compute_instance(sim, gpu_instance, profile_id, None, compute_instance)
}

pub fn nvmlGpuInstanceCreateComputeInstanceWithPlacement(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile_id: c_uint,
    placement: In<nvmlComputeInstancePlacement_t>,
    compute_instance: Out<nvmlComputeInstance_t>,
) -> Answer<()> {
    let wanted = placement.get()?;
    let place = place(wanted.start, wanted.size)?;
    create_compute_instance(sim, gpu_instance, profile_id, place, compute_instance)
}

fn create_compute_instance(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile: u32,
    place: Option<Placement>,
    compute_instance: Out<nvmlComputeInstance_t>,
) -> Answer<()> {
    if compute_instance.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let id = sim.change(|world| {
        let (gpu, _, instance) = world.gpu_instance(gpu_instance)?;
        let instance = instance.id;
        let id = world.create_compute_instance(gpu, instance, profile, place)?;
        let instance = world.gpu(gpu)?.instance(instance)?;
        Ok(compute_id(gpu, instance, instance.compute(id)?))
    })?;
    compute_instance.put(id.handle())
}

pub fn nvmlComputeInstanceDestroy(
    sim: &Simulated,
    compute_instance: Out<nvmlComputeInstance_st>,
) -> Answer<()> {
    sim.change(|world| {
        let (gpu, instance, compute) = world.compute_instance(compute_instance)?;
        let (instance, compute) = (instance.id, compute.id);
        if !sim
            .handle()
            .holders(Target::compute(gpu, instance, compute))
            .is_empty()
        {
            return Err(IN_USE);
        }
        world.destroy_compute_instance(gpu, instance, compute)
    })
}

/// The compute instances of a profile, by id. The caller's array holds as many as the profile
/// allows.
pub fn nvmlGpuInstanceGetComputeInstances(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile_id: c_uint,
    compute_instances: Out<nvmlComputeInstance_t>,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (gpu, device, instance) = world.gpu_instance(gpu_instance)?;
    let mut known = device.profile_of(instance)?.compute.iter();
    known
        .find(|known| known.driver_id == profile_id)
        .ok_or(INVALID_ARGUMENT)?;
    let of_profile = instance
        .compute
        .iter()
        .filter(|compute| compute.profile == profile_id);
    count.put(of_profile.clone().count() as c_uint)?;
    compute_instances.put_all(of_profile.map(|compute| compute_id(gpu, instance, compute).handle()))
}

pub fn nvmlGpuInstanceGetComputeInstanceById(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    id: c_uint,
    compute_instance: Out<nvmlComputeInstance_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (gpu, _, instance) = world.gpu_instance(gpu_instance)?;
    compute_instance.put(compute_id(gpu, instance, instance.compute(id)?).handle())
}

pub fn nvmlComputeInstanceGetInfo(
    sim: &Simulated,
    compute_instance: Out<nvmlComputeInstance_st>,
    info: Out<nvmlComputeInstanceInfo_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (gpu, instance, compute) = world.compute_instance(compute_instance)?;
    info.put(nvmlComputeInstanceInfo_t {
        device: world.gpu_id(gpu).handle(),
        gpuInstance: instance_id(gpu, instance).handle(),
        id: compute.id,
        profileId: compute.profile,
        placement: nvmlComputeInstancePlacement_t {
            start: compute.placement.start.into(),
            size: compute.placement.size.into(),
        },
    })
}

pub fn nvmlComputeInstanceGetInfo_v2(
    sim: &Simulated,
    compute_instance: Out<nvmlComputeInstance_st>,
    info: Out<nvmlComputeInstanceInfo_t>,
) -> Answer<()> {
    nvmlComputeInstanceGetInfo(sim, compute_instance, info)
}
