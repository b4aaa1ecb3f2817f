// SPDX-License-Identifier: Apache-2.0
//! The tables of `nvidia-smi mig`.

use std::io::Write;

use geometry::inventory::Gpu;
use geometry::{Engines, Profile};
use gpu::Driver;

use crate::failure::Failure;
use crate::select::Selection;

/// Prints lines in a frame: a head, then groups, with a line under each.
fn frame(
    out: &mut dyn Write,
    width: usize,
    head: &[&str],
    groups: &[Vec<String>],
) -> Result<(), Failure> {
    let rule = |out: &mut dyn Write, sign: &str, edge: &str| {
        writeln!(out, "{edge}{}{edge}", sign.repeat(width))
    };
    rule(out, "-", "+")?;
    for line in head {
        writeln!(out, "|{line:<width$}|")?;
    }
    rule(out, "=", "|")?;
    for group in groups {
        for line in group {
            writeln!(out, "|{line:<width$}|")?;
        }
        rule(out, "-", "+")?;
    }
    Ok(())
}

/// `-lgip`: profiles and how many more of each fit.
///
/// # Errors
/// If NVML cannot be asked.
pub fn profiles(
    driver: &Driver,
    chosen: &Selection<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut groups = Vec::new();
    for gpu in &chosen.gpus {
        let on = gpu.mode.is_some_and(|mode| mode.is_on());
        for profile in by_enum(gpu) {
            let free = match on {
                true => driver.remaining_capacity(&gpu.uuid, profile.driver_id)?,
                false => 0,
            };
            groups.push(profile_lines(gpu, profile, free));
        }
    }
    if groups.is_empty() {
        return Err(Failure::Usage("No MIG-supported devices found.".into()));
    }
    let head = [
        " GPU instance profiles:",
        " GPU   Name               ID    Instances   Memory     P2P    SM    DEC   ENC",
        "                                Free/Total   GiB              CE    JPEG  OFA",
    ];
    frame(out, 79, &head, &groups)
}

/// In the original's order: that of NVML's enum, with the variants beside their plain profile.
fn by_enum(gpu: &Gpu) -> Vec<&Profile> {
    let mut profiles: Vec<&Profile> = gpu.board.profiles.iter().collect();
    profiles.sort_by(|a, b| a.name.cmp(&b.name));
    profiles
}

fn profile_lines(gpu: &Gpu, profile: &Profile, free: u32) -> Vec<String> {
    let Engines {
        copy,
        decoders,
        encoders,
        jpeg,
        ofa,
    } = profile.engines;
    let memory = profile.memory_mib.unwrap_or_default() as f64 / 1024.0;
    let (index, id, name) = (
        gpu.index,
        profile.driver_id,
        format!("MIG {}", profile.name),
    );
    let (total, sm) = (profile.max_instances, profile.sm_count.unwrap_or_default());
    vec![
        format!(
            " {index:>3}  {name:<20}{id:>2}     {free}/{total}        {memory:<11.2}No     \
             {sm:<7}{decoders:<6}{encoders}"
        ),
        format!("{:62}{copy:>2}     {jpeg:<6}{ofa}", ""),
    ]
}

/// `-lgipp`: where each profile can sit.
///
/// # Errors
/// If the output is gone.
pub fn placements(chosen: &Selection<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    for gpu in &chosen.gpus {
        for profile in by_enum(gpu) {
            let starts = profile
                .placements
                .iter()
                .map(|place| place.start.to_string());
            let starts: Vec<String> = starts.collect();
            let size = profile.placements.first().map_or(0, |place| place.size);
            let label = if starts.len() == 1 {
                "Placement "
            } else {
                "Placements"
            };
            writeln!(
                out,
                "GPU {:>2} Profile ID {:>2} {label}: {{{}}}:{size}",
                gpu.index,
                profile.driver_id,
                starts.join(",")
            )?;
        }
    }
    Ok(())
}

/// `-lgi`: the GPU instances.
///
/// # Errors
/// In the original's words if there are none.
pub fn instances(chosen: &Selection<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut groups = Vec::new();
    for gpu in chosen.with_mig()? {
        for instance in chosen.instances_of(gpu) {
            let (index, place) = (gpu.index, instance.placement);
            let (name, profile) = (format!("MIG {}", instance.profile), instance.driver_id);
            groups.push(vec![format!(
                " {index:>3}  {name:<20}{profile:>2}       {:>2}          {place}",
                instance.id
            )]);
        }
    }
    if groups.is_empty() {
        return Err(not_found("No GPU instances found"));
    }
    let head = [
        " GPU instances:",
        " GPU   Name             Profile  Instance   Placement",
        "                          ID       ID       Start:Size",
    ];
    frame(out, 55, &head, &groups)
}

/// `-lci`: the compute instances.
///
/// # Errors
/// In the original's words if there are none.
pub fn compute_instances(chosen: &Selection<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    let mut groups = Vec::new();
    for gpu in chosen.with_mig()? {
        for instance in chosen.instances_of(gpu) {
            let wanted = instance
                .compute
                .iter()
                .filter(|compute| chosen.has_compute(compute.id));
            let (index, gi) = (gpu.index, instance.id);
            groups.extend(wanted.map(|compute| {
                let (name, profile) = (format!("MIG {}", compute.profile), compute.driver_id);
                let place = compute
                    .placement
                    .map_or("N/A".into(), |place| place.to_string());
                vec![format!(
                    " {index:>3}     {gi:>2}       {name:<20}{profile:>2}        {:>2}          \
                     {place}",
                    compute.id
                )]
            }));
        }
    }
    if groups.is_empty() {
        return Err(not_found("No compute instances found"));
    }
    let head = [
        " Compute instances:",
        " GPU     GPU       Name             Profile   Instance   Placement",
        "       Instance                       ID        ID       Start:Size",
        "         ID",
    ];
    frame(out, 68, &head, &groups)
}

fn not_found(what: &str) -> Failure {
    Failure::Refused {
        what: what.to_owned(),
        code: gpu::NvmlCode::NOT_FOUND,
    }
}
