// SPDX-License-Identifier: Apache-2.0
//! The answer to the kubelet when a container gets devices.

use std::collections::BTreeMap;

use config::deviceplugin::{Config, IdStrategy, ListStrategy};
use plan::Refusal;
use units::Code;

use crate::resource::{Device, Resource};

/// Where containers that are told by mounts look for their devices (source: the NVIDIA container
/// toolkit).
const MOUNTS: &str = "/var/run/nvidia-container-devices";
/// Device node of IMEX channel 0.
pub const IMEX_CHANNEL_0: &str = "/dev/nvidia-caps-imex-channels/channel0";
/// Vendor of the CDI devices, with the class behind a `/`.
pub const CDI_VENDOR: &str = "k8s.device-plugin.nvidia.com";

/// A CDI specification besides that of the GPUs, which may be there or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CdiExtra {
    /// GPUDirect RDMA copy.
    Gdrcopy,
    /// GPUDirect Storage.
    Gds,
    /// Mellanox devices.
    Mofed,
}

impl CdiExtra {
    /// Its CDI class.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Gdrcopy => "gdrcopy",
            Self::Gds => "gds",
            Self::Mofed => "mofed",
        }
    }
}

/// What an answer depends on besides the devices.
#[derive(Clone, Copy, Debug)]
pub struct AllocateFlags<'a> {
    /// Settings in force.
    pub config: &'a Config,
    /// Those of `/dev/nvidiactl`, `/dev/nvidia-uvm`, `/dev/nvidia-uvm-tools` and
    /// `/dev/nvidia-modeset` that exist, in that order.
    pub control_nodes: &'a [String],
    /// Whether [`IMEX_CHANNEL_0`] exists.
    pub has_imex_channel_0: bool,
    /// Specifications that were written because they have something in them.
    pub cdi_extras: &'a [CdiExtra],
    /// A UUID of this answer, for the key of its annotation.
    pub annotation_id: &'a str,
}

/// What a container gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Environment.
    pub envs: BTreeMap<String, String>,
    /// Mounts, writable.
    pub mounts: Vec<Mount>,
    /// Device nodes, to read and write.
    pub devices: Vec<DeviceNode>,
    /// Annotations for the container runtime.
    pub annotations: BTreeMap<String, String>,
    /// Full names of CDI devices.
    pub cdi_devices: Vec<String>,
}

/// A mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Path in the container.
    pub container_path: String,
    /// Path on the node.
    pub host_path: String,
}

/// A device node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceNode {
    /// Path in the container.
    pub container_path: String,
    /// Path on the node.
    pub host_path: String,
}

/// The answer for one container that gets the devices with these ids, in this order.
///
/// # Errors
/// `unknown-device`: the resource has no such device, or it is not to be handed out now.
/// `too-many-replicas`: more than one replica where only one is allowed.
pub fn allocate(
    resource: &Resource,
    ids: &[String],
    flags: &AllocateFlags<'_>,
) -> Result<Answer, Refusal> {
    let devices = check(resource, ids)?;
    let names = names(&devices, flags.config.flags.plugin.device_id_strategy);
    let mut answer = Answer::default();
    by_cdi(&mut answer, &names, flags);
    by_other_means(&mut answer, &devices, &names, flags);
    let features = &flags.config.flags;
    for (enabled, variable) in [
        (features.gdrcopy_enabled, "NVIDIA_GDRCOPY"),
        (features.gds_enabled, "NVIDIA_GDS"),
        (features.mofed_enabled, "NVIDIA_MOFED"),
    ] {
        if enabled {
            answer
                .envs
                .insert(variable.to_owned(), "enabled".to_owned());
        }
    }
    Ok(answer)
}

