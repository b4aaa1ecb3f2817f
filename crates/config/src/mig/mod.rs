// SPDX-License-Identifier: Apache-2.0
//! The MIG config file, version `v1`, that `nvidia-mig-parted` reads.
//!
//! ```yaml
//! version: v1
//! mig-configs:
//!   all-balanced:
//!   - device-filter: ["0x233010DE"]   # optional
//!     devices: all                    # or a list of indices
//!     mig-enabled: true
//!     mig-devices: {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}
//! ```
//!
//! [`parse`] reads everything and notes every fault; [`Parsed::select`] takes one configuration and
//! decides which faults matter for it.

mod decode;
mod filter;
mod print;
mod select;

pub(crate) use decode::decode;
pub use decode::parse;
pub use filter::DeviceFilter;
pub use print::{Format, print};
pub use select::{Parsed, Selected};

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use units::{PciDevice, ProfileName};

/// A MIG config file: named configurations in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MigConfigFile {
    /// The configurations; names are unique.
    pub configs: Vec<MigConfig>,
}

impl MigConfigFile {
    /// The configuration with that name.
    pub fn get(&self, name: &str) -> Option<&MigConfig> {
        self.configs.iter().find(|config| config.name == name)
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<&str> {
        self.configs
            .iter()
            .map(|config| config.name.as_str())
            .collect()
    }
}

/// A named configuration. GPUs that no entry matches stay as they are; of several entries that
/// match a GPU the last counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MigConfig {
    /// The name, as it stands in the node label.
    pub name: String,
    /// What is wanted of which GPUs; at least one entry.
    pub entries: Vec<Entry>,
}

/// What is wanted of some GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Which boards; empty: any.
    pub device_filter: Vec<DeviceFilter>,
    /// Which GPUs of these boards.
    pub devices: Devices,
    /// Whether MIG is on.
    pub mig_enabled: bool,
    /// How many slices of each profile. Never a count of 0; empty if MIG is off.
    pub mig_devices: BTreeMap<ProfileName, u32>,
}

impl Entry {
    /// Whether the entry is for the GPU with that index, PCI device and PCI subsystem. `all` means
    /// every MIG-capable GPU: that is for the caller to see to.
    pub fn matches(&self, index: u32, device: PciDevice, subsystem: PciDevice) -> bool {
        let by_filter = self.device_filter.is_empty()
            || self
                .device_filter
                .iter()
                .any(|filter| filter.matches(device, subsystem));
        by_filter && self.devices.contains(index)
    }
}

/// GPUs by index: place in the list of NVIDIA GPUs sorted by PCI address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// Every MIG-capable GPU.
    All,
    /// These, as written: an index may be negative, too large or repeated; it then matches nothing
    /// or nothing more.
    Indices(Vec<i64>),
}

impl Devices {
    /// Whether the GPU with that index is among them.
    pub fn contains(&self, index: u32) -> bool {
        match self {
            Self::All => true,
            Self::Indices(indices) => indices.contains(&i64::from(index)),
        }
    }
}

impl Serialize for Devices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Indices(indices) => indices.serialize(serializer),
        }
    }
}

#[cfg(test)]
mod tests;
