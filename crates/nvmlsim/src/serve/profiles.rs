// SPDX-License-Identifier: Apache-2.0
//! What profiles there are, where they can sit, and how many more fit.

use geometry::{Board, ComputeProfile, Profile};
use gpu::sys::*;
use units::Placement;

use super::{Answer, Out, Simulated, version};
use crate::code::{ARGUMENT_VERSION_MISMATCH, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::simulated::text_array;
use crate::world::{Gpu, World};

/// The highest profile enum of `nvml.h` 13: `3_SLICE_GFX`.
const LAST_PROFILE: u32 = 17;
/// The first driver branch taken to answer with MIG off. R535 cannot (mig-parted), R595 can (the
/// open kernel modules); where between is not known.
const FIRST_TO_ANSWER_WHILE_OFF: u32 = 550;

/// Whether profiles can be asked for while MIG is off (NVML's field 199).
pub fn answers_while_off(world: &World) -> bool {
    let branch = world
        .driver_version
        .split('.')
        .next()
        .and_then(|branch| branch.parse().ok());
    branch.is_none_or(|branch: u32| branch >= FIRST_TO_ANSWER_WHILE_OFF)
}

/// The board's tables, if the driver tells them now.
fn tables<'w>(world: &World, gpu: &'w Gpu) -> Answer<&'w Board> {
    let board = gpu.board()?;
    let told = board.has_mig() && (gpu.mig_current || answers_while_off(world));
    if told { Ok(board) } else { Err(NOT_SUPPORTED) }
}

fn by_enum(board: &Board, profile: c_uint) -> Answer<&Profile> {
    if profile > LAST_PROFILE {
        return Err(INVALID_ARGUMENT);
    }
    let mut all = board.profiles.iter();
    all.find(|known| known.nvml_enum == profile)
        .ok_or(NOT_SUPPORTED)
}

/// Multiprocessors of a compute instance; of one smaller than its GPU instance on a board of which
/// nobody has published it, its share.
pub fn processors(profile: &Profile, compute: &ComputeProfile) -> c_uint {
    let whole = profile.sm_count.unwrap_or_default();
    let share = whole / u16::from(profile.slices.max(1)) * u16::from(compute.slices);
    let full = compute.slices == profile.slices;
    compute
        .sm_count
        .unwrap_or(if full { whole } else { share })
        .into()
}

pub fn nvmlDeviceGetGpuInstanceProfileInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile: c_uint,
    info: Out<nvmlGpuInstanceProfileInfo_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    let board = tables(&world, gpu)?;
    let profile = by_enum(board, profile)?;
    let engines = profile.engines;
    info.put(nvmlGpuInstanceProfileInfo_t {
        id: profile.driver_id,
        isP2pSupported: 0,
        sliceCount: profile.slices.into(),
        instanceCount: profile.max_instances.into(),
        multiprocessorCount: profile.sm_count.unwrap_or_default().into(),
        copyEngineCount: engines.copy.into(),
        decoderCount: engines.decoders.into(),
        encoderCount: engines.encoders.into(),
        jpegCount: engines.jpeg.into(),
        ofaCount: engines.ofa.into(),
        memorySizeMB: board.nominal_profile_memory_mib(profile),
    })
}

pub fn nvmlDeviceGetGpuInstanceProfileInfoV(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile: c_uint,
    info: Out<nvmlGpuInstanceProfileInfo_v2_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    let board = tables(&world, gpu)?;
    versioned_info(board, by_enum(board, profile)?, info)
}

/// By driver id instead of enum.
pub fn nvmlDeviceGetGpuInstanceProfileInfoByIdV(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    info: Out<nvmlGpuInstanceProfileInfo_v2_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    let board = tables(&world, gpu)?;
    versioned_info(
        board,
        board.profile(profile_id).ok_or(INVALID_ARGUMENT)?,
        info,
    )
}

