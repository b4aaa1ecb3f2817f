// SPDX-License-Identifier: Apache-2.0
//! The board of a GPU: its tables as the driver tells them, completed from the catalogue.

use std::collections::{BTreeMap, BTreeSet};

use geometry::catalogue;
use geometry::{Board, Engines, ModeChange};
use units::PciDevice;

use crate::driver::Device;
use crate::error::Error;
use crate::profiles::{compute_by_rule, compute_profiles, gpu_instance_profiles};
use crate::sys::*;

/// What tells one board from another, and when its tables are worth reading again: some drivers
/// tell more while MIG is on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BoardFacts {
    pub(crate) pci_device: PciDevice,
    pub(crate) memory_mib: u64,
    pub(crate) compute_capability: (u8, u8),
    pub(crate) name: String,
    /// Whether MIG is on; `None` where the GPU has no MIG.
    pub(crate) mig_on: Option<bool>,
}

/// Boards read so far, so that eight equal GPUs are asked once.
pub(crate) type Boards = BTreeMap<BoardFacts, Tables>;

/// A board, and of which profiles the driver has told the compute profiles: it tells them only of
/// GPU instances that exist.
#[derive(Clone)]
pub(crate) struct Tables {
    pub(crate) board: Board,
    told: BTreeSet<u32>,
}

impl Tables {
    /// What the driver and the catalogue know of the board of this GPU.
    pub(crate) fn read(device: &Device<'_>, facts: &BoardFacts) -> Result<Self, Error> {
        let known = catalogue::by_pci(facts.pci_device, facts.memory_mib);
        let mut board = known.unwrap_or_else(|| unlisted(facts));
        if facts.mig_on.is_none() {
            without_mig(&mut board);
        } else {
            let told = gpu_instance_profiles(device, facts.memory_mib, &board.profiles)?;
            if !told.is_empty() {
                let hopper = facts.compute_capability.0 == 9;
                adopt(&mut board, told, hopper);
            }
        }
        Ok(Self {
            board,
            told: BTreeSet::new(),
        })
    }

    /// Asks for the compute profiles of these GPU instances, given as driver id and handle, where
    /// they have not been told yet. Answers whether anything was asked.
    pub(crate) fn ask_compute(
        &mut self,
        device: &Device<'_>,
        instances: impl Iterator<Item = (u32, nvmlGpuInstance_t)>,
    ) -> Result<bool, Error> {
        let mut asked = false;
        for (driver_id, instance) in instances {
            let mut profiles = self.board.profiles.iter_mut();
            let profile = profiles.find(|profile| profile.driver_id == driver_id);
            if let Some(profile) = profile
                && self.told.insert(driver_id)
            {
                asked = true;
                let compute = compute_profiles(device, instance, profile)?;
                if !compute.is_empty() {
                    profile.compute = compute;
                }
            }
        }
        Ok(asked)
    }
}

/// Takes the driver's GPU instance profiles into the board, in place of its own.
fn adopt(board: &mut Board, mut told: Vec<geometry::Profile>, hopper: bool) {
    told.sort_by(|a, b| a.name.cmp(&b.name));
    for profile in &mut told {
        let known = board.profile(profile.driver_id);
        profile.compute = match known.filter(|known| known.slices == profile.slices) {
            Some(known) => known.compute.clone(),
            None => compute_by_rule(profile, hopper),
        };
    }
    let placements = || told.iter().flat_map(|profile| &profile.placements);
    let units = placements().map(|p| p.start.saturating_add(p.size)).max();
    board.placement_units = units.unwrap_or(0);
    board.compute_slices = told.iter().map(|profile| profile.slices).max().unwrap_or(0);
    if board.engines == Engines::default() {
        // The whole GPU as one instance has all of them.
        let largest = told
            .iter()
            .max_by_key(|profile| (profile.slices, profile.memory_mib));
        board.engines = largest.map(|profile| profile.engines).unwrap_or_default();
    }
    board.unknown = units
        .is_none()
        .then(|| "the driver tells no placements".to_owned());
    board.profiles = told;
}

/// A board that the catalogue does not list, before the driver has told its tables.
fn unlisted(facts: &BoardFacts) -> Board {
    let name = facts.name.trim_start_matches("NVIDIA ");
    let (major, minor) = facts.compute_capability;
    let architecture = match (major, minor) {
        (7, 0 | 2) => "Volta",
        (7, _) => "Turing",
        (8, 9) => "Ada",
        (8, _) => "Ampere",
        (9, _) => "Hopper",
        (10..=12, _) => "Blackwell",
        _ => "unknown",
    };
    Board {
        key: name.replace(' ', "-"),
        product_names: vec![facts.name.clone()],
        pci_devices: vec![facts.pci_device],
        architecture: architecture.to_owned(),
        compute_capability: Some(facts.compute_capability),
        memory_mib: Some(facts.memory_mib),
        compute_slices: 0,
        placement_units: 0,
        mode_change: if major <= 8 {
            ModeChange::NeedsReset
        } else {
            ModeChange::Immediate
        },
        engines: Engines::default(),
        profiles: Vec::new(),
        unknown: Some("neither the driver nor the catalogue knows its profiles".to_owned()),
    }
}

/// Leaves nothing of MIG: the driver says that this GPU has none (a board without, or a guest that
/// may not cut its GPU).
fn without_mig(board: &mut Board) {
    board.compute_slices = 0;
    board.placement_units = 0;
    board.profiles.clear();
    board.unknown = None;
}
