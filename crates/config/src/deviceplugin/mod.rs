// SPDX-License-Identifier: Apache-2.0
//! The config file of NVIDIA's device plugin and GPU feature discovery, version `v1`.
//!
//! ```yaml
//! version: v1
//! flags: {migStrategy: mixed}
//! sharing:
//!   timeSlicing:
//!     renameByDefault: true
//!     resources: [{name: nvidia.com/gpu, replicas: 4}]
//! ```
//!
//! [`parse`] checks what the file says by itself. Flags and environment may still override it, so
//! faults between settings are told by [`Config::conflicts`] once all are known.

mod choice;
mod decode;
mod devices;
mod duration;
mod sharing;

pub use choice::{
    AllocationPolicy, Choice, DiscoveryStrategy, IdStrategy, ListStrategy, MigStrategy,
};
pub(crate) use decode::decode;
pub use decode::{Parsed, parse};
pub use devices::{DeviceRef, Devices};
pub use sharing::{MPS_LIMIT, Replication, SharedResource, Sharing};

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// All settings, with defaults where the file is silent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Config {
    /// `flags`.
    pub flags: Flags,
    /// `resources`.
    #[serde(skip_serializing_if = "Resources::is_empty")]
    pub resources: Resources,
    /// `sharing`.
    pub sharing: Sharing,
    /// `imex`.
    pub imex: Imex,
}

impl Config {
    /// Settings that do not go together, each as a sentence.
    pub fn conflicts(&self) -> Vec<String> {
        let Sharing::Mps(_) = self.sharing else {
            return Vec::new();
        };
        let mut conflicts = Vec::new();
        if self.flags.mig_strategy == MigStrategy::Mixed {
            conflicts.push(
                "sharing.mps does not work with flags.migStrategy: mixed; use none or single"
                    .to_owned(),
            );
        }
        if self.flags.mps_root.is_empty() {
            conflicts.push(
                "sharing.mps needs flags.mpsRoot (or --mps-root, MPS_ROOT), such as /run/nvidia/mps"
                    .to_owned(),
            );
        }
        conflicts
    }
}

/// `flags`: settings that all programs share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Flags {
    /// How slices are named.
    pub mig_strategy: MigStrategy,
    /// Whether a missing driver is an error.
    pub fail_on_init_error: bool,
    /// Folder of the MPS daemon; empty: none.
    pub mps_root: String,
    /// Root of the driver installation.
    pub nvidia_driver_root: String,
    /// Root of the device nodes; the driver root if the file is silent.
    pub nvidia_dev_root: String,
    /// GPUDirect RDMA copy devices.
    pub gdrcopy_enabled: bool,
    /// GPUDirect Storage devices.
    pub gds_enabled: bool,
    /// Mellanox devices.
    pub mofed_enabled: bool,
    /// Labels through NodeFeature objects; `None`: as each program decides.
    #[serde(rename = "useNodeFeatureAPI")]
    pub use_node_feature_api: Option<bool>,
    /// How devices are found.
    pub device_discovery_strategy: DiscoveryStrategy,
    /// `flags.plugin`.
    pub plugin: Plugin,
    /// `flags.gfd`.
    #[serde(skip_serializing_if = "Gfd::is_default")]
    pub gfd: Gfd,
}

impl Default for Flags {
    fn default() -> Self {
        Self {
            mig_strategy: MigStrategy::default(),
            fail_on_init_error: true,
            mps_root: String::new(),
            nvidia_driver_root: "/".to_owned(),
            nvidia_dev_root: "/".to_owned(),
            gdrcopy_enabled: false,
            gds_enabled: false,
            mofed_enabled: false,
            use_node_feature_api: None,
            device_discovery_strategy: DiscoveryStrategy::default(),
            plugin: Plugin::default(),
            gfd: Gfd::default(),
        }
    }
}

/// `flags.plugin`: settings of the device plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Plugin {
    /// Device nodes in the answer to the kubelet.
    pub pass_device_specs: bool,
    /// How containers learn their devices; at least one.
    pub device_list_strategy: BTreeSet<ListStrategy>,
    /// What the ids are.
    #[serde(rename = "deviceIDStrategy")]
    pub device_id_strategy: IdStrategy,
    /// Prefix of CDI annotations.
    pub cdi_annotation_prefix: String,
    /// Program that CDI hooks call.
    #[serde(rename = "nvidiaCTKPath")]
    pub nvidia_ctk_path: String,
    /// Where the container sees the driver root.
    pub container_driver_root: String,
    /// Which GPU a shared replica is taken from.
    pub shared_devices_allocation_policy: AllocationPolicy,
}

impl Default for Plugin {
    fn default() -> Self {
        Self {
            pass_device_specs: false,
            device_list_strategy: BTreeSet::from([ListStrategy::default()]),
            device_id_strategy: IdStrategy::default(),
            cdi_annotation_prefix: "cdi.k8s.io/".to_owned(),
            nvidia_ctk_path: "/usr/bin/nvidia-ctk".to_owned(),
            container_driver_root: "/driver-root".to_owned(),
            shared_devices_allocation_policy: AllocationPolicy::default(),
        }
    }
}

/// `flags.gfd`: settings of GPU feature discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gfd {
    /// Label once and end.
    pub oneshot: bool,
    /// No timestamp label.
    pub no_timestamp: bool,
    /// How often labels are made anew.
    pub sleep_interval: SleepInterval,
    /// Label file; empty: standard output.
    pub output_file: String,
    /// File with the name of the machine type.
    pub machine_type_file: String,
}

impl Gfd {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Gfd {
    fn default() -> Self {
        Self {
            oneshot: false,
            no_timestamp: false,
            sleep_interval: SleepInterval::Every(Duration::from_secs(60)),
            output_file: "/etc/kubernetes/node-feature-discovery/features.d/gfd".to_owned(),
            machine_type_file: "/sys/class/dmi/id/product_name".to_owned(),
        }
    }
}

/// `flags.gfd.sleepInterval`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepInterval {
    /// So often.
    Every(Duration),
    /// Never again.
    Infinite,
}

impl Serialize for SleepInterval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Every(every) => serializer.collect_str(&format_args!("{}ns", every.as_nanos())),
            Self::Infinite => serializer.serialize_str("infinite"),
        }
    }
}

/// `resources`: names of one's own for devices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Resources {
    /// For whole GPUs, by their product name. The first pattern that matches has it.
    pub gpus: Vec<Pattern>,
    /// For slices, by their profile.
    pub mig: Vec<Pattern>,
}

impl Resources {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A name for what a pattern matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pattern {
    /// The whole text, with `*` for any part of it.
    pub pattern: String,
    /// Full name, `nvidia.com/a100`.
    pub name: String,
}

/// `imex`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Imex {
    /// Whether IMEX channel 0 is given to containers (`channelIDs: [0]`); no other is possible.
    #[serde(
        rename = "channelIDs",
        with = "channels",
        skip_serializing_if = "channels::none"
    )]
    pub channel_0: bool,
    /// Whether its device node must exist.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
}

mod channels {
    use serde::Serializer;

    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn serialize<S: Serializer>(_: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([0])
    }

    #[allow(clippy::trivially_copy_pass_by_ref)]
    pub fn none(channel_0: &bool) -> bool {
        !channel_0
    }
}

#[cfg(test)]
mod tests;
