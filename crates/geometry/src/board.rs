// SPDX-License-Identifier: Apache-2.0
//! A GPU model with its MIG tables, as plain data.

use serde::{Deserialize, Serialize};
use units::{PciDevice, Placement, ProfileName};

/// How a fact is known, surest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confidence {
    /// The driver of this machine said so.
    Driver,
    /// A public capture of a real driver's answer.
    Captured,
    /// NVIDIA's documents or sources.
    Documented,
    /// Derived from a sibling board or by formula: an estimate.
    Derived,
}

/// What a change of MIG mode takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModeChange {
    /// At once; the mode does not outlive a reboot (Hopper and later).
    Immediate,
    /// Pending until the GPU is reset; the mode outlives a reboot (Ampere).
    NeedsReset,
}

/// Media and copy engines: of a profile, what one instance takes; of a board, what there is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Engines {
    /// Copy engines. Shared between instances on some boards, so never a limit.
    pub copy: u8,
    /// Video decoders (NVDEC).
    pub decoders: u8,
    /// Video encoders (NVENC).
    pub encoders: u8,
    /// JPEG engines.
    pub jpeg: u8,
    /// Optical flow accelerators.
    pub ofa: u8,
}

/// A compute instance profile within a GPU instance profile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ComputeProfile {
    /// Number that NVML's create call takes and `nvidia-smi` prints.
    pub driver_id: u32,
    /// NVML's enum value: the argument of the profile query.
    pub nvml_enum: u32,
    /// Compute slices, at least 1.
    pub slices: u8,
    /// How many fit into one empty GPU instance.
    pub max_instances: u8,
    /// Streaming multiprocessors; `None` where nobody has published them.
    pub sm_count: Option<u16>,
    /// Where it may sit, in compute slices of the GPU instance.
    pub placements: Vec<Placement>,
}

/// A GPU instance profile of a board.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Profile {
    /// Canonical name, always of a whole GPU instance.
    pub name: ProfileName,
    /// The driver's id (19, 15, 14, 9, 5, 0, ...): what NVML's create call takes and `nvidia-smi`
    /// prints. It is not the enum, and it means different things on different boards.
    pub driver_id: u32,
    /// NVML's enum value (0 to 17): the argument of the profile query.
    pub nvml_enum: u32,
    /// Compute slices.
    pub slices: u8,
    /// Memory in MiB; `None` where nobody has published it. Differs between drivers.
    pub memory_mib: Option<u64>,
    /// Streaming multiprocessors; `None` where nobody has published them.
    pub sm_count: Option<u16>,
    /// How many fit on an empty GPU.
    pub max_instances: u8,
    /// Engines that one instance takes.
    pub engines: Engines,
    /// Where it may sit, in the board's placement units, by rising start.
    pub placements: Vec<Placement>,
    /// Compute instance profiles inside it, by rising slices; the one that `-C` creates for the
    /// full size comes first among those of equal size.
    pub compute: Vec<ComputeProfile>,
    /// How placements and maximum are known (the weaker of the two).
    pub confidence: Confidence,
}

impl Engines {
    /// What a board has, judged by its profiles: of each kind the most that one instance takes,
    /// since the largest profile is given all there is.
    pub fn budget(profiles: &[Profile]) -> Self {
        let fold = |most: Self, profile: &Profile| Self {
            copy: most.copy.max(profile.engines.copy),
            decoders: most.decoders.max(profile.engines.decoders),
            encoders: most.encoders.max(profile.engines.encoders),
            jpeg: most.jpeg.max(profile.engines.jpeg),
            ofa: most.ofa.max(profile.engines.ofa),
        };
        profiles.iter().fold(Self::default(), fold)
    }
}

impl Profile {
    /// The compute profile of full size: what a slice without compute prefix is.
    pub fn full_compute(&self) -> Option<&ComputeProfile> {
        self.compute_of(self.slices)
    }

    /// The compute profile with that many slices.
    pub fn compute_of(&self, slices: u8) -> Option<&ComputeProfile> {
        self.compute.iter().find(|compute| compute.slices == slices)
    }
}

