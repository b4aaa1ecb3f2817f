// SPDX-License-Identifier: Apache-2.0
//! The programs of a cluster. They are built from Go modules in `tools/`, once for each state of
//! these; or given, where an environment variable names a folder that has them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

use crate::error::Error;

/// Folders of programs.
pub struct Binaries {
    /// kube-apiserver, kube-controller-manager, kube-scheduler, kubelet, kubectl.
    pub kubernetes: PathBuf,
    /// etcd.
    pub etcd: PathBuf,
    /// containerd, its shim, ctr.
    pub containerd: PathBuf,
}

impl Binaries {
    /// The path of a program of Kubernetes.
    pub fn kubernetes(&self, program: &str) -> String {
        self.kubernetes.join(program).display().to_string()
    }
}

/// A Go module in `tools/` that has programs as tool dependencies.
struct Module {
    /// Its folder.
    name: &'static str,
    /// The environment variable that names a folder with its programs.
    variable: &'static str,
    /// The requirement that says which version it is.
    versioned: &'static str,
    /// Flags of `go build`; `{version}`, `{major}`, `{minor}` stand for parts of the version.
    flags: &'static [&'static str],
    /// Its programs and their packages.
    programs: &'static [(&'static str, &'static str)],
}

/// Cold, on two shared cores: 8 to 13 minutes.
const KUBERNETES: Module = Module {
    name: "kubernetes",
    variable: "SLICEWRIGHT_KUBE_BIN",
    versioned: "k8s.io/kubernetes",
    // Without these a kubelet says that it is v0.0.0.
    flags: &["-ldflags=-s -w \
         -X k8s.io/component-base/version.gitVersion={version} \
         -X k8s.io/component-base/version.gitMajor={major} \
         -X k8s.io/component-base/version.gitMinor={minor}"],
    programs: &[
        ("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
        (
            "kube-controller-manager",
            "k8s.io/kubernetes/cmd/kube-controller-manager",
        ),
        ("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
        ("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
        ("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    ],
};

const ETCD: Module = Module {
    name: "etcd",
    variable: "SLICEWRIGHT_ETCD_BIN",
    versioned: "go.etcd.io/etcd/server/v3",
    flags: &["-ldflags=-s -w"],
    programs: &[("etcd", "go.etcd.io/etcd/server/v3")],
};

const CONTAINERD: Module = Module {
    name: "containerd",
    variable: "SLICEWRIGHT_CONTAINERD_BIN",
    versioned: "github.com/containerd/containerd/v2",
    flags: &[
        // Snapshotters that need C libraries.
        "-tags=no_btrfs,no_devmapper,no_zfs",
        "-ldflags=-s -w -X github.com/containerd/containerd/v2/version.Version={version}",
    ],
    programs: &[
        (
            "containerd",
            "github.com/containerd/containerd/v2/cmd/containerd",
        ),
        (
            "containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
        ),
        ("ctr", "github.com/containerd/containerd/v2/cmd/ctr"),
    ],
};

/// Modules to fetch at most this long, and to build at most this long, in seconds.
const FETCH: u32 = 900;
const BUILD: u32 = 1800;

/// The programs, built where they are not there yet.
///
/// # Errors
/// If a given folder lacks one, or Go cannot build them.
pub fn get(root: &Path, target: &Path) -> Result<Binaries, Error> {
    Ok(Binaries {
        kubernetes: folder(root, target, &KUBERNETES)?,
        etcd: folder(root, target, &ETCD)?,
        containerd: folder(root, target, &CONTAINERD)?,
    })
}

/// Whether something has to be built: then Go is needed.
///
/// # Errors
/// If the module files cannot be read.
pub fn need_go(root: &Path, target: &Path) -> Result<bool, Error> {
    for module in [&KUBERNETES, &ETCD, &CONTAINERD] {
        let there = Recipe::read(root, module)?.folder(target).is_dir();
        if std::env::var_os(module.variable).is_none() && !there {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Fetches the sources of what has to be built, so that a machine without a network says so
/// before anything is built.
///
/// # Errors
/// If they cannot be fetched.
pub fn fetch(root: &Path, target: &Path) -> Result<(), Error> {
    for module in [&ETCD, &CONTAINERD, &KUBERNETES] {
        let there = Recipe::read(root, module)?.folder(target).is_dir();
        if std::env::var_os(module.variable).is_none() && !there {
            go(root, module, FETCH, &["mod".into(), "download".into()])?;
        }
    }
    Ok(())
}

fn folder(root: &Path, target: &Path, module: &'static Module) -> Result<PathBuf, Error> {
    if let Some(given) = std::env::var_os(module.variable) {
        let given = std::path::absolute(&given).unwrap_or_else(|_| PathBuf::from(&given));
        for (program, _) in module.programs {
            if !given.join(program).is_file() {
                let variable = module.variable;
                let message = format!("{variable}={} has no {program}", given.display());
                return Err(Error::Cluster(message));
            }
        }
        return Ok(given);
    }
    let recipe = Recipe::read(root, module)?;
    let folder = recipe.folder(target);
    if !folder.is_dir() {
        build(root, &recipe, &folder)?;
    }
    Ok(folder)
}

/// What a build depends on.
struct Recipe {
    module: &'static Module,
    /// The flags, with the version filled in.
    flags: Vec<String>,
    /// Of the module's files and the flags.
    hash: String,
}

impl Recipe {
    fn read(root: &Path, module: &'static Module) -> Result<Self, Error> {
        let read = |file: &str| {
            let path = root.join("tools").join(module.name).join(file);
            fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
        };
        let (requirements, sums) = (read("go.mod")?, read("go.sum")?);
        let version = version(&requirements, module.versioned).ok_or_else(|| {
            let name = module.name;
            Error::Cluster(format!("tools/{name}/go.mod does not say its version"))
        })?;
        let mut parts = version.trim_start_matches('v').split('.');
        let (major, minor) = (parts.next(), parts.next());
        let fill = |flag: &&str| {
            flag.replace("{version}", version)
                .replace("{major}", major.unwrap_or_default())
                .replace("{minor}", minor.unwrap_or_default())
        };
        let flags: Vec<String> = module.flags.iter().map(fill).collect();
        let mut hasher = Sha256::new();
        for part in [&requirements, &sums, &flags.join(" ")] {
            hasher.update(part);
        }
        let hash = crate::image::hex(&hasher.finalize());
        Ok(Self {
            module,
            flags,
            hash,
        })
    }

    fn folder(&self, target: &Path) -> PathBuf {
        let name = format!("{}-{}", self.module.name, &self.hash[..16]);
        target.join("tools").join(name)
    }
}

/// The version that a go.mod requires of a module.
fn version<'a>(requirements: &'a str, module: &str) -> Option<&'a str> {
    let mut lines = requirements.lines().map(str::trim);
    lines.find_map(|line| {
        let line = line.strip_prefix("require ").unwrap_or(line);
        let version = line.strip_prefix(module)?.strip_prefix(' ')?;
        version
            .starts_with('v')
            .then(|| version.split(' ').next())?
    })
}

/// Builds beside the folder and renames at the end: a folder that is there is complete.
fn build(root: &Path, recipe: &Recipe, folder: &Path) -> Result<(), Error> {
    let module = recipe.module;
    println!("building tools/{}, once for this go.sum", module.name);
    let partial = folder.with_extension(format!("partial-{}", std::process::id()));
    for (program, package) in module.programs {
        let mut words = vec![
            "build".to_owned(),
            "-mod=readonly".to_owned(),
            "-trimpath".to_owned(),
            "-buildvcs=false".to_owned(),
        ];
        words.extend(recipe.flags.iter().cloned());
        words.push(format!("-o={}", partial.join(program).display()));
        words.push((*package).to_owned());
        go(root, module, BUILD, &words)?;
    }
    if fs::rename(&partial, folder).is_err() && !folder.is_dir() {
        let message = format!("cannot make {}", folder.display());
        return Err(Error::Cluster(message));
    }
    Ok(())
}

fn go(root: &Path, module: &Module, seconds: u32, words: &[String]) -> Result<(), Error> {
    let line = format!("go {} in tools/{}", words.join(" "), module.name);
    let status = Command::new("timeout")
        .args(["--kill-after=5", &seconds.to_string()])
        // The machine's other work goes first.
        .args(["nice", "-n", "19", "go"])
        .args(words)
        .current_dir(root.join("tools").join(module.name))
        .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "")])
        .status()
        .map_err(|source| Error::Run {
            command: line.clone(),
            source,
        })?;
    match status.code() {
        Some(0) => Ok(()),
        Some(124 | 137) => Err(Error::Late {
            what: line,
            seconds,
        }),
        _ => Err(Error::Failed {
            command: line,
            stderr: "see above".to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_requirement() {
        let text = "replace (\n\tk8s.io/api => k8s.io/api v0.37.2\n)\n\
                    tool k8s.io/kubernetes/cmd/kubelet\n\
                    require (\n\tk8s.io/kubernetes v1.37.2 // indirect\n)\n";
        assert_eq!(version(text, "k8s.io/kubernetes"), Some("v1.37.2"));
        assert_eq!(version(text, "k8s.io/api"), None);
        assert_eq!(version("require a.b/c v2.0.1", "a.b/c"), Some("v2.0.1"));
    }

    #[test]
    fn every_module_of_the_repository_has_a_recipe() {
        for module in [&KUBERNETES, &ETCD, &CONTAINERD] {
            let recipe = Recipe::read(crate::root(), module).unwrap();
            assert_eq!(recipe.hash.len(), 64);
            assert!(recipe.flags.iter().all(|flag| !flag.contains('{')));
        }
    }
}
