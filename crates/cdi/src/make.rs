// SPDX-License-Identifier: Apache-2.0
//! From the devices of a node to their specification.

use std::collections::BTreeSet;

use publish::{CDI_VENDOR, Hardware, IMEX_CHANNEL_0};

use crate::driver_files::{DriverFiles, Library};
use crate::spec::{Device, DeviceNode, Edits, Hook, Mount, Spec, VERSION};

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
    /// The container toolkit's `nvidia-cdi-hook` or `nvidia-ctk` on the node; empty: no hooks.
    pub hook: &'a str,
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
    let mut mounts = Vec::new();
    for library in &files.libraries {
        mounts.push(mount(input, &library.path, &library.path, false));
        // Programs ask for libraries by these names. A hook makes the links, and fails where
        // something is in their place; without one the libraries are mounted there.
        let names = library.links.iter().filter(|_| input.hook.is_empty());
        mounts.extend(names.map(|name| mount(input, &library.path, name, false)));
    }
    for program in &files.programs {
        mounts.push(mount(input, program, program, false));
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
        hooks: hooks(input.hook, files),
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

/// Links for libraries, and the linker's cache.
fn hooks(path: &str, files: &DriverFiles) -> Vec<Hook> {
    if path.is_empty() || files.libraries.is_empty() {
        return Vec::new();
    }
    let mut links = Vec::new();
    for library in &files.libraries {
        links.extend(link_arguments(library));
    }
    let mut folders = Vec::new();
    for folder in files.folders() {
        folders.extend(["--folder".to_owned(), format!("/{folder}")]);
    }
    let mut hooks = Vec::new();
    if !links.is_empty() {
        hooks.push(hook(path, "create-symlinks", links));
    }
    hooks.push(hook(path, "update-ldcache", folders));
    hooks
}

/// The names by which programs ask for a library; CUDA's also by that which a compiler looks for.
fn link_arguments(library: &Library) -> Vec<String> {
    let file = library.path.rsplit('/').next().unwrap_or_default();
    let mut arguments = Vec::new();
    for link in &library.links {
        arguments.extend(["--link".to_owned(), format!("{file}::/{link}")]);
        if let Some(bare) = link.strip_suffix("libcuda.so.1") {
            let link = format!("libcuda.so.1::/{bare}libcuda.so");
            arguments.extend(["--link".to_owned(), link]);
        }
    }
    arguments
}

fn hook(path: &str, verb: &str, arguments: Vec<String>) -> Hook {
    let program = path.rsplit('/').next().unwrap_or(path);
    let mut args = vec![program.to_owned()];
    if program == "nvidia-ctk" {
        args.push("hook".to_owned());
    }
    args.push(verb.to_owned());
    args.extend(arguments);
    Hook {
        hook_name: "createContainer".to_owned(),
        path: path.to_owned(),
        args,
    }
}
