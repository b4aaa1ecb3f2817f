// SPDX-License-Identifier: Apache-2.0
//! What a board lets exist side by side, and where its driver puts what names no place.

use geometry::{Board, ComputeProfile, Engines, Profile};
use units::Placement;

use super::{Compute, Gpu, Instance};

/// The places where one more instance of the profile is legal now, by rising start. The board's
/// list of starts, the maximum, engines and compute slices decide; nothing else does.
pub fn free_places(board: &Board, present: &[Instance], profile: &Profile) -> Vec<Placement> {
    let same = present
        .iter()
        .filter(|instance| instance.profile == profile.driver_id);
    let there: Vec<&Profile> = present
        .iter()
        .filter_map(|instance| board.profile(instance.profile))
        .collect();
    let slices: u32 = there.iter().map(|profile| u32::from(profile.slices)).sum();
    if same.count() >= usize::from(profile.max_instances)
        || slices + u32::from(profile.slices) > u32::from(board.compute_slices)
        || !engines_suffice(board, &there, profile)
    {
        return Vec::new();
    }
    let free = |place: &&Placement| {
        !present
            .iter()
            .any(|other| other.placement.overlaps(**place))
    };
    profile.placements.iter().filter(free).copied().collect()
}

/// Media engines are a budget of the whole GPU; copy engines are shared and never a limit. An
/// engine that the board's table does not count is not limited.
fn engines_suffice(board: &Board, there: &[&Profile], wanted: &Profile) -> bool {
    let kinds: [fn(&Engines) -> u8; 4] = [
        |engines| engines.decoders,
        |engines| engines.encoders,
        |engines| engines.jpeg,
        |engines| engines.ofa,
    ];
    kinds.iter().all(|count| {
        let taken: u32 = there
            .iter()
            .map(|profile| u32::from(count(&profile.engines)))
            .sum();
        let budget = u32::from(count(&board.engines));
        budget == 0 || taken + u32::from(count(&wanted.engines)) <= budget
    })
}

/// How many more instances of the profile fit: those of one size fit best from the lowest start.
pub fn remaining(board: &Board, present: &[Instance], profile: &Profile) -> u32 {
    let mut present = present.to_vec();
    let mut count = 0;
    while let Some(&placement) = free_places(board, &present, profile).first() {
        present.push(Instance {
            id: 0,
            profile: profile.driver_id,
            placement,
            serial: 0,
            compute: Vec::new(),
        });
        count += 1;
    }
    count
}

/// Where the driver puts an instance that names no place: where it takes away the fewest
/// placements of base profiles (1g, 2g, 3g, 4g, 7g) that are still possible; of equal ones the
/// lowest id. NVIDIA documents no rule. This one is fitted to the open driver and to 12 recorded
/// traces, of which it misses one: a GH200 put 1g.24gb at slots other than 6 first.
pub fn driver_choice(gpu: &Gpu, board: &Board, profile: &Profile) -> Option<Placement> {
    let base = board
        .profiles
        .iter()
        .filter(|profile| profile.nvml_enum <= 4);
    let possible: Vec<Placement> = base
        .flat_map(|profile| &profile.placements)
        .filter(|place| {
            !gpu.instances
                .iter()
                .any(|other| other.placement.overlaps(**place))
        })
        .copied()
        .collect();
    let cost = |place: &Placement| {
        let taken = possible.iter().filter(|other| other.overlaps(*place));
        (taken.count(), gpu_instance_id(board, gpu.mirrored, *place))
    };
    let free = free_places(board, &gpu.instances, profile);
    free.into_iter().min_by_key(cost)
}

/// The id that the driver gives an instance at this place: 0 for the whole GPU, then 1 and 2 for
/// the halves, 3 to 6 the quarters, 7 to 14 the eighths, counted by physical place (source: the
/// open driver's swizzId, and captures).
pub fn gpu_instance_id(board: &Board, mirrored: bool, place: Placement) -> u32 {
    let units = u32::from(board.placement_units);
    let (start, size) = (u32::from(place.start), u32::from(place.size).max(1));
    let parts = (units / size).max(1);
    let physical = if mirrored && parts > 1 {
        (start + units / 2) % units
    } else {
        start
    };
    parts - 1 + physical / size
}

/// The places where one more compute instance of the profile is legal now, by rising start.
pub fn free_compute_places(instance: &Instance, profile: &ComputeProfile) -> Vec<Placement> {
    let same = instance
        .compute
        .iter()
        .filter(|other| other.profile == profile.driver_id);
    if same.count() >= usize::from(profile.max_instances) {
        return Vec::new();
    }
    let taken = |place: &Placement| {
        let mut others = instance.compute.iter();
        others.any(|other| other.placement.overlaps(*place))
    };
    let free = profile.placements.iter().filter(|place| !taken(place));
    free.copied().collect()
}

/// How many more compute instances of the profile fit.
pub fn remaining_compute(instance: &Instance, profile: &ComputeProfile) -> u32 {
    let mut instance = instance.clone();
    let mut count = 0;
    while let Some(&placement) = free_compute_places(&instance, profile).first() {
        let profile = profile.driver_id;
        instance.compute.push(Compute {
            id: 0,
            profile,
            placement,
            serial: 0,
        });
        count += 1;
    }
    count
}

/// Whether the GPU's state is legal: each instance could be added to those before it.
pub fn check(gpu: &Gpu) -> Result<(), String> {
    let board = gpu
        .board()
        .map_err(|_| format!("there is no board {:?}", gpu.board))?;
    if !gpu.mig_current && !gpu.instances.is_empty() {
        return Err("it has instances while MIG is off".into());
    }
    for (at, instance) in gpu.instances.iter().enumerate() {
        let id = instance.id;
        let profile = board.profile(instance.profile);
        let profile = profile.ok_or_else(|| format!("GPU instance {id} has no known profile"))?;
        let places = free_places(board, &gpu.instances[..at], profile);
        let expected = gpu_instance_id(board, gpu.mirrored, instance.placement);
        if !places.contains(&instance.placement) || id != expected {
            return Err(format!(
                "GPU instance {id} cannot be at {}",
                instance.placement
            ));
        }
        check_compute(instance, profile)?;
    }
    Ok(())
}

fn check_compute(instance: &Instance, profile: &Profile) -> Result<(), String> {
    for (at, compute) in instance.compute.iter().enumerate() {
        let mut before = instance.clone();
        before.compute.truncate(at);
        let known = profile
            .compute
            .iter()
            .find(|known| known.driver_id == compute.profile);
        let fits = known
            .is_some_and(|known| free_compute_places(&before, known).contains(&compute.placement));
        if !fits || before.compute.iter().any(|other| other.id == compute.id) {
            return Err(format!(
                "compute instance {} of GPU instance {} cannot be at {}",
                compute.id, instance.id, compute.placement
            ));
        }
    }
    Ok(())
}
