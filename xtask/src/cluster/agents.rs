// SPDX-License-Identifier: Apache-2.0
//! Slicewright on the nodes of a cluster, installed as users install it.

use std::path::Path;

use serde_json::json;

use super::driver::{self, HOOK};
use super::{Cluster, until};
use crate::error::Error;
use crate::image::{self, DRIVER, SLICEWRIGHT};
use crate::process::output;

/// Namespace that scripts for GPU Operator expect.
pub const NAMESPACE: &str = "gpu-operator";

impl Cluster {
    /// Brings the project's images to all nodes, installs the agent, and waits until it serves on
    /// every node that was given GPUs.
    ///
    /// # Errors
    /// If an image cannot be built, or an agent does not serve in time.
    pub fn install(&self, root: &Path, target: &Path) -> Result<(), Error> {
        let files = driver::files(root, target)?;
        let images = [
            image::slicewright(root, target, false)?,
            image::validation(root, target)?,
            image::driver_container(files)?,
        ];
        for (image, name) in images.iter().zip(["slicewright", "validation", "driver"]) {
            let path = self.folder().join(format!("{name}.tar"));
            image.write(&path)?;
            self.load(&path)?;
        }
        let manifest = manifest(&target.join("debug/slicewright"))?;
        self.apply(&manifest)?;
        self.await_cluster_policy()?;
        self.apply(&driver_daemon_set().to_string())?;
        self.await_agents()
    }

    /// Applies a manifest. Kinds that it defines need a moment until they are known.
    ///
    /// # Errors
    /// If the API server does not take it within some seconds.
    pub fn apply(&self, manifest: &str) -> Result<(), Error> {
        let words = ["apply", "--filename=-"];
        let mut last = None;
        let applied = until("the manifest to be taken", 20, || {
            match self.kubectl_with(&words, manifest) {
                Ok(_) => Ok(Some(())),
                Err(error) => {
                    last = Some(error);
                    Ok(None)
                }
            }
        });
        applied.map_err(|late| last.unwrap_or(late))
    }

    /// Waits until the installation has created ClusterPolicy where it is not there.
    ///
    /// # Errors
    /// If that takes too long.
    pub fn await_cluster_policy(&self) -> Result<(), Error> {
        let namespace = format!("--namespace={NAMESPACE}");
        let jobs = "--selector=app.kubernetes.io/name=slicewright";
        let words = ["wait", "job", jobs, &namespace, "--for=condition=complete"];
        self.kubectl(&[&words[..], &["--timeout=100s"]].concat())
            .map(|_| ())
    }

    /// Waits until every agent serves and every driver pod runs.
    ///
    /// # Errors
    /// If one does not in time.
    pub fn await_agents(&self) -> Result<(), Error> {
        for name in ["nvidia-device-plugin-daemonset", "nvidia-driver-daemonset"] {
            let set = format!("daemonset/{name}");
            let namespace = format!("--namespace={NAMESPACE}");
            let words = ["rollout", "status", &set, &namespace, "--timeout=100s"];
            self.kubectl(&words)?;
        }
        Ok(())
    }
}

/// What the built `slicewright install` prints for the cluster.
///
/// # Errors
/// If it fails.
fn manifest(slicewright: &Path) -> Result<String, Error> {
    let binary = slicewright.to_string_lossy();
    let words = [
        &binary,
        "install",
        "--compat",
        "--pull-policy=never",
        "--image",
        SLICEWRIGHT,
        "--cdi-hook-path",
        HOOK,
    ];
    output(Path::new("."), &words)
}

/// As [`manifest`], by the program beside this one.
///
/// # Errors
/// As [`manifest`].
pub fn printed() -> Result<String, Error> {
    let this = std::env::current_exe().map_err(|source| Error::Run {
        command: "slicewright install".to_owned(),
        source,
    })?;
    manifest(&this.with_file_name("slicewright"))
}

/// The pods in which people look at the hardware, as the driver's container has it.
fn driver_daemon_set() -> serde_json::Value {
    let labels = json!({ "app": "nvidia-driver-daemonset" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "name": "nvidia-driver-daemonset", "namespace": NAMESPACE },
        "spec": {
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "tolerations": [{ "operator": "Exists" }],
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{
                        "name": "nvidia-driver-ctr",
                        "image": DRIVER,
                        "imagePullPolicy": "Never",
                        "securityContext": { "privileged": true },
                        "volumeMounts": [
                            { "name": "state", "mountPath": "/run/nvidia-persistenced" },
                        ],
                    }],
                    "volumes": [{
                        "name": "state",
                        "hostPath": { "path": "/run/nvidia/driver/run/nvidia-persistenced" },
                    }],
                },
            },
        },
    })
}
