// SPDX-License-Identifier: Apache-2.0
//! Device filters.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};
use units::PciDevice;

use crate::tree::{quoted, unsigned};

/// A board by its PCI ids: `0xDDDDVVVV`, or with subsystem `0xDDDDVVVV:0xSSSSVVVV`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceFilter {
    /// PCI device and vendor.
    pub device: PciDevice,
    /// PCI subsystem device and vendor; `None`: any.
    pub subsystem: Option<PciDevice>,
}

impl DeviceFilter {
    /// Whether a GPU with these ids is meant.
    pub fn matches(self, device: PciDevice, subsystem: PciDevice) -> bool {
        self.device == device && self.subsystem.is_none_or(|wanted| wanted == subsystem)
    }
}

/// The text is no device filter. The original program takes it for one that matches nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{} is not a device filter: expected PCI device and vendor such as 0x233010DE, \
     or with subsystem 0x233010DE:0x16C110DE (slicewright host list -o wide shows them)",
    quoted(.0)
)]
pub struct ParseFilterError(pub String);

impl FromStr for DeviceFilter {
    type Err = ParseFilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = |part: &str| {
            let number = unsigned(&part.replace('_', ""))?;
            u32::try_from(number).ok().map(PciDevice)
        };
        let (device, subsystem) = match text.split_once(':') {
            None => (id(text), Some(None)),
            Some((device, subsystem)) => (id(device), id(subsystem).map(Some)),
        };
        match (device, subsystem) {
            (Some(device), Some(subsystem)) => Ok(Self { device, subsystem }),
            _ => Err(ParseFilterError(text.to_owned())),
        }
    }
}

impl fmt::Display for DeviceFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.device)?;
        match self.subsystem {
            Some(subsystem) => write!(f, ":{subsystem}"),
            None => Ok(()),
        }
    }
}

impl Serialize for DeviceFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
