// SPDX-License-Identifier: Apache-2.0
//! The format, as far as it is used here (source: CDI 0.5.0, `SPEC.md`).

use serde::{Deserialize, Serialize};

/// Version of the format that is written: the oldest that has all that is needed, as old runtimes
/// refuse newer ones.
pub const VERSION: &str = "0.5.0";

/// A specification: devices of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// Version of the format.
    pub cdi_version: String,
    /// `VENDOR/CLASS`.
    pub kind: String,
    /// The devices, each name once.
    pub devices: Vec<Device>,
    /// What every container with one of the devices gets.
    #[serde(default, skip_serializing_if = "Edits::is_empty")]
    pub container_edits: Edits,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Device {
    /// Its name within the kind.
    pub name: String,
    /// What a container with it gets.
    pub container_edits: Edits,
}

/// What a container gets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Edits {
    /// Environment, `NAME=value`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Device nodes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub device_nodes: Vec<DeviceNode>,
    /// Mounts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Programs that the runtime runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<Hook>,
}

impl Edits {
    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A device node. Its numbers are read by the runtime.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeviceNode {
    /// Path in the container.
    pub path: String,
    /// Path on the node.
    pub host_path: String,
    /// Some of `rwm`.
    pub permissions: String,
}

/// A mount.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mount {
    /// Path on the node.
    pub host_path: String,
    /// Path in the container.
    pub container_path: String,
    /// Options of the mount.
    pub options: Vec<String>,
}

/// A program that the runtime runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// When: `createContainer`.
    pub hook_name: String,
    /// The program, on the node.
    pub path: String,
    /// Its arguments, the program's name first.
    pub args: Vec<String>,
}