fn check<'a>(resource: &'a Resource, ids: &[String]) -> Result<Vec<&'a Device>, Refusal> {
    let find = |id: &String| {
        resource.device(id).ok_or_else(|| {
            let message = format!("unknown device: {} has no device {id}", resource.name);
            Refusal::new(Code::UnknownDevice, message)
        })
    };
    let devices: Vec<&Device> = ids.iter().map(find).collect::<Result<_, _>>()?;
    let shared = devices.iter().any(|device| device.replica.is_some());
    if resource.one_replica_a_container && shared && devices.len() > 1 {
        let message = format!(
            "maximum request size for shared resources is 1; found {} of {}: more replicas are no \
             larger share (failRequestsGreaterThanOne)",
            devices.len(),
            resource.name
        );
        return Err(Refusal::new(Code::TooManyReplicas, message));
    }
    Ok(devices)
}

/// What containers call the devices: each GPU or slice once, in the order of the request.
fn names(devices: &[&Device], strategy: IdStrategy) -> Vec<String> {
    let mut names = Vec::new();
    for device in devices {
        let name = match strategy {
            IdStrategy::Uuid => device.hardware.uuid().to_owned(),
            IdStrategy::Index => device.hardware.index(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn by_cdi(answer: &mut Answer, names: &[String], flags: &AllocateFlags<'_>) {
    let plugin = &flags.config.flags.plugin;
    let mut devices: Vec<String> = names.iter().map(|name| cdi_name("gpu", name)).collect();
    if gives_imex(flags) {
        devices.push(cdi_name("imex-channel", "0"));
    }
    let extras = flags.cdi_extras.iter();
    devices.extend(extras.map(|extra| cdi_name(extra.class(), "all")));
    let strategies = &plugin.device_list_strategy;
    if strategies.contains(&ListStrategy::CdiAnnotations) {
        let prefix = &plugin.cdi_annotation_prefix;
        let key = format!("{prefix}nvidia-device-plugin_{}", flags.annotation_id);
        answer.annotations.insert(key, devices.join(","));
    }
    if strategies.contains(&ListStrategy::CdiCri) {
        answer.cdi_devices = devices;
    }
}

/// The full name of a CDI device.
pub fn cdi_name(class: &str, name: &str) -> String {
    format!("{CDI_VENDOR}/{class}={name}")
}

fn by_other_means(
    answer: &mut Answer,
    devices: &[&Device],
    names: &[String],
    flags: &AllocateFlags<'_>,
) {
    const VISIBLE: &str = "NVIDIA_VISIBLE_DEVICES";
    let plugin = &flags.config.flags.plugin;
    let uses = |way| plugin.device_list_strategy.contains(&way);
    let (envvar, mounts) = (uses(ListStrategy::Envvar), uses(ListStrategy::VolumeMounts));
    if envvar {
        answer.envs.insert(VISIBLE.to_owned(), names.join(","));
        if gives_imex(flags) {
            let channels = "NVIDIA_IMEX_CHANNELS".to_owned();
            answer.envs.insert(channels, "0".to_owned());
        }
    }
    if mounts {
        answer.envs.insert(VISIBLE.to_owned(), MOUNTS.to_owned());
        let imex = gives_imex(flags).then_some("imex/0");
        let below = names.iter().map(String::as_str).chain(imex);
        answer.mounts.extend(below.map(|name| Mount {
            container_path: format!("{MOUNTS}/{name}"),
            host_path: "/dev/null".to_owned(),
        }));
    }
    if plugin.pass_device_specs && (envvar || mounts) {
        let root = flags.config.flags.nvidia_dev_root.trim_end_matches('/');
        let own = devices.iter().flat_map(|device| &device.hardware.nodes);
        let paths = flags.control_nodes.iter().chain(own).map(String::as_str);
        let imex = gives_imex(flags).then_some(IMEX_CHANNEL_0);
        answer
            .devices
            .extend(paths.chain(imex).map(|path| DeviceNode {
                container_path: path.to_owned(),
                host_path: format!("{root}{path}"),
            }));
    }
}

fn gives_imex(flags: &AllocateFlags<'_>) -> bool {
    flags.config.imex.channel_0 && flags.has_imex_channel_0
}
