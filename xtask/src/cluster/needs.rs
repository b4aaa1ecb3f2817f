// SPDX-License-Identifier: Apache-2.0
//! What a machine must have for a cluster: root, Linux features, programs of Debian packages, and
//! Go where the cluster's programs are not built yet. With `CI=true` packages are installed.

use std::path::Path;

use super::binaries;
use super::shell::{PATH, run};
use crate::error::Error;
use crate::process::works;

/// A file or program, and the Debian package that has it.
const FILES: &[(&str, &str)] = &[
    ("/bin/busybox", "busybox-static"),
    ("/usr/lib/cni/host-local", "containernetworking-plugins"),
    ("/usr/lib/cni/ptp", "containernetworking-plugins"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
    ("nsenter", "util-linux"),
    ("openssl", "openssl"),
    ("runc", "runc"),
    ("unshare", "util-linux"),
];

/// What this machine lacks, in words; empty if a cluster can be started.
///
/// # Errors
/// If the modules in `tools/` cannot be read; with `CI=true`, if something cannot be had.
pub fn missing(root: &Path, target: &Path) -> Result<Vec<String>, Error> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() {
        missing.push("root".to_owned());
    }
    let mut packages = packages();
    let install = ci() && missing.is_empty() && !packages.is_empty();
    if install && let Err(error) = apt(&packages) {
        eprintln!("{error}");
    }
    if install {
        packages = self::packages();
    }
    missing.extend(packages.iter().map(|package| format!("package {package}")));
    let spaces = [
        "unshare", "--mount", "--pid", "--net", "--uts", "--fork", "true",
    ];
    if missing.is_empty() && run(10, &spaces).is_err() {
        missing.push("namespaces".to_owned());
    }
    if super::sweep::hierarchies().is_empty() {
        missing.push("cgroup version 1 (version 2 alone is not supported yet)".to_owned());
    }
    if missing.is_empty() && binaries::need_go(root, target)? {
        if !works(root, &["go", "version"]) {
            missing.push("Go 1.26".to_owned());
        } else if let Err(error) = binaries::fetch(root, target) {
            missing.push(format!("sources of the cluster's programs ({error})"));
        }
    }
    match missing.is_empty() || !ci() {
        true => Ok(missing),
        false => Err(Error::Cluster(format!("missing: {}", missing.join(", ")))),
    }
}

/// Whether what is missing is an error.
fn ci() -> bool {
    std::env::var("CI").as_deref() == Ok("true")
}

/// Packages that are not there.
fn packages() -> Vec<&'static str> {
    let there = |file: &str| {
        let mut folders = PATH.split(':').map(Path::new);
        match file {
            "/bin/busybox" => is_static(Path::new(file)),
            _ => folders.any(|folder| folder.join(file).exists()),
        }
    };
    let lacking = FILES.iter().filter(|(file, _)| !there(file));
    let mut packages: Vec<&str> = lacking.map(|(_, package)| *package).collect();
    packages.dedup();
    packages
}

/// Whether a program needs no loader: that is what tells busybox-static from busybox.
fn is_static(program: &Path) -> bool {
    let loader = b"/ld-linux";
    std::fs::read(program).is_ok_and(|bytes| {
        let head = &bytes[..bytes.len().min(4096)];
        !head.windows(loader.len()).any(|window| window == loader)
    })
}

fn apt(packages: &[&str]) -> Result<(), Error> {
    println!("installing {}", packages.join(" "));
    run(300, &["apt-get", "update"])?;
    let mut words = vec![
        "env",
        "DEBIAN_FRONTEND=noninteractive",
        "apt-get",
        "install",
    ];
    words.extend(["--yes", "--no-install-recommends"]);
    words.extend(packages);
    run(600, &words).map(|_| ())
}