/// Version 2 adds the name, version 3 the capabilities.
fn versioned_info(
    board: &Board,
    profile: &Profile,
    info: Out<nvmlGpuInstanceProfileInfo_v2_t>,
) -> Answer<()> {
    let engines = profile.engines;
    let v2 = nvmlGpuInstanceProfileInfo_v2_t {
        version: version::<nvmlGpuInstanceProfileInfo_v2_t>(2),
        id: profile.driver_id,
        isP2pSupported: 0,
        sliceCount: profile.slices.into(),
        instanceCount: profile.max_instances.into(),
        multiprocessorCount: profile.sm_count.unwrap_or_default().into(),
        copyEngineCount: engines.copy.into(),
        decoderCount: engines.decoders.into(),
        encoderCount: engines.encoders.into(),
        jpegCount: engines.jpeg.into(),
        ofaCount: engines.ofa.into(),
        memorySizeMB: board.nominal_profile_memory_mib(profile),
        name: text_array(&format!("MIG {}", profile.name)),
    };
    let v3 = version::<nvmlGpuInstanceProfileInfo_v3_t>(3);
    match info.cast::<c_uint>().get()? {
        tag if tag == v2.version => info.put(v2),
        tag if tag == v3 => info.cast().put(nvmlGpuInstanceProfileInfo_v3_t {
            version: v3,
            id: v2.id,
            sliceCount: v2.sliceCount,
            instanceCount: v2.instanceCount,
            multiprocessorCount: v2.multiprocessorCount,
            copyEngineCount: v2.copyEngineCount,
            decoderCount: v2.decoderCount,
            encoderCount: v2.encoderCount,
            jpegCount: v2.jpegCount,
            ofaCount: v2.ofaCount,
            memorySizeMB: v2.memorySizeMB,
            name: v2.name,
            // Bit 0 is peer-to-peer, which no capture has; bit 1 is graphics.
            capabilities: if profile.name.to_string().contains("+gfx") {
                2
            } else {
                0
            },
        }),
        _ => Err(ARGUMENT_VERSION_MISMATCH),
    }
}

/// All places that a profile can have, whatever is there. A null array asks for their number.
fn put_places<T>(
    places: &[Placement],
    array: Out<T>,
    count: Out<c_uint>,
    make: fn(c_uint, c_uint) -> T,
) -> Answer<()> {
    count.put(places.len() as c_uint)?;
    if array.is_null() {
        return Ok(());
    }
    array.put_all(
        places
            .iter()
            .map(|place| make(place.start.into(), place.size.into())),
    )
}

pub fn nvmlDeviceGetGpuInstancePossiblePlacements(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    placements: Out<nvmlGpuInstancePlacement_t>,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu) = world.whole(device)?;
    let profile = tables(&world, gpu)?
        .profile(profile_id)
        .ok_or(INVALID_ARGUMENT)?;
    put_places(&profile.placements, placements, count, |start, size| {
        nvmlGpuInstancePlacement_t { start, size }
    })
}

pub fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    placements: Out<nvmlGpuInstancePlacement_t>,
    count: Out<c_uint>,
) -> Answer<()> {
    nvmlDeviceGetGpuInstancePossiblePlacements(sim, device, profile_id, placements, count)
}

pub fn nvmlDeviceGetGpuInstanceRemainingCapacity(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    profile_id: c_uint,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    count.put(world.whole(device)?.1.remaining(profile_id)?)
}

fn compute_by_enum(profile: &Profile, wanted: c_uint, engines: c_uint) -> Answer<&ComputeProfile> {
    if wanted >= NVML_COMPUTE_INSTANCE_PROFILE_COUNT || engines > 0 {
        return Err(INVALID_ARGUMENT);
    }
    let mut all = profile.compute.iter();
    all.find(|known| known.nvml_enum == wanted)
        .ok_or(NOT_SUPPORTED)
}

