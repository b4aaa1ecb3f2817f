// SPDX-License-Identifier: Apache-2.0
//! The form of the compiled-in tables.

use units::{Attributes, PciDevice, Placement, ProfileName};

use crate::board::{Board, ComputeProfile, Confidence, Engines, ModeChange, Profile};

/// A [`Board`] as a constant.
pub(super) struct BoardRow {
    pub key: &'static str,
    pub product_names: &'static [&'static str],
    pub pci_devices: &'static [u32],
    pub architecture: &'static str,
    pub compute_capability: Option<(u8, u8)>,
    pub memory_mib: Option<u64>,
    pub compute_slices: u8,
    pub placement_units: u8,
    pub needs_reset: bool,
    pub engines: [u8; 5],
    pub unknown: Option<&'static str>,
    pub profiles: &'static [ProfileRow],
}

/// A [`Profile`] as a constant.
pub(super) struct ProfileRow {
    pub slices: u8,
    pub memory_gb: u16,
    pub attribute: &'static str,
    pub driver_id: u32,
    pub nvml_enum: u32,
    pub memory_mib: Option<u64>,
    pub sm_count: Option<u16>,
    pub max_instances: u8,
    pub engines: [u8; 5],
    pub size: u8,
    pub starts: &'static [u8],
    pub compute: &'static [ComputeRow],
    pub confidence: Confidence,
}

/// A [`ComputeProfile`] as a constant. Its placements are as long as it has slices.
pub(super) struct ComputeRow {
    pub driver_id: u32,
    pub nvml_enum: u32,
    pub slices: u8,
    pub max_instances: u8,
    pub sm_count: Option<u16>,
    pub starts: &'static [u8],
}

impl BoardRow {
    pub(super) fn board(&self) -> Board {
        let mut profiles: Vec<Profile> = self.profiles.iter().map(ProfileRow::profile).collect();
        profiles.sort_by(|a, b| a.name.cmp(&b.name));
        Board {
            key: self.key.to_owned(),
            product_names: self.product_names.iter().map(|&n| n.to_owned()).collect(),
            pci_devices: self.pci_devices.iter().copied().map(PciDevice).collect(),
            architecture: self.architecture.to_owned(),
            compute_capability: self.compute_capability,
            memory_mib: self.memory_mib,
            compute_slices: self.compute_slices,
            placement_units: self.placement_units,
            mode_change: if self.needs_reset {
                ModeChange::NeedsReset
            } else {
                ModeChange::Immediate
            },
            engines: engines(self.engines),
            profiles,
            unknown: self.unknown.map(str::to_owned),
        }
    }
}

impl ProfileRow {
    fn profile(&self) -> Profile {
        let attributes = match self.attribute.split_at_checked(1) {
            Some(("+", name)) => Attributes::plus(name),
            Some(("-", name)) => Attributes::minus(name),
            _ => Attributes::None,
        };
        Profile {
            name: ProfileName::whole(self.slices, self.memory_gb, attributes),
            driver_id: self.driver_id,
            nvml_enum: self.nvml_enum,
            slices: self.slices,
            memory_mib: self.memory_mib,
            sm_count: self.sm_count,
            max_instances: self.max_instances,
            engines: engines(self.engines),
            placements: placements(self.starts, self.size),
            compute: self.compute.iter().map(ComputeRow::profile).collect(),
            confidence: self.confidence,
        }
    }
}

impl ComputeRow {
    fn profile(&self) -> ComputeProfile {
        ComputeProfile {
            driver_id: self.driver_id,
            nvml_enum: self.nvml_enum,
            slices: self.slices,
            max_instances: self.max_instances,
            sm_count: self.sm_count,
            placements: placements(self.starts, self.slices),
        }
    }
}

fn placements(starts: &[u8], size: u8) -> Vec<Placement> {
    let place = |&start| Placement::new(start, size);
    starts.iter().map(place).collect()
}

fn engines([copy, decoders, encoders, jpeg, ofa]: [u8; 5]) -> Engines {
    Engines {
        copy,
        decoders,
        encoders,
        jpeg,
        ofa,
    }
}
