// SPDX-License-Identifier: Apache-2.0
//! Who has the capability devices of slices open, from `/proc`: also programs that compute nothing,
//! which NVML does not list.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

/// A process that has a capability device open.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CapHandle {
    /// Minor number of the device.
    pub minor: u32,
    /// Its number, as `/proc` has it.
    pub pid: u32,
    /// Its name, of at most 15 characters; empty if it just ended.
    pub name: String,
}

/// All that is open of these minors, below a `/proc`. Processes that end meanwhile, or that may not be
/// looked at, have nothing open.
///
/// # Errors
/// If there is no such folder.
pub fn cap_handles(proc: &Path, minors: &BTreeSet<u32>) -> io::Result<BTreeSet<CapHandle>> {
    let mut handles = BTreeSet::new();
    for process in fs::read_dir(proc)?.flatten() {
        let pid = process.file_name();
        let Some(pid) = pid.to_str().and_then(|pid| pid.parse().ok()) else {
            continue;
        };
        let opened = fs::read_dir(process.path().join("fd"));
        let links = opened.into_iter().flatten().flatten();
        let opened = links.filter_map(|link| minor(&fs::read_link(link.path()).ok()?));
        let opened: BTreeSet<u32> = opened.filter(|minor| minors.contains(minor)).collect();
        if opened.is_empty() {
            continue;
        }
        let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
        handles.extend(opened.into_iter().map(|minor| CapHandle {
            minor,
            pid,
            name: name.trim_end().to_owned(),
        }));
    }
    Ok(handles)
}

/// The minor in a path such as `/dev/nvidia-caps/nvidia-cap12`, below whatever root the process has.
fn minor(path: &Path) -> Option<u32> {
    let name = path.file_name()?.to_str()?.strip_prefix("nvidia-cap")?;
    let folder = path.parent()?.file_name()?;
    (folder == "nvidia-caps").then(|| name.parse().ok())?
}
