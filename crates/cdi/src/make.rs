// SPDX-License-Identifier: Apache-2.0
//! From the devices of a node to their specification.

use std::collections::BTreeSet;

use publish::{CDI_VENDOR, Hardware, IMEX_CHANNEL_0};

use crate::driver_files::DriverFiles;
use crate::hooks::{self, Hooks};
use crate::spec::{Device, DeviceNode, Edits, Mount, Spec, VERSION};

/// What a specification of GPUs is made of.
#[derive(Clone, Copy, Debug)]
pub struct Input<'a> {
    /// GPUs and slices of the node.
    pub hardware: &'a [Hardware],
    /// Whether devices are called by index as well (`deviceIDStrategy: index`).
    pub by_index: bool,
    /// Control device nodes that there are.
    pub control_nodes: &'a [String],
    /// Root of the device nodes on the node.
    pub dev_root: &'a str,
    /// Root of the driver on the node.
    pub driver_root: &'a str,
    /// What of the driver goes into containers.
    pub files: &'a DriverFiles,
    /// Version of the driver.
    pub driver_version: &'a str,
    /// What is run when a container is made.
    pub hooks: &'a Hooks,
}

/// The specification of a node's GPUs and slices. Those whose device nodes are not all known have
/// no entry: a container would get less than it needs.
pub fn gpus(input: &Input<'_>) -> Spec {
    let mut devices = Vec::new();
    let mut names = BTreeSet::new();
    for hardware in input.hardware.iter().filter(|it| !it.nodes.is_empty()) {
        let by_index = input.by_index.then(|| hardware.index());
        for name in [Some(hardware.uuid().to_owned()), by_index] {
            let Some(name) = name.filter(|name| names.insert(name.clone())) else {
                continue;
            };
            devices.push(Device {
                name,
                container_edits: Edits {
                    device_nodes: nodes(&hardware.nodes, input.dev_root),
                    ..Edits::default()
                },
            });
        }
    }
    Spec {
        cdi_version: VERSION.to_owned(),
        kind: format!("{CDI_VENDOR}/gpu"),
        devices,
        container_edits: common(input),
    }
}

/// The specification of IMEX channel 0.
pub fn imex_channel(dev_root: &str) -> Spec {
    Spec {
        cdi_version: VERSION.to_owned(),
        kind: format!("{CDI_VENDOR}/imex-channel"),
        devices: vec![Device {
            name: "0".to_owned(),
            container_edits: Edits {
                device_nodes: nodes(&[IMEX_CHANNEL_0.to_owned()], dev_root),
                ..Edits::default()
            },
        }],
        container_edits: Edits {
            env: vec![VOID.to_owned()],
            ..Edits::default()
        },
    }
}

/// Keeps NVIDIA's own runtime from adding its idea of devices.
const VOID: &str = "NVIDIA_VISIBLE_DEVICES=void";

/// What every container with a GPU gets.
fn common(input: &Input<'_>) -> Edits {
    let files = input.files;
    let makes_links = input.hooks.has(hooks::CREATE_SYMLINKS);
    let mut mounts = Vec::new();
    for library in &files.libraries {
        mounts.push(mount(input, &library.path, &library.path, false));
        // A hook makes the links by which programs ask for it, and fails where something is
        // mounted in their place (rename(2): EBUSY); without one it is mounted there.
        let names = hooks::links(library).into_iter().filter(|_| !makes_links);
        mounts.extend(names.map(|(_, name)| mount(input, &library.path, &name, false)));
    }
    for file in files.programs.iter().chain(&files.firmware) {
        mounts.push(mount(input, file, file, false));
    }
    for socket in &files.sockets {
        mounts.push(mount(input, socket, socket, true));
    }
    let cuda = files.libraries.iter().map(|library| library.path.as_str());
    let cuda = cuda
        .filter_map(|path| path.split_once("/libcuda.so."))
        .next();
    let cuda = cuda.map(|(folder, _)| format!("NVIDIA_CTK_LIBCUDA_DIR=/{folder}"));
    Edits {
        env: cuda.into_iter().chain([VOID.to_owned()]).collect(),
        device_nodes: nodes(input.control_nodes, input.dev_root),
        mounts,
        hooks: input.hooks.of(files, input.driver_version),
    }
}

fn nodes(paths: &[String], root: &str) -> Vec<DeviceNode> {
    let node = |path: &String| DeviceNode {
        path: path.clone(),
        host_path: below(root, path),
        permissions: "rwm".to_owned(),
    };
    paths.iter().map(node).collect()
}

fn mount(input: &Input<'_>, from: &str, to: &str, is_socket: bool) -> Mount {
    let options: &[&str] = match is_socket {
        true => &["nosuid", "nodev", "rbind", "rprivate", "noexec"],
        false => &["ro", "nosuid", "nodev", "rbind", "rprivate"],
    };
    Mount {
        host_path: below(input.driver_root, from),
        container_path: format!("/{to}"),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    }
}

fn below(root: &str, path: &str) -> String {
    let root = root.trim_end_matches('/');
    format!("{root}/{}", path.trim_start_matches('/'))
}
