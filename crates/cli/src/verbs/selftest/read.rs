// SPDX-License-Identifier: Apache-2.0
//! The checks that only read.

use geometry::inventory::{Gpu, Inventory};
use geometry::{Board, Confidence, Profile, catalogue};

use super::Transcript;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::verbs::list;
use crate::verbs::plan_text::counted;

/// Checks the machine as read, and each GPU or one of them.
pub fn check(
    machine: &Machine,
    inventory: &Inventory,
    only: Option<u32>,
    transcript: &mut Transcript<'_, '_>,
) -> Result<(), Failure> {
    let (major, minor) = inventory.cuda_version;
    transcript.say(format!(
        "driver {}, CUDA {major}.{minor}",
        inventory.driver_version
    ))?;
    let again = machine.inventory()?;
    let stable = match again
        .gpus
        .iter()
        .map(shape)
        .eq(inventory.gpus.iter().map(shape))
    {
        true => Ok(String::new()),
        false => Err("the second reading differs from the first".to_owned()),
    };
    transcript.check("reading twice gives the same".to_owned(), stable)?;
    for gpu in inventory
        .gpus
        .iter()
        .filter(|gpu| only.is_none_or(|index| index == gpu.index))
    {
        check_gpu(gpu, transcript)?;
    }
    Ok(())
}

/// What does not change by itself.
fn shape(gpu: &Gpu) -> (&units::GpuUuid, Option<units::Mode>, geometry::Layout) {
    (&gpu.uuid, gpu.mode, gpu.layout())
}

fn check_gpu(gpu: &Gpu, transcript: &mut Transcript<'_, '_>) -> Result<(), Failure> {
    let (major, minor) = gpu.compute_capability;
    transcript.say(format!(
        "GPU {}: {} {}, PCI {} {} subsystem {}, {} MiB, compute capability {major}.{minor}, \
         board {}, MIG {}",
        gpu.index,
        gpu.name,
        gpu.uuid,
        gpu.pci_bus_id,
        gpu.pci_device,
        gpu.pci_subsystem,
        gpu.memory_mib,
        gpu.board.key,
        list::mode(gpu.mode),
    ))?;
    if gpu.mode.is_none() {
        return Ok(());
    }
    for profile in &gpu.board.profiles {
        transcript.say(format!("  {}", described(profile)))?;
    }
    transcript.check(
        "placements lie on the board".to_owned(),
        on_board(&gpu.board),
    )?;
    transcript.check(
        "the driver's tables are those of the catalogue".to_owned(),
        as_known(gpu),
    )?;
    transcript.check(
        "instances sit where their profiles may".to_owned(),
        well_placed(gpu),
    )
}

fn described(profile: &Profile) -> String {
    let places: Vec<String> = profile.placements.iter().map(ToString::to_string).collect();
    let compute = profile.compute.iter();
    let compute =
        compute.map(|c| format!("{}c id {} max {}", c.slices, c.driver_id, c.max_instances));
    format!(
        "{} id {} enum {} max {} MiB {} at {}; {}",
        profile.name,
        profile.driver_id,
        profile.nvml_enum,
        profile.max_instances,
        profile
            .memory_mib
            .map_or_else(|| "?".to_owned(), |mib| mib.to_string()),
        places.join(" "),
        compute.collect::<Vec<_>>().join(", "),
    )
}

fn on_board(board: &Board) -> Result<String, String> {
    for profile in &board.profiles {
        let beyond = profile.placements.iter().find(|place| {
            place.size == 0 || place.start.saturating_add(place.size) > board.placement_units
        });
        if let Some(place) = beyond {
            return Err(format!(
                "{} at {place} of {} units",
                profile.name, board.placement_units
            ));
        }
    }
    Ok(format!("{} units", board.placement_units))
}

/// Compares what the driver says with what is known of such a board.
fn as_known(gpu: &Gpu) -> Result<String, String> {
    let by_driver = |profile: &&Profile| profile.confidence == Confidence::Driver;
    let told: Vec<&Profile> = gpu.board.profiles.iter().filter(by_driver).collect();
    if told.is_empty() {
        return Ok("the driver does not tell now".to_owned());
    }
    let Some(known) = catalogue::by_pci(gpu.pci_device, gpu.memory_mib) else {
        return Ok("the catalogue has no such board".to_owned());
    };
    let differs = |profile: &&Profile| match known.profile(profile.driver_id) {
        None => Some(format!("{} is not known", described(profile))),
        Some(known) => {
            let same = (profile.slices, profile.max_instances, &profile.placements)
                == (known.slices, known.max_instances, &known.placements);
            (!same).then(|| format!("{} instead of {}", described(profile), described(known)))
        }
    };
    let differences: Vec<String> = told.iter().filter_map(differs).collect();
    if differences.is_empty() {
        return Ok(format!("{} profiles of {}", told.len(), known.key));
    }
    Err(differences.join("; "))
}

fn well_placed(gpu: &Gpu) -> Result<String, String> {
    for (at, instance) in gpu.instances.iter().enumerate() {
        let name = format!("{} at {}", instance.profile, instance.placement);
        let profile = gpu.board.profile(instance.driver_id);
        if !profile.is_some_and(|profile| profile.placements.contains(&instance.placement)) {
            return Err(format!("{name} is not among the placements"));
        }
        let mut others = gpu.instances.iter().skip(at + 1);
        if let Some(other) = others.find(|other| other.placement.overlaps(instance.placement)) {
            return Err(format!(
                "{name} overlaps {} at {}",
                other.profile, other.placement
            ));
        }
    }
    Ok(counted(gpu.instances.len(), "instance"))
}
