// SPDX-License-Identifier: Apache-2.0
//! Inventories and wishes for tests, made of a list of choices: legal ones, and all kinds of them.
//! A shorter list, or smaller numbers in it, makes a simpler machine.

use std::collections::BTreeMap;

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Holder, Inventory};
use geometry::{Board, Engines, Layout, Profile, catalogue};
use units::{Mode, PciDevice, Placement, ProfileName};

use crate::wish::{GpuWish, Wish};

/// Boards that behave differently: sizes, engines, ids, units, and what a mode change takes.
pub const BOARDS: [&str; 5] = [
    "H100-80GB-SXM",
    "A100-40GB",
    "A100-80GB",
    "A30",
    "RTX-PRO-6000-SE",
];

/// A list of choices; a list at its end chooses 0.
pub struct Choices<'a>(std::slice::Iter<'a, u16>);

impl<'a> Choices<'a> {
    /// Chooses by this list.
    pub fn new(list: &'a [u16]) -> Self {
        Self(list.iter())
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let chosen = self.0.next().copied().unwrap_or(0);
        usize::from(chosen).checked_rem(limit).unwrap_or(0)
    }

    /// True once in `times`.
    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == times - 1
    }

    fn of<'b, T>(&mut self, list: &'b [T]) -> Option<&'b T> {
        list.get(self.below(list.len()))
    }
}

/// A machine with one to three GPUs of [`BOARDS`], in any state that their hardware can be in.
pub fn inventory(choices: &mut Choices<'_>) -> Inventory {
    let count = 1 + choices.below(3);
    let key = |choices: &mut Choices<'_>| choices.of(&BOARDS).copied().unwrap_or_default();
    let gpus = (0..).zip(0..count).filter_map(|(index, _)| {
        let board = catalogue::by_key(key(choices))?;
        Some(random_gpu(board, index, choices))
    });
    machine(gpus.collect())
}

/// A machine with these GPUs.
pub fn machine(gpus: Vec<Gpu>) -> Inventory {
    Inventory {
        lost: Vec::new(),
        driver_version: "580.95.05".into(),
        cuda_version: (13, 0),
        gpus,
    }
}

/// An idle GPU without instances. Where the board has no MIG, `mode` is dropped.
pub fn gpu(board: Board, index: u32, mode: Mode) -> Gpu {
    let uuid = format!("GPU-00000000-0000-0000-0000-{index:012}");
    let Ok(uuid) = uuid.parse() else {
        unreachable!("a UUID by its form");
    };
    Gpu {
        index,
        minor: Some(index),
        uuid,
        name: board.product_names.first().cloned().unwrap_or_default(),
        pci_bus_id: format!("00000000:{:02X}:00.0", index + 1),
        pci_device: board.pci_devices.first().copied().unwrap_or(PciDevice(0)),
        pci_subsystem: PciDevice(0),
        numa_node: None,
        memory_mib: board.memory_mib.unwrap_or(0),
        compute_capability: board.compute_capability.unwrap_or((0, 0)),
        mode: board.has_mig().then_some(mode),
        board,
        instances: Vec::new(),
        holders: Vec::new(),
    }
}

/// Puts a GPU instance with compute instances (profile and first slice; none: an orphan) at a
/// place. What the board does not offer is left out.
pub fn put(gpu: &mut Gpu, profile: &ProfileName, start: u8, compute: &[(ProfileName, u8)]) {
    let offered = gpu.board.profiles.iter().find(|p| p.name == *profile);
    let Some(offered) = offered else {
        return;
    };
    let place = offered.placements.iter().find(|place| place.start == start);
    let Some(place) = place else {
        return;
    };
    let mut instance = GpuInstance {
        id: 7 + u32::try_from(gpu.instances.len()).unwrap_or(0),
        driver_id: offered.driver_id,
        profile: offered.name.clone(),
        placement: *place,
        compute: Vec::new(),
    };
    for (name, start) in compute {
        if let Some(inside) = offered.compute_of(name.compute_slices()) {
            let place = inside.placements.iter().find(|p| p.start == *start);
            let id = u32::try_from(instance.compute.len()).unwrap_or(0);
            instance.compute.push(ComputeInstance {
                id,
                driver_id: inside.driver_id,
                profile: name.clone(),
                placement: place.copied(),
                uuid: None,
                mig_index: None,
                holders: Vec::new(),
            });
        }
    }
    gpu.instances.push(instance);
    gpu.instances.sort_by_key(|instance| instance.placement);
}

fn random_gpu(board: Board, index: u32, choices: &mut Choices<'_>) -> Gpu {
    const MODES: [Mode; 6] = [
        Mode::On,
        Mode::Off,
        Mode::On,
        Mode::PendingOff,
        Mode::PendingOn,
        Mode::On,
    ];
    let mode = choices.of(&MODES).copied().unwrap_or(Mode::On);
    let mut gpu = gpu(board, index, mode);
    if mode.is_on() {
        fill(&mut gpu, choices);
    }
    if choices.one_in(6) {
        gpu.holders.push(holder(choices));
    }
    gpu
}

