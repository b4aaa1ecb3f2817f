// SPDX-License-Identifier: Apache-2.0
//! The format, as far as it is used here (source: CDI 0.5.0, `SPEC.md`).
//!
//! What may be left out in the format may be left out here, as files of others are read too.

use std::collections::BTreeSet;

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
    #[serde(default)]
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
    #[serde(default)]
    pub container_edits: Edits,
}

impl Device {
    /// Whether it has device nodes, and the other the same.
    pub(crate) fn has_nodes_of(&self, other: &Self) -> bool {
        let paths = |device: &Self| -> BTreeSet<String> {
            let nodes = device.container_edits.device_nodes.iter();
            nodes.map(|node| node.path.clone()).collect()
        };
        let ours = paths(self);
        !ours.is_empty() && ours == paths(other)
    }
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
    /// Path on the node; empty: the same.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host_path: String,
    /// Some of `rwm`; empty: all.
    #[serde(default, skip_serializing_if = "String::is_empty")]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
}
