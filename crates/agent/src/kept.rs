// SPDX-License-Identifier: Apache-2.0
//! What the agent keeps on disk besides the journal: the last good sharing config, as one that starts
//! while the ConfigMap is broken goes on with what was in force rather than take names away from
//! pods; that a reboot was asked for, so that there is no second for the same; and which services of the
//! node are stopped for a change.

use std::io;
use std::path::Path;

use host::{Folder, Storage};
use serde::Serialize;

use crate::decide::{RebootAsked, SharingConfig};

/// Files in the state folder.
const SHARING: &str = "sharing.json";
const REBOOT: &str = "reboot.json";
const SERVICES: &str = "services.json";

/// The sharing config that was in force last; `None` if there is none, or it cannot be read.
pub fn sharing(state: &Path) -> Option<SharingConfig> {
    let bytes = Folder::at(state).read(SHARING).ok()??;
    let (name, text) = serde_json::from_slice(&bytes).ok()?;
    SharingConfig::read(name, text)
}

/// Keeps a sharing config. That it cannot be written is told and stops nothing: it is in memory, too.
pub fn keep_sharing(state: &Path, config: &SharingConfig) {
    if let Err(error) = keep(state, SHARING, config.source.as_ref()) {
        tracing::warn!("cannot keep the sharing config: {error}");
    }
}

/// The reboot that was asked for last; `None` if there is none, or it cannot be read.
pub fn reboot(state: &Path) -> Option<RebootAsked> {
    let bytes = Folder::at(state).read(REBOOT).ok()??;
    serde_json::from_slice(&bytes).ok()
}

/// Keeps that a reboot is asked for, or that there is none any more.
///
/// # Errors
/// If it cannot be written.
pub fn keep_reboot(state: &Path, asked: Option<&RebootAsked>) -> io::Result<()> {
    keep(state, REBOOT, asked)
}

/// The services that are stopped for a change, in the order in which they were.
pub fn services(state: &Path) -> Vec<String> {
    let bytes = Folder::at(state).read(SERVICES).ok().flatten();
    let read = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    read.unwrap_or_default()
}

/// Keeps which services are stopped for a change.
///
/// # Errors
/// If it cannot be written.
pub fn keep_services(state: &Path, services: &[String]) -> io::Result<()> {
    keep(state, SERVICES, Some(services).filter(|it| !it.is_empty()))
}

fn keep(state: &Path, file: &str, what: Option<&(impl Serialize + ?Sized)>) -> io::Result<()> {
    let folder = Folder::at(state);
    let Some(what) = what else {
        return folder.remove(file);
    };
    std::fs::create_dir_all(state)?;
    folder.replace(file, &serde_json::to_string(what)?)
}
