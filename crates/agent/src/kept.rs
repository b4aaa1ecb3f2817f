// SPDX-License-Identifier: Apache-2.0
//! The last good sharing config, on disk: an agent that starts while the ConfigMap is broken goes on
//! with what was in force, rather than take names away from pods.

use std::path::Path;

use host::{Folder, Storage};

use crate::decide::SharingConfig;

/// File in the state folder.
const FILE: &str = "sharing.json";

/// The config that was in force last; `None` if there is none, or it cannot be read.
pub fn read(state: &Path) -> Option<SharingConfig> {
    let bytes = Folder::at(state).read(FILE).ok()??;
    let (name, text) = serde_json::from_slice(&bytes).ok()?;
    SharingConfig::read(name, text)
}

/// Keeps a config. That it cannot be written is told and stops nothing: it is in memory, too.
pub fn write(state: &Path, config: &SharingConfig) {
    let folder = Folder::at(state);
    let written = match &config.source {
        None => folder.remove(FILE),
        Some(source) => std::fs::create_dir_all(state)
            .and_then(|()| Ok(serde_json::to_string(source)?))
            .and_then(|text| folder.replace(FILE, &text)),
    };
    if let Err(error) = written {
        tracing::warn!("cannot keep the sharing config: {error}");
    }
}
