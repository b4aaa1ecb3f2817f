// SPDX-License-Identifier: Apache-2.0
//! MIG profiles as the driver tells them.

use geometry::{ComputeProfile, Confidence, Engines, Profile};
use units::{Placement, ProfileName};

use crate::driver::Device;
use crate::error::{Error, NvmlCode};
use crate::names;
use crate::raw::{Answer, ask, ask_counted_list, check, text, version_tag, zeroed};
use crate::sys::*;
use crate::table::Functions;

/// Where a walk over enum values ends, should a driver never say that one is invalid.
const ENUM_LIMIT: u32 = 64;

/// The versions of the profile query, newest first. The first that the driver takes is used.
#[derive(Clone, Copy)]
enum Query {
    V3,
    V2,
    Plain,
}

/// What the versions have in common. Numbers are the driver's, unchecked.
struct Info {
    id: u32,
    slices: u32,
    instances: u32,
    multiprocessors: u32,
    /// Copy, decoder, encoder, JPEG, optical flow.
    engines: [u32; 5],
    memory_mib: u64,
    /// Empty in the plain version.
    name: String,
}

macro_rules! info {
    ($info:expr, $name:expr) => {
        Info {
            id: $info.id,
            slices: $info.sliceCount,
            instances: $info.instanceCount,
            multiprocessors: $info.multiprocessorCount,
            engines: [
                $info.copyEngineCount,
                $info.decoderCount,
                $info.encoderCount,
                $info.jpegCount,
                $info.ofaCount,
            ],
            memory_mib: $info.memorySizeMB,
            name: $name,
        }
    };
}

impl Query {
    fn ask(self, device: &Device<'_>, nvml_enum: u32) -> Answer<Info> {
        let (functions, handle) = (device.functions, device.handle);
        match self {
            Self::V3 => {
                let mut info: nvmlGpuInstanceProfileInfo_v3_t = zeroed();
                info.version = version_tag::<nvmlGpuInstanceProfileInfo_v3_t>(3);
                // SAFETY: the function writes the struct that the version tag names, which is the
                // live local behind the pointer; its signature knows only version 2.
                check(unsafe {
                    let info = (&raw mut info).cast();
                    functions.nvmlDeviceGetGpuInstanceProfileInfoV(handle, nvml_enum, info)
                })?;
                Ok(info!(info, text(&info.name)))
            }
            Self::V2 => {
                let mut info: nvmlGpuInstanceProfileInfo_v2_t = zeroed();
                info.version = version_tag::<nvmlGpuInstanceProfileInfo_v2_t>(2);
                // SAFETY: the struct is a live local and carries the tag of its version.
                check(unsafe {
                    functions.nvmlDeviceGetGpuInstanceProfileInfoV(handle, nvml_enum, &mut info)
                })?;
                Ok(info!(info, text(&info.name)))
            }
            Self::Plain => {
                let info: nvmlGpuInstanceProfileInfo_t = ask!(
                    functions,
                    nvmlDeviceGetGpuInstanceProfileInfo(handle, nvml_enum)
                )?;
                Ok(info!(info, String::new()))
            }
        }
    }

    /// The newest version that the driver takes, found by asking for the first profile. Drivers
    /// answer a version that they do not know with one of several codes.
    fn best(device: &Device<'_>) -> Self {
        let taken = |query: &Self| {
            !matches!(
                query.ask(device, 0),
                Err(NvmlCode::INVALID_ARGUMENT
                    | NvmlCode::FUNCTION_NOT_FOUND
                    | NvmlCode::ARGUMENT_VERSION_MISMATCH)
            )
        };
        [Self::V3, Self::V2]
            .into_iter()
            .find(taken)
            .unwrap_or(Self::Plain)
    }
}

/// Walks enum values from 0 until one is invalid, over those that the GPU has.
fn walk<T>(mut ask: impl FnMut(u32) -> Answer<T>) -> Answer<Vec<(u32, T)>> {
    let mut found = Vec::new();
    for nvml_enum in 0..ENUM_LIMIT {
        match ask(nvml_enum) {
            Ok(answer) => found.push((nvml_enum, answer)),
            Err(NvmlCode::NOT_SUPPORTED) => {}
            Err(NvmlCode::INVALID_ARGUMENT | NvmlCode::FUNCTION_NOT_FOUND) => break,
            Err(code) => return Err(code),
        }
    }
    Ok(found)
}

/// Every GPU instance profile that the driver tells and that can be named, in no order. Empty where
/// it tells none: on old drivers while MIG is off. `known` are the catalogue's, for placements that
/// only root may ask for; compute profiles are left empty.
pub(crate) fn gpu_instance_profiles(
    device: &Device<'_>,
    total_mib: u64,
    known: &[Profile],
) -> Result<Vec<Profile>, Error> {
    let query = Query::best(device);
    let infos = walk(|nvml_enum| query.ask(device, nvml_enum))
        .map_err(device.failed("read the MIG profiles"))?;
    let mut profiles = Vec::new();
    for (nvml_enum, info) in infos {
        let slices = device.small(info.slices, "slices of a profile")?;
        let name = names::from_driver(&info.name)
            .filter(|name| name.gpu_slices() == slices && !name.is_partial())
            .or_else(|| names::computed(nvml_enum, slices, info.memory_mib, total_mib));
        let Some(name) = name else { continue };
        let (placements, confidence) = placements(device, info.id, &name, known)?;
        let [copy, decoders, encoders, jpeg, ofa] = info.engines.map(|n| n.min(255) as u8);
        profiles.push(Profile {
            name,
            driver_id: info.id,
            nvml_enum,
            slices,
            memory_mib: Some(info.memory_mib),
            sm_count: multiprocessors(info.multiprocessors),
            max_instances: device.small(info.instances, "instances of a profile")?,
            engines: Engines {
                copy,
                decoders,
                encoders,
                jpeg,
                ofa,
            },
            placements,
            compute: Vec::new(),
            confidence,
        });
    }
    Ok(profiles)
}

