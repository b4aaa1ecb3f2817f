// SPDX-License-Identifier: Apache-2.0
//! `nvidia-smi mig -cgi` and `-cci`.

use std::io::Write;

use geometry::inventory::Gpu;
use geometry::{ComputeProfile, Profile};
use gpu::{Driver, Error, Instances, NvmlCode};
use units::{Placement, ProfileName};

use crate::failure::{Failure, words};
use crate::select::Selection;

/// Creates the GPU instances in turn, on each chosen GPU; stops at the first that fails, and
/// leaves those before it.
///
/// # Errors
/// If there is no such profile, or NVML refuses one.
pub fn gpu_instances(
    driver: &Driver,
    chosen: &Selection<'_>,
    profiles: &[String],
    with_compute: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for gpu in chosen.with_mig()? {
        for text in profiles {
            let (profile, placement) = wanted(gpu, text)?;
            let id = gpu_instance(driver, gpu, profile, placement, out)?;
            if with_compute && let Some(full) = profile.full_compute() {
                compute_instance(driver, gpu, id, profile, full, out)?;
            }
        }
    }
    Ok(())
}

fn gpu_instance(
    driver: &Driver,
    gpu: &Gpu,
    profile: &Profile,
    placement: Option<Placement>,
    out: &mut dyn Write,
) -> Result<u32, Failure> {
    let created = match placement {
        Some(place) => driver.create_gpu_instance(&gpu.uuid, profile.driver_id, place),
        None => driver.create_gpu_instance_anywhere(&gpu.uuid, profile.driver_id),
    };
    let (index, name, number) = (gpu.index, &profile.name, profile.driver_id);
    let id = created.or_else(|error| {
        let code = error.nvml().unwrap_or(NvmlCode::UNKNOWN);
        writeln!(
            out,
            "Unable to create a GPU instance on GPU {index:>2} using profile {number}: {}",
            words(code)
        )?;
        refused("Failed to create GPU instances", error)
    })?;
    writeln!(
        out,
        "Successfully created GPU instance ID {id:>2} on GPU {index:>2} using profile MIG {name} \
         (ID {number:>2})"
    )?;
    Ok(id)
}

fn refused<T>(what: &str, error: Error) -> Result<T, Failure> {
    let what = what.to_owned();
    Err(error
        .nvml()
        .map_or(Failure::Driver(error), |code| Failure::Refused {
            what,
            code,
        }))
}

/// Creates compute instances in each chosen GPU instance; without profiles, the one that fills it.
///
/// # Errors
/// If there is no such profile, or NVML refuses one.
pub fn compute_instances(
    driver: &Driver,
    chosen: &Selection<'_>,
    profiles: &[String],
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for gpu in chosen.with_mig()? {
        for instance in chosen.instances_of(gpu) {
            let Some(profile) = gpu.board.profile(instance.driver_id) else {
                continue;
            };
            if profiles.is_empty()
                && let Some(full) = profile.full_compute()
            {
                compute_instance(driver, gpu, instance.id, profile, full, out)?;
            }
            for text in profiles {
                let compute = wanted_compute(profile, text)?;
                compute_instance(driver, gpu, instance.id, profile, compute, out)?;
            }
        }
    }
    Ok(())
}

fn compute_instance(
    driver: &Driver,
    gpu: &Gpu,
    instance: u32,
    profile: &Profile,
    compute: &ComputeProfile,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let (index, number) = (gpu.index, compute.driver_id);
    let created = driver.create_compute_instance(&gpu.uuid, instance, number, None);
    let id = created.or_else(|error| {
        let code = error.nvml().unwrap_or(NvmlCode::UNKNOWN);
        writeln!(
            out,
            "Unable to create a compute instance on GPU {index:>2} GPU instance ID {instance:>2} \
             using profile {number}: {}",
            words(code)
        )?;
        refused("Failed to create compute instances", error)
    })?;
    let name = profile
        .name
        .with_compute(compute.slices)
        .unwrap_or(profile.name.clone());
    writeln!(
        out,
        "Successfully created compute instance ID {id:>2} on GPU {index:>2} GPU instance ID \
         {instance:>2} using profile MIG {name} (ID {number:>2})"
    )?;
    Ok(())
}

/// The GPU instance profile of a text: an id or a name, perhaps with `MIG` before it and the start
/// of a placement behind a colon.
fn wanted<'a>(gpu: &'a Gpu, text: &str) -> Result<(&'a Profile, Option<Placement>), Failure> {
    let invalid = || Failure::Usage(format!("Invalid GPU instance profile: {text}"));
    let (name, start) = match text.split_once(':') {
        Some((name, start)) => (name, Some(start)),
        None => (text, None),
    };
    let name = name.trim().trim_start_matches("MIG ").trim();
    let profile = match (name.parse::<u32>(), name.parse::<ProfileName>()) {
        (Ok(id), _) => gpu.board.profile(id),
        (_, Ok(name)) => gpu.board.find(&name),
        _ => None,
    };
    let profile = profile.ok_or_else(invalid)?;
    let place = |start: &str| {
        let start: u8 = start.parse().ok()?;
        profile
            .placements
            .iter()
            .copied()
            .find(|place| place.start == start)
    };
    let placement = start
        .map(|start| place(start).ok_or_else(invalid))
        .transpose()?;
    Ok((profile, placement))
}

/// The compute instance profile of a text: an id, or a name such as `1c.3g.40gb`.
fn wanted_compute<'a>(profile: &'a Profile, text: &str) -> Result<&'a ComputeProfile, Failure> {
    let name = text.trim_start_matches("MIG ").trim();
    let found = match (name.parse::<u32>(), name.parse::<ProfileName>()) {
        (Ok(id), _) => profile
            .compute
            .iter()
            .find(|compute| compute.driver_id == id),
        (_, Ok(name)) => profile.compute_of(name.compute_slices()),
        _ => None,
    };
    found.ok_or_else(|| Failure::Usage(format!("Invalid compute instance profile: {text}")))
}
