// SPDX-License-Identifier: Apache-2.0
//! The simulated driver of a node: what a driver container installs below `/run/nvidia/driver`, and
//! what kernel modules show in `/dev`, `/proc/driver` and `/sys`.

use std::path::{Path, PathBuf};

use nvmlsim::{Handle, INSTALLED_WORLD, Options, Spec, World, device_files};

use super::node::Node;
use super::shell::write;
use crate::error::Error;
use crate::image::{self, Entry, Tree};
use crate::process::stream;

/// Where the driver is on a node.
pub const ROOT: &str = "run/nvidia/driver";
/// Folder of its libraries below that.
const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
/// The program that CDI hooks call, on a node.
pub const HOOK: &str = "/opt/nvidia/nvidia-cdi-hook";

/// A stand-in for the container toolkit's hook.
const HOOK_SCRIPT: &str = include_str!("cdi-hook.sh");

/// The files of a simulated driver, and what they need to run by themselves.
///
/// # Errors
/// If they cannot be built or read.
pub fn files(root: &Path, target: &Path) -> Result<Tree, Error> {
    build(root)?;
    let folder = target.join("debug");
    let version = Options::default().driver_version;
    let mut files = image::debian(root)?;
    let library = image::program(&folder.join("libnvmlsim.so"))?;
    for name in ["libnvidia-ml.so", "libcuda.so"] {
        files.insert(format!("{LIBRARIES}/{name}.{version}"), library.clone());
        let link = Entry::Link(format!("{name}.{version}"));
        files.insert(format!("{LIBRARIES}/{name}.1"), link);
    }
    let program = image::program(&folder.join("nvidia-smi"))?;
    files.insert("usr/bin/nvidia-smi".to_owned(), program);
    Ok(files)
}

/// Builds all that the cluster's images are made of, with the workspace's features, so that what the
/// tests have built is not built again.
///
/// # Errors
/// If it does not build.
pub fn build(root: &Path) -> Result<(), Error> {
    let words = [
        "cargo",
        "build",
        "--locked",
        "--workspace",
        "--lib",
        "--bin",
        "slicewright",
        "--bin",
        "nvidia-smi",
        "--bin",
        "validation",
    ];
    match stream(root, &words, |_| {})? {
        true => Ok(()),
        false => Err(Error::Image("the workspace does not build".to_owned())),
    }
}

impl Node {
    /// Gives the node GPUs, such as `8xH100-80GB-SXM`: a driver and device nodes for them.
    ///
    /// # Errors
    /// If the description is wrong, or something cannot be written.
    pub fn install_driver(&self, spec: &str, files: &Tree) -> Result<(), Error> {
        let failed = |error: &dyn std::fmt::Display| Error::Cluster(format!("{spec}: {error}"));
        let spec: Spec = spec.parse().map_err(|error| failed(&error))?;
        let seed = self.name.bytes().map(u64::from).sum();
        let world = World::create(
            &spec,
            &Options {
                seed,
                ..Options::default()
            },
        );
        image::unpack(files, &self.root().join(ROOT))?;
        let path = self.world_file();
        let folder = path.parent().unwrap_or(&path);
        std::fs::create_dir_all(folder).map_err(|source| Error::Write {
            path: folder.to_owned(),
            source,
        })?;
        Handle::create(&path, &world).map_err(|error| failed(&error))?;
        write(&self.root().join(HOOK.trim_start_matches('/')), HOOK_SCRIPT)?;
        self.exec(10, &["chmod", "755", HOOK])?;
        self.show_devices(&world)
    }

    /// The world's file of a node that was given GPUs.
    pub fn world_file(&self) -> PathBuf {
        // Not by way of /proc, whose links a world's file cannot be found by.
        self.disk().join(ROOT).join(INSTALLED_WORLD)
    }

    /// What the kernel shows of the GPUs.
    fn show_devices(&self, world: &World) -> Result<(), Error> {
        let mut script = String::from(
            "set -e\n\
             mkdir -p /dev/nvidia-caps\n\
             mount -t tmpfs tmpfs /proc/driver\n\
             mkdir -p /proc/driver/nvidia-caps\n\
             mount -t tmpfs tmpfs /sys/bus/pci/devices\n",
        );
        for path in device_files::paths(world) {
            // They open like /dev/null.
            script += &format!("mknod -m 666 /{path} c 1 3\n");
        }
        for gpu in &world.gpus {
            let address = format!("0000:{:02x}:00.0", gpu.bus);
            script += &format!(
                "mkdir /sys/bus/pci/devices/{address}\n\
                 cd /sys/bus/pci/devices/{address}\n\
                 echo 0x10de > vendor\n\
                 echo 0x030200 > class\n\
                 echo {} > numa_node\n\
                 head -c 256 /dev/zero > config\n",
                gpu.numa_node
            );
        }
        run_script(self, &script)?;
        let minors = self.root().join("proc/driver/nvidia-caps/mig-minors");
        write(&minors, &device_files::mig_minors(world))
    }
}

/// Runs a script that is too long for a command line.
fn run_script(node: &Node, script: &str) -> Result<(), Error> {
    let path = "run/driver-devices.sh";
    write(&node.root().join(path), script)?;
    node.exec(60, &["sh", &format!("/{path}")]).map(|_| ())
}