/// A GPU model with its MIG tables. From the [catalogue](crate::catalogue) or from a driver.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Board {
    /// Our name for it, `H100-80GB-SXM`.
    pub key: String,
    /// Names that NVML gives it.
    pub product_names: Vec<String>,
    /// PCI ids that it comes with.
    pub pci_devices: Vec<PciDevice>,
    /// `Ampere`, `Hopper`, ...
    pub architecture: String,
    /// CUDA compute capability, major and minor; `None` where unknown.
    pub compute_capability: Option<(u8, u8)>,
    /// Memory of the whole GPU in MiB; `None` where unknown.
    pub memory_mib: Option<u64>,
    /// Compute slices of the whole GPU (7, 4, 3 or 2); 0 for a board without MIG.
    pub compute_slices: u8,
    /// Placement units of the whole GPU (8, 4 or 12); 0 for a board without MIG or of unknown placements.
    pub placement_units: u8,
    /// What a change of MIG mode takes.
    pub mode_change: ModeChange,
    /// Engines of the whole GPU: the budget that instances share.
    pub engines: Engines,
    /// Profiles, by rising slices, then memory, then name. Empty for a board without MIG.
    pub profiles: Vec<Profile>,
    /// Why layouts cannot be planned, for a board with MIG whose placements nobody has published.
    pub unknown: Option<String>,
}

impl Board {
    /// Whether the board has MIG at all.
    pub fn has_mig(&self) -> bool {
        self.compute_slices > 0
    }

    /// Whether any profile's placements are estimates.
    pub fn is_estimated(&self) -> bool {
        self.profiles
            .iter()
            .any(|profile| profile.confidence == Confidence::Derived)
    }

    /// Total memory in MiB: the published figure, else the largest profile's name in GB; 0 if
    /// neither is known. For display and simulation, not for decisions about placement.
    pub fn nominal_memory_mib(&self) -> u64 {
        let largest = self.profiles.iter().map(|profile| profile.name.memory_gb());
        self.memory_mib
            .unwrap_or_else(|| largest.max().map_or(0, |gb| u64::from(gb) * 1024))
    }

    /// Memory of a profile in MiB: the published figure, else its share of the placement units.
    pub fn nominal_profile_memory_mib(&self, profile: &Profile) -> u64 {
        let units = u64::from(self.placement_units.max(1));
        let size = profile.placements.first().map_or(0, |place| place.size);
        profile
            .memory_mib
            .unwrap_or_else(|| self.nominal_memory_mib() * u64::from(size) / units)
    }

    /// The profile that a name means (its compute part has no say): the one of that name, else the
    /// only one with the same slices and attributes and about the same memory.
    ///
    /// Drivers compute names from rounded sizes and have called one profile by two names:
    /// 3g.39gb and 3g.40gb, 1g.24gb and 1g.23gb (GB200), 7g.189gb and 7g.186gb. So figures may
    /// differ by 1 GB if that is at most a tenth, or by 3 %; another size is another profile.
    pub fn find(&self, name: &ProfileName) -> Option<&Profile> {
        let instance = name.gpu_instance();
        let exact = self.profiles.iter().find(|p| p.name == instance);
        exact.or_else(|| {
            let mut similar = self.profiles.iter().filter(|p| is_alias(&p.name, name));
            similar.next().filter(|_| similar.next().is_none())
        })
    }

    /// The GPU instance profile with that driver id.
    pub fn profile(&self, driver_id: u32) -> Option<&Profile> {
        self.profiles
            .iter()
            .find(|profile| profile.driver_id == driver_id)
    }
}

/// Whether two names may mean one profile, but for compute parts.
fn is_alias(ours: &ProfileName, theirs: &ProfileName) -> bool {
    let same_shape =
        ours.gpu_slices() == theirs.gpu_slices() && ours.attributes() == theirs.attributes();
    let (memory, other) = (ours.memory_gb(), theirs.memory_gb());
    let apart = memory.abs_diff(other);
    let rounding = apart <= 1 && memory >= 10;
    same_shape && (rounding || u32::from(apart) * 32 <= u32::from(memory))
}