fn holder(choices: &mut Choices<'_>) -> Holder {
    let pid = 100 + u32::try_from(choices.below(1000)).unwrap_or(0);
    Holder {
        pid,
        name: "python".into(),
    }
}

/// Fills the GPU with legal instances until the choices say stop.
fn fill(gpu: &mut Gpu, choices: &mut Choices<'_>) {
    loop {
        let room: Vec<(ProfileName, u8)> = gpu
            .board
            .profiles
            .iter()
            .flat_map(|profile| {
                let free = profile.placements.iter();
                let free = free.filter(|place| fits(gpu, profile, **place));
                free.map(|place| (profile.name.clone(), place.start))
            })
            .collect();
        let Some((profile, start)) = choices
            .below(room.len() + 1)
            .checked_sub(1)
            .and_then(|n| room.get(n))
        else {
            return;
        };
        let compute = slices(&gpu.board, profile, choices);
        put(gpu, profile, *start, &compute);
        let placed = gpu
            .instances
            .iter_mut()
            .find(|i| i.placement.start == *start);
        for compute in placed.into_iter().flat_map(|i| &mut i.compute) {
            if choices.one_in(7) {
                compute.holders.push(holder(choices));
            }
        }
    }
}

fn fits(gpu: &Gpu, profile: &Profile, place: Placement) -> bool {
    let there = |gpu: &Gpu, id: u32| gpu.instances.iter().filter(|i| i.driver_id == id).count();
    let counts = |e: &Engines| [e.decoders, e.encoders, e.jpeg, e.ofa].map(u32::from);
    let mut left = counts(&gpu.board.engines);
    let taken = gpu
        .instances
        .iter()
        .filter_map(|i| gpu.board.profile(i.driver_id));
    let enough = taken.chain([profile]).all(|profile| {
        let mut pairs = left.iter_mut().zip(counts(&profile.engines));
        pairs.all(|(left, taken)| left.checked_sub(taken).map(|rest| *left = rest).is_some())
    });
    let mut instances = gpu.instances.iter();
    enough
        && instances.all(|instance| !instance.placement.overlaps(place))
        && there(gpu, profile.driver_id) < usize::from(profile.max_instances)
}

/// Compute instances for a GPU instance: mostly one of full size, else none, or smaller ones.
fn slices(board: &Board, name: &ProfileName, choices: &mut Choices<'_>) -> Vec<(ProfileName, u8)> {
    let profile = board.profiles.iter().find(|profile| profile.name == *name);
    match (profile, choices.below(5)) {
        (None, _) | (_, 4) => Vec::new(),
        (Some(_), 0..=2) => vec![(name.clone(), 0)],
        (Some(profile), _) => {
            let mut taken: Vec<(ProfileName, Placement)> = Vec::new();
            for compute in &profile.compute {
                for place in &compute.placements {
                    let free = !taken.iter().any(|(_, taken)| taken.overlaps(*place));
                    if let Some(name) = name.with_compute(compute.slices)
                        && free
                        && choices.one_in(2)
                    {
                        taken.push((name, *place));
                    }
                }
            }
            let slices = taken.into_iter();
            slices.map(|(name, place)| (name, place.start)).collect()
        }
    }
}

/// A wish for some of the machine's GPUs. Of slices, not always one that can be fulfilled.
pub fn wish(inventory: &Inventory, choices: &mut Choices<'_>) -> Wish {
    let mut wish = Wish::default();
    for gpu in &inventory.gpus {
        let wanted = match choices.below(8) {
            0..=2 => GpuWish::Slices(counts(&gpu.board, choices)),
            3 | 4 => GpuWish::Exact(random_layout(gpu, choices)),
            5 => GpuWish::On,
            6 => GpuWish::Off,
            _ => continue,
        };
        wish.gpus.insert(gpu.index, wanted);
    }
    wish
}

/// A layout that the board can hold.
fn random_layout(like: &Gpu, choices: &mut Choices<'_>) -> Layout {
    let mut other = gpu(like.board.clone(), like.index, Mode::On);
    fill(&mut other, choices);
    other.layout()
}

/// Counts of slices: those of a layout, or any.
fn counts(board: &Board, choices: &mut Choices<'_>) -> BTreeMap<ProfileName, u32> {
    if !choices.one_in(4) {
        let like = gpu(board.clone(), 0, Mode::On);
        return random_layout(&like, choices).slices();
    }
    let mut counts = BTreeMap::new();
    for profile in &board.profiles {
        if choices.one_in(3) {
            let count = u32::try_from(choices.below(4)).unwrap_or(0);
            counts.insert(profile.name.clone(), count);
        }
    }
    counts
}
