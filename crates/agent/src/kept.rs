// SPDX-License-Identifier: Apache-2.0
//! What the agent keeps on disk besides the journal: the last good sharing config and strategy, as one
//! that starts while these are broken goes on with what was in force rather than take names away from
//! pods; that a reboot was asked for, so that there is no second for the same; and which services of the
//! node are stopped for a change.

use std::io;
use std::path::Path;

use config::deviceplugin::{Choice, MigStrategy};
use host::{Folder, Storage};
use serde::{Deserialize, Serialize};

use crate::decide::{Kept, RebootAsked, SharingConfig};

/// Files in the state folder.
const IN_FORCE: &str = "in-force.json";
const REBOOT: &str = "reboot.json";
const SERVICES: &str = "services.json";

/// What was in force last; the default if there is nothing, or it cannot be read.
pub fn in_force(state: &Path) -> Kept {
    let bytes = Folder::at(state).read(IN_FORCE).ok().flatten();
    let read = bytes.and_then(|bytes| serde_json::from_slice::<InForce>(&bytes).ok());
    let read = read.unwrap_or_default();
    let sharing = read
        .sharing
        .and_then(|(name, text)| SharingConfig::read(name, text));
    Kept {
        sharing: sharing.unwrap_or_default(),
        strategy: read.strategy.as_deref().and_then(MigStrategy::from_word),
    }
}

/// Keeps what is in force. That it cannot be written is told and stops nothing: it is in memory, too.
pub fn keep_in_force(state: &Path, kept: &Kept) {
    let file = InForce {
        sharing: kept.sharing.source.clone(),
        strategy: kept.strategy.map(|strategy| strategy.as_str().to_owned()),
    };
    if let Err(error) = keep(state, IN_FORCE, Some(&file)) {
        tracing::warn!("cannot keep what is in force: {error}");
    }
}

/// The file of what is in force.
#[derive(Default, Deserialize, Serialize)]
struct InForce {
    /// Name and text of the sharing config.
    sharing: Option<(String, String)>,
    /// The strategy, as it is written in ClusterPolicy.
    strategy: Option<String>,
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
