// SPDX-License-Identifier: Apache-2.0
//! What the container toolkit does to a container before it starts.

use std::collections::BTreeSet;

use crate::driver_files::{DriverFiles, Library};
use crate::spec::Hook;

/// Makes the links by which programs ask for libraries.
pub const CREATE_SYMLINKS: &str = "create-symlinks";
/// Uses the CUDA libraries of the image where they are newer than the driver.
const CUDA_COMPAT: &str = "enable-cuda-compat";
/// Lets the linker know of the libraries.
const LDCACHE: &str = "update-ldcache";
/// Keeps tools in the container from making device nodes of their own.
const NO_DEVICE_NODES: &str = "disable-device-node-modification";
/// Tells graphics libraries which GPUs are there.
const APPLICATION_PROFILE: &str = "update-application-profile";
/// Links that programs ask for and the driver's installer does not make, beside the names of those
/// that they lead to (source: NVIDIA's container toolkit).
const MISSING: [(&str, &str); 3] = [
    ("libcuda.so.1", "libcuda.so"),
    ("libGLX_nvidia.so.0", "libGLX_indirect.so.0"),
    ("libnvidia-opticalflow.so.1", "libnvidia-opticalflow.so"),
];
/// Stands for all hooks where some are switched off.
const ALL: &str = "all";

/// The container toolkit's hooks (source: container toolkit 1.20; an older one passes over those
/// that it does not know).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks {
    /// `nvidia-cdi-hook` or `nvidia-ctk` on the node; empty: no hooks.
    pub program: String,
    /// Names of those that are switched off; `all` is all of them.
    pub off: BTreeSet<String>,
}

impl Hooks {
    /// Whether this one is run.
    pub(crate) fn has(&self, name: &str) -> bool {
        !self.program.is_empty() && !self.off.contains(name) && !self.off.contains(ALL)
    }

    /// Those for the files of a driver, in the original's order; none for a driver that has none.
    pub(crate) fn of(&self, files: &DriverFiles, version: &str) -> Vec<Hook> {
        if files.libraries.is_empty() {
            return Vec::new();
        }
        let links = files.libraries.iter().flat_map(links);
        let links = links.flat_map(|(to, link)| ["--link".to_owned(), format!("{to}::/{link}")]);
        let compat = vec![format!("--host-driver-version={version}")];
        let folders = files.folders().into_iter();
        let folders = folders.flat_map(|folder| ["--folder".to_owned(), format!("/{folder}")]);
        let all = [
            (CREATE_SYMLINKS, links.collect()),
            (CUDA_COMPAT, compat),
            (LDCACHE, folders.collect()),
            (NO_DEVICE_NODES, Vec::new()),
            (APPLICATION_PROFILE, Vec::new()),
        ];
        let all = all.into_iter().filter(|(name, _)| self.has(name));
        let useful =
            all.filter(|(name, arguments)| *name != CREATE_SYMLINKS || !arguments.is_empty());
        useful
            .map(|(name, arguments)| self.hook(name, arguments))
            .collect()
    }

    fn hook(&self, name: &str, arguments: Vec<String>) -> Hook {
        let program = self.program.rsplit('/').next().unwrap_or(&self.program);
        let mut args = vec![program.to_owned()];
        if program == "nvidia-ctk" {
            args.push("hook".to_owned());
        }
        args.push(name.to_owned());
        args.extend(arguments);
        Hook {
            hook_name: "createContainer".to_owned(),
            path: self.program.clone(),
            args,
        }
    }
}

/// Links beside a library, each with what it leads to: the names by which programs ask for it.
pub(crate) fn links(library: &Library) -> Vec<(String, String)> {
    let (folder, file) = library.path.rsplit_once('/').unwrap_or(("", &library.path));
    let mut links = Vec::new();
    for link in &library.links {
        links.push((file.to_owned(), link.clone()));
        let name = link.rsplit('/').next().unwrap_or(link);
        let missing = MISSING.iter().filter(|(known, _)| *known == name);
        let missing = missing.map(|(_, missing)| format!("{folder}/{missing}"));
        let missing = missing.filter(|path| !library.links.contains(path));
        links.extend(missing.map(|path| (name.to_owned(), path)));
    }
    links
}
