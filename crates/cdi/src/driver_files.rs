// SPDX-License-Identifier: Apache-2.0
//! What of a driver installation has to be in a container.

use std::fs;
use std::path::Path;

/// Folders of libraries below a driver root (source: NVIDIA's container toolkit); those that are
/// there count. `nvidia/current` is Debian's, and VDPAU has its own.
const LIBRARY_FOLDERS: [&str; 9] = [
    "usr/lib64",
    "usr/lib64/vdpau",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/x86_64-linux-gnu/nvidia/current",
    "usr/lib/x86_64-linux-gnu/vdpau",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib/aarch64-linux-gnu/nvidia/current",
    "usr/lib/aarch64-linux-gnu/vdpau",
    "lib64",
];
/// Starts of the names of libraries that programs in containers use (source: NVIDIA's container
/// toolkit).
const LIBRARIES: [&str; 10] = [
    "libcuda.so.",
    "libcudadebugger.so.",
    "libnvcuvid.so.",
    "libnvidia-",
    "libnvoptix.so.",
    "libvdpau_nvidia.so.",
    "libEGL_nvidia.so.",
    "libGLESv1_CM_nvidia.so.",
    "libGLESv2_nvidia.so.",
    "libGLX_nvidia.so.",
];
/// Programs (source: NVIDIA's container toolkit).
const PROGRAMS: [&str; 7] = [
    "usr/bin/nvidia-smi",
    "usr/bin/nvidia-debugdump",
    "usr/bin/nvidia-persistenced",
    "usr/bin/nvidia-cuda-mps-control",
    "usr/bin/nvidia-cuda-mps-server",
    "usr/bin/nvidia-imex",
    "usr/bin/nvidia-imex-ctl",
];
/// Sockets of the driver's services (source: NVIDIA's container toolkit).
const SOCKETS: [&str; 2] = [
    "run/nvidia-persistenced/socket",
    "run/nvidia-fabricmanager/socket",
];

/// Start of the names of firmware that a container may load (source: NVIDIA's container toolkit).
const FIRMWARE: &str = "gsp";

/// Files of a driver, as paths below its root.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverFiles {
    /// Libraries by path.
    pub libraries: Vec<Library>,
    /// Programs.
    pub programs: Vec<String>,
    /// Sockets.
    pub sockets: Vec<String>,
    /// Firmware.
    pub firmware: Vec<String>,
}

/// A library of the driver.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Library {
    /// The file, `usr/lib64/libcuda.so.580.95.05`.
    pub path: String,
    /// Links to it beside it, by which programs ask for it, `usr/lib64/libcuda.so.1`.
    pub links: Vec<String>,
}

impl DriverFiles {
    /// The files of the driver of that version below `root`. What is not there is left out.
    pub fn find(root: &Path, version: &str) -> Self {
        let exists = |path: &&str| root.join(path).exists();
        let own = |path: &str| path.to_owned();
        let mut libraries: Vec<Library> = LIBRARY_FOLDERS
            .iter()
            // A link leads to another of them.
            .filter(|folder| !root.join(folder).is_symlink())
            .flat_map(|folder| libraries(root, folder, version))
            .collect();
        libraries.sort();
        Self {
            libraries,
            programs: PROGRAMS.iter().copied().filter(exists).map(own).collect(),
            sockets: SOCKETS.iter().copied().filter(exists).map(own).collect(),
            firmware: firmware(root, version),
        }
    }

    /// Folders of the libraries, each once.
    pub(crate) fn folders(&self) -> Vec<&str> {
        let mut folders: Vec<&str> = self
            .libraries
            .iter()
            .filter_map(|library| Some(library.path.rsplit_once('/')?.0))
            .collect();
        folders.dedup();
        folders
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.collect()
}

fn firmware(root: &Path, version: &str) -> Vec<String> {
    let folder = format!("lib/firmware/nvidia/{version}");
    let names = names(&root.join(&folder)).into_iter();
    let names = names.filter(|name| name.starts_with(FIRMWARE) && name.ends_with(".bin"));
    let mut files: Vec<String> = names.map(|name| format!("{folder}/{name}")).collect();
    files.sort();
    files
}

fn libraries(root: &Path, folder: &str, version: &str) -> Vec<Library> {
    let end = format!(".so.{version}");
    let mut names = names(&root.join(folder));
    names.retain(|name| LIBRARIES.iter().any(|start| name.starts_with(start)));
    let links_to = |link: &&String, name: &str| {
        let target = fs::read_link(root.join(folder).join(link));
        target.is_ok_and(|target| target == Path::new(name))
    };
    let library = |name: &String| Library {
        path: format!("{folder}/{name}"),
        links: {
            let links = names.iter().filter(|link| links_to(link, name));
            let mut links: Vec<String> = links.map(|link| format!("{folder}/{link}")).collect();
            links.sort();
            links
        },
    };
    names
        .iter()
        .filter(|name| name.ends_with(&end))
        .map(library)
        .collect()
}
