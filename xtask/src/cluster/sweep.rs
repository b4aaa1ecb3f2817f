// SPDX-License-Identifier: Apache-2.0
//! Ends a cluster, or what is left of one. It needs no memory of what was started: processes carry
//! the mark in their environment or sit in the cluster's cgroups, the bridge carries the folder's
//! name. Mounts and network namespaces belong to the nodes' processes alone and go with them.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};

use super::NODES;
use super::shell::{MARK, until};
use super::slot::Slot;
use crate::error::Error;

const CGROUPS: &str = "/sys/fs/cgroup";

/// Ends all processes of the cluster in `folder` and removes what it has made, but the logs.
///
/// # Errors
/// If something does not go away.
pub fn sweep(folder: &Path) -> Result<(), Error> {
    let slots = Slot::of(folder)?;
    until("the end of the cluster's processes", 30, || {
        let pids = processes(folder, &slots);
        for pid in &pids {
            // It may have ended meanwhile.
            let _ = kill_process(*pid, Signal::KILL);
        }
        Ok(pids.is_empty().then_some(()))
    })?;
    until("the end of the cluster's cgroups", 30, || {
        let left = cgroups(&slots).filter(|path| !remove(path)).count();
        Ok((left == 0).then_some(()))
    })?;
    for slot in slots {
        slot.give()?;
    }
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.ends_with("log") {
            continue;
        }
        let removed = match path.is_dir() {
            true => fs::remove_dir_all(&path),
            false => fs::remove_file(&path),
        };
        removed.map_err(|source| Error::Write { path, source })?;
    }
    Ok(())
}

/// Kills the cluster's program of that name in the machine's own namespaces, and waits for its end.
///
/// # Errors
/// If it does not end.
pub fn kill_program(folder: &Path, program: &str) -> Result<(), Error> {
    until(&format!("the end of {program}"), 20, || {
        let mut running = false;
        for pid in processes(folder, &[]) {
            let path = format!("/proc/{}/comm", pid.as_raw_nonzero());
            // The kernel keeps 15 characters of a name.
            let comm = fs::read_to_string(path).unwrap_or_default();
            if !comm.trim().is_empty() && program.starts_with(comm.trim()) {
                running = true;
                // It may have ended meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        Ok((!running).then_some(()))
    })
}

/// What there still is of the cluster in `folder`, in words; empty after [`sweep`]. It looks at
/// the machine in other ways than the sweep does.
///
/// # Errors
/// If the machine's links cannot be listed.
pub fn leftovers(folder: &Path, slot: Slot) -> Result<Vec<String>, Error> {
    let mut left = Vec::new();
    let name = folder.to_string_lossy();
    for pid in all_pids() {
        let read = |file: &str| fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let has = |text: &[u8], word: &str| {
            let mut windows = text.windows(word.len().max(1));
            windows.any(|window| window == word.as_bytes())
        };
        let cgroup = format!("/{}n", slot.bridge());
        if has(&read("environ"), &format!("{MARK}={name}")) || has(&read("cgroup"), &cgroup) {
            let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            left.push(format!("process {pid}: {command}"));
        }
        if has(&read("mountinfo"), &name) {
            left.push(format!("a mount below {name}, seen by process {pid}"));
        }
    }
    left.extend(cgroups(&[slot]).map(|path| format!("cgroup {}", path.display())));
    let links = super::shell::run(10, &["ip", "-oneline", "link"])?;
    let ours = |link: &&str| {
        let link = link.split(": ").nth(1).unwrap_or_default();
        link == slot.bridge() || link.starts_with(&format!("{}n", slot.bridge()))
    };
    left.extend(
        links
            .lines()
            .filter(ours)
            .map(|link| format!("link {link}")),
    );
    let kept = fs::read_dir(folder).into_iter().flatten().flatten();
    let kept = kept
        .map(|entry| entry.path())
        .filter(|path| !path.ends_with("log"));
    left.extend(kept.map(|path| format!("file {}", path.display())));
    Ok(left)
}

/// The cluster's processes: those with its mark, and what runs in its nodes' cgroups.
fn processes(folder: &Path, slots: &[Slot]) -> Vec<Pid> {
    let mark = format!("{MARK}={}", folder.display());
    let mut pids: Vec<i32> = all_pids()
        .filter(|pid| {
            let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            let mut variables = environment.split(|byte| *byte == 0);
            variables.any(|variable| variable == mark.as_bytes())
        })
        .collect();
    for cgroup in cgroups(slots) {
        members(&cgroup, &mut pids);
    }
    pids.sort_unstable();
    pids.dedup();
    pids.into_iter().filter_map(Pid::from_raw).collect()
}

fn all_pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The nodes' cgroups: one in each hierarchy.
fn cgroups(slots: &[Slot]) -> impl Iterator<Item = PathBuf> {
    let names: Vec<String> = slots
        .iter()
        .flat_map(|slot| (1..=NODES).map(|node| slot.node(node)))
        .collect();
    let below = hierarchies().into_iter();
    let paths = below.flat_map(move |path| names.clone().into_iter().map(move |n| path.join(n)));
    paths.filter(|path| path.is_dir())
}

/// The roots of the machine's cgroup hierarchies of version 1; none where there is only version 2.
pub fn hierarchies() -> Vec<PathBuf> {
    let root = Path::new(CGROUPS);
    if root.join("cgroup.controllers").exists() {
        return Vec::new();
    }
    let mut folders: Vec<PathBuf> = below(root).collect();
    folders.sort();
    folders
}

/// The cgroups right below one. Links, such as `cpu` for `cpu,cpuacct`, are none.
fn below(cgroup: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(cgroup).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path())
}

fn members(cgroup: &Path, pids: &mut Vec<i32>) {
    let text = fs::read_to_string(cgroup.join("cgroup.procs")).unwrap_or_default();
    pids.extend(text.lines().filter_map(|line| line.parse::<i32>().ok()));
    below(cgroup).for_each(|path| members(&path, pids));
}

/// Removes a cgroup from the bottom up; whether it is gone.
fn remove(cgroup: &Path) -> bool {
    let empty = below(cgroup).all(|path| remove(&path));
    empty && fs::remove_dir(cgroup).is_ok()
}