pub fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile: c_uint,
    eng_profile: c_uint,
    info: Out<nvmlComputeInstanceProfileInfo_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu, instance) = world.gpu_instance(gpu_instance)?;
    let whole = gpu.profile_of(instance)?;
    let compute = compute_by_enum(whole, profile, eng_profile)?;
    let engines = whole.engines;
    info.put(nvmlComputeInstanceProfileInfo_t {
        id: compute.driver_id,
        sliceCount: compute.slices.into(),
        instanceCount: compute.max_instances.into(),
        multiprocessorCount: processors(whole, compute),
        sharedCopyEngineCount: engines.copy.into(),
        sharedDecoderCount: engines.decoders.into(),
        sharedEncoderCount: engines.encoders.into(),
        sharedJpegCount: engines.jpeg.into(),
        sharedOfaCount: engines.ofa.into(),
    })
}

pub fn nvmlGpuInstanceGetComputeInstanceProfileInfoV(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile: c_uint,
    eng_profile: c_uint,
    info: Out<nvmlComputeInstanceProfileInfo_v2_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu, instance) = world.gpu_instance(gpu_instance)?;
    let whole = gpu.profile_of(instance)?;
    let compute = compute_by_enum(whole, profile, eng_profile)?;
    let engines = whole.engines;
    let name = whole
        .name
        .with_compute(compute.slices)
        .unwrap_or(whole.name.clone());
    let v2 = nvmlComputeInstanceProfileInfo_v2_t {
        version: version::<nvmlComputeInstanceProfileInfo_v2_t>(2),
        id: compute.driver_id,
        sliceCount: compute.slices.into(),
        instanceCount: compute.max_instances.into(),
        multiprocessorCount: processors(whole, compute),
        sharedCopyEngineCount: engines.copy.into(),
        sharedDecoderCount: engines.decoders.into(),
        sharedEncoderCount: engines.encoders.into(),
        sharedJpegCount: engines.jpeg.into(),
        sharedOfaCount: engines.ofa.into(),
        name: text_array(&format!("MIG {name}")),
    };
    let v3 = version::<nvmlComputeInstanceProfileInfo_v3_t>(3);
    match info.cast::<c_uint>().get()? {
        tag if tag == v2.version => info.put(v2),
        tag if tag == v3 => info.cast().put(nvmlComputeInstanceProfileInfo_v3_t {
            version: v3,
            id: v2.id,
            sliceCount: v2.sliceCount,
            instanceCount: v2.instanceCount,
            multiprocessorCount: v2.multiprocessorCount,
            sharedCopyEngineCount: v2.sharedCopyEngineCount,
            sharedDecoderCount: v2.sharedDecoderCount,
            sharedEncoderCount: v2.sharedEncoderCount,
            sharedJpegCount: v2.sharedJpegCount,
            sharedOfaCount: v2.sharedOfaCount,
            name: v2.name,
            capabilities: 0,
        }),
        _ => Err(ARGUMENT_VERSION_MISMATCH),
    }
}

pub fn nvmlGpuInstanceGetComputeInstancePossiblePlacements(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile_id: c_uint,
    placements: Out<nvmlComputeInstancePlacement_t>,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu, instance) = world.gpu_instance(gpu_instance)?;
    let mut known = gpu.profile_of(instance)?.compute.iter();
    let profile = known
        .find(|known| known.driver_id == profile_id)
        .ok_or(INVALID_ARGUMENT)?;
    put_places(&profile.placements, placements, count, |start, size| {
        nvmlComputeInstancePlacement_t { start, size }
    })
}

pub fn nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
    sim: &Simulated,
    gpu_instance: Out<nvmlGpuInstance_st>,
    profile_id: c_uint,
    count: Out<c_uint>,
) -> Answer<()> {
    let world = sim.world()?;
    let (_, gpu, instance) = world.gpu_instance(gpu_instance)?;
    count.put(gpu.remaining_compute(instance.id, profile_id)?)
}
