// SPDX-License-Identifier: Apache-2.0
//! Identities that a driver gives: UUIDs and PCI ids.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Why a text is not the UUID that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a {kind} UUID: it should look like {example}")]
pub struct ParseUuidError {
    /// The text found.
    pub text: String,
    /// `GPU` or `MIG`.
    pub kind: &'static str,
    /// What a good one looks like.
    pub example: &'static str,
}

macro_rules! uuid_type {
    ($(#[doc = $doc:literal])+ $name:ident, $kind:literal, $prefix:literal, $accepts:expr) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The UUID with these bits, first digit highest.
            pub fn from_bits(bits: u128) -> Self {
                let part = |shift: u32, digits: u32| (bits >> shift) & ((1 << (4 * digits)) - 1);
                Self(format!(
                    "{}{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
                    $prefix,
                    part(96, 8),
                    part(80, 4),
                    part(64, 4),
                    part(48, 4),
                    part(0, 12),
                ))
            }

            /// The text as the driver writes it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = ParseUuidError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                let accepts: fn(&str) -> bool = $accepts;
                match text.strip_prefix($prefix) {
                    Some(rest) if accepts(rest) => Ok(Self(text.to_owned())),
                    _ => Err(ParseUuidError {
                        text: text.to_owned(),
                        kind: $kind,
                        example: concat!($prefix, "5c89852c-d268-c3f3-1b07-005d5ae1dc3f"),
                    }),
                }
            }
        }

        impl TryFrom<String> for $name {
            type Error = ParseUuidError;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(uuid: $name) -> Self {
                uuid.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

uuid_type!(
    /// The UUID of a GPU, `GPU-` and 36 characters; stable for the life of the device.
    GpuUuid,
    "GPU",
    "GPU-",
    is_uuid
);
uuid_type!(
    /// The UUID of a compute instance: `MIG-` and 36 characters or, before driver R470,
    /// `MIG-GPU-<uuid>/<gpu instance>/<compute instance>`.
    ///
    /// Drivers derive it from the place of the instance, so a new instance in the same place may
    /// have the UUID of the old one: never take it for a generation (source: the open kernel
    /// modules, and a capture on an RTX PRO 6000).
    MigUuid,
    "MIG",
    "MIG-",
    |rest| is_uuid(rest) || is_old_mig_uuid(rest)
);

/// 8-4-4-4-12 hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// `GPU-<uuid>/<number>/<number>`.
fn is_old_mig_uuid(text: &str) -> bool {
    let mut parts = text.split('/');
    let gpu = parts.next().and_then(|gpu| gpu.strip_prefix("GPU-"));
    let numbers: Vec<&str> = parts.collect();
    gpu.is_some_and(is_uuid)
        && numbers.len() == 2
        && numbers.iter().all(|number| number.parse::<u8>().is_ok())
}

/// PCI device and vendor id of a GPU in the packed form that NVML and NVIDIA's device filters use:
/// device in the high half, vendor in the low half (`0x233010DE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PciDevice(pub u32);

impl PciDevice {
    /// The device half, `0x2330` of `0x233010DE`.
    pub const fn device(self) -> u16 {
        (self.0 >> 16) as u16
    }
}

impl fmt::Display for PciDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:08X}", self.0)
    }
}
