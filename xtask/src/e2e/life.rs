// SPDX-License-Identifier: Apache-2.0
//! Restarts and ends: of kubelets, of the cluster, and of the task that starts it.

use std::process::{Command, Stdio};

use rustix::process::Signal;

use super::pods::{apply, delete, pod, wait_for_phase};
use super::{Outcome, check};
use crate::cluster::{Cluster, Options, Slot, leftovers, until};
use crate::error::Error;
use crate::image::BUSYBOX;

/// Ended and killed, a kubelet finds its pods again, and takes new ones.
pub fn kubelet_restarts(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    let command = ["sleep", "3600"];
    apply(cluster, &pod("survivor", &node.name, BUSYBOX, &command))?;
    wait_for_phase(cluster, "survivor", "Running")?;
    let path = "-o=jsonpath={.status.containerStatuses[0].containerID}";
    let container = || cluster.kubectl(&["get", "pod", "survivor", path]);
    let before = container()?;
    check(before.starts_with("containerd://"), || {
        format!("container {before:?}")
    })?;
    for (name, signal) in [("after-term", Signal::TERM), ("after-kill", Signal::KILL)] {
        node.stop_kubelet(signal)?;
        apply(cluster, &pod(name, &node.name, BUSYBOX, &command))?;
        node.start_kubelet()?;
        wait_for_phase(cluster, name, "Running")?;
        delete(cluster, name)?;
        wait_for_phase(cluster, "survivor", "Running")?;
        let after = container()?;
        check(before == after, || {
            format!("container {before} became {after}")
        })?;
    }
    Ok(delete(cluster, "survivor")?)
}

/// Processes, mounts, cgroups, links, files: all of it goes.
pub fn down(cluster: Cluster) -> Outcome {
    let (folder, slot) = (cluster.folder().to_owned(), cluster.slot());
    cluster.down()?;
    nothing_left(&folder, slot)
}

/// Killed at several points, what was started is found again and ended: by `down`, and by the next
/// `up`.
pub fn killed_starts(options: &Options) -> Outcome {
    let outcome = kill_starts(options);
    if outcome.is_err() {
        task(options, &["down"])?;
    }
    outcome
}

fn kill_starts(options: &Options) -> Outcome {
    let stages = [
        "log/etcd.log",
        "nodes/gpu-worker-01/run/node.pid",
        "log/gpu-worker-02-kubelet.log",
    ];
    for stage in stages {
        let slot = killed_start(options, stage)?;
        task(options, &["down"])?;
        nothing_left(&options.folder, slot)?;
    }
    killed_start(options, stages[1])?;
    down(Cluster::up(options)?)
}

/// Starts `cargo xtask cluster up`, kills it when a file has appeared, and returns the slot that
/// it had taken.
fn killed_start(options: &Options, stage: &str) -> Result<Slot, super::Failure> {
    let mut child = command(options, &["up", "--nodes", "2"])?
        .spawn()
        .map_err(failed)?;
    let file = options.folder.join(stage);
    // Another run's files: they go when the start begins, before it takes a slot.
    let seen = until(&format!("{stage} of a start"), 60, || {
        let taken = !Slot::of(&options.folder)?.is_empty();
        Ok((taken && file.exists()).then_some(()))
    });
    child.kill().and_then(|()| child.wait()).map_err(failed)?;
    seen?;
    let slots = Slot::of(&options.folder)?;
    check(slots.len() == 1, || format!("slots taken: {slots:?}"))?;
    Ok(slots[0])
}

fn task(options: &Options, words: &[&str]) -> Outcome {
    let status = command(options, words)?.status().map_err(failed)?;
    check(status.success(), || format!("cluster {words:?}: {status}"))
}

/// This program as `cargo xtask cluster` for a folder of its own.
fn command(options: &Options, words: &[&str]) -> Result<Command, Error> {
    let mut command = Command::new(std::env::current_exe().map_err(failed)?);
    command
        .args(["cluster", "--folder"])
        .arg(&options.folder)
        .args(words)
        .env("CARGO_TARGET_DIR", &options.target)
        .stdout(Stdio::null());
    Ok(command)
}

fn failed(source: std::io::Error) -> Error {
    Error::Run {
        command: "cargo xtask cluster".to_owned(),
        source,
    }
}

fn nothing_left(folder: &std::path::Path, slot: Slot) -> Outcome {
    // What the kernel ends, it ends soon after.
    let mut left = Vec::new();
    let gone = until("the end of everything", 10, || {
        left = leftovers(folder, slot)?;
        Ok(left.is_empty().then_some(()))
    });
    check(gone.is_ok(), || format!("left behind: {}", left.join("; ")))
}