/// Where the driver lets a profile sit; without the right to ask, where the catalogue does.
fn placements(
    device: &Device<'_>,
    driver_id: u32,
    name: &ProfileName,
    known: &[Profile],
) -> Result<(Vec<Placement>, Confidence), Error> {
    let (functions, handle) = (device.functions, device.handle);
    let mut answer: Answer<Vec<nvmlGpuInstancePlacement_t>> = ask_counted_list!(
        functions,
        nvmlDeviceGetGpuInstancePossiblePlacements_v2(handle, driver_id)
    );
    if matches!(answer, Err(NvmlCode::FUNCTION_NOT_FOUND)) {
        answer = ask_counted_list!(
            functions,
            nvmlDeviceGetGpuInstancePossiblePlacements(handle, driver_id)
        );
    }
    let known = known
        .iter()
        .find(|known| known.driver_id == driver_id && known.name == *name);
    match (answer, known) {
        (Ok(entries), _) => {
            let pairs = entries.iter().map(|entry| (entry.start, entry.size));
            Ok((device.placements(pairs)?, Confidence::Driver))
        }
        (Err(NvmlCode::NO_PERMISSION), Some(known)) => {
            Ok((known.placements.clone(), known.confidence))
        }
        (Err(code), _) => Err(device.failed(format!("read the placements of {name}"))(
            code,
        )),
    }
}

/// The compute instance profiles inside an existing GPU instance of this profile; empty where the
/// driver tells none.
pub(crate) fn compute_profiles(
    device: &Device<'_>,
    instance: nvmlGpuInstance_t,
    profile: &Profile,
) -> Result<Vec<ComputeProfile>, Error> {
    let operation = || device.failed(format!("read the compute profiles of {}", profile.name));
    let functions = device.functions;
    let infos = walk(|nvml_enum| -> Answer<nvmlComputeInstanceProfileInfo_t> {
        let engines = NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED;
        ask!(
            functions,
            nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, nvml_enum, engines)
        )
    })
    .map_err(operation())?;
    let mut profiles = Vec::new();
    for (nvml_enum, info) in infos {
        let slices = device.small(info.sliceCount, "slices of a compute profile")?;
        let max_instances = device.small(info.instanceCount, "compute instances of a profile")?;
        let placements: Answer<Vec<nvmlComputeInstancePlacement_t>> = ask_counted_list!(
            functions,
            nvmlGpuInstanceGetComputeInstancePossiblePlacements(instance, info.id)
        );
        let placements = match placements {
            Ok(entries) => {
                device.placements(entries.iter().map(|entry| (entry.start, entry.size)))?
            }
            Err(code) if code.is_absent() || code == NvmlCode::NO_PERMISSION => {
                side_by_side(slices, max_instances)
            }
            Err(code) => return Err(operation()(code)),
        };
        profiles.push(ComputeProfile {
            driver_id: info.id,
            nvml_enum,
            slices,
            max_instances,
            sm_count: multiprocessors(info.multiprocessorCount),
            placements,
        });
    }
    // Of two of full size, the one with all multiprocessors of the instance comes first: it is what
    // `nvidia-smi mig -cgi -C` creates (a capture of a GH200 with 1g.24gb).
    profiles.sort_by_key(|compute| (compute.slices, compute.sm_count != profile.sm_count));
    Ok(profiles)
}

/// The compute instance profiles that a GPU instance of this profile has by NVIDIA's rule: the full
/// size, and every size that fills about half of it or less (2C <= G + 1). Source: the
/// MIG guide and go-nvlib; double-memory `1g` on Hopper: a capture of a GH200.
pub(crate) fn compute_by_rule(profile: &Profile, hopper: bool) -> Vec<ComputeProfile> {
    let double_memory = profile.nvml_enum == NVML_GPU_INSTANCE_PROFILE_1_SLICE_REV2;
    let single = if hopper && double_memory {
        NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE_REV1
    } else {
        NVML_COMPUTE_INSTANCE_PROFILE_1_SLICE
    };
    let whole = profile.slices;
    [
        (1, single),
        (2, NVML_COMPUTE_INSTANCE_PROFILE_2_SLICE),
        (3, NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE),
        (4, NVML_COMPUTE_INSTANCE_PROFILE_4_SLICE),
        (6, NVML_COMPUTE_INSTANCE_PROFILE_6_SLICE),
        (7, NVML_COMPUTE_INSTANCE_PROFILE_7_SLICE),
        (8, NVML_COMPUTE_INSTANCE_PROFILE_8_SLICE),
    ]
    .into_iter()
    .filter(|(slices, _)| *slices == whole || (*slices < whole && 2 * slices <= whole + 1))
    .map(|(slices, nvml_enum)| ComputeProfile {
        driver_id: nvml_enum,
        nvml_enum,
        slices,
        max_instances: whole / slices,
        sm_count: profile.sm_count.filter(|_| slices == whole),
        placements: side_by_side(slices, whole / slices),
    })
    .collect()
}

/// A count of multiprocessors; 0 tells nothing.
fn multiprocessors(count: u32) -> Option<u16> {
    u16::try_from(count).ok().filter(|count| *count > 0)
}

/// Places for that many of that size, one beside the other.
fn side_by_side(slices: u8, count: u8) -> Vec<Placement> {
    let place = |n: u8| Placement::new(n.saturating_mul(slices), slices);
    (0..count).map(place).collect()
}
