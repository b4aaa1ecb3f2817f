// SPDX-License-Identifier: Apache-2.0
//! The folder in which container runtimes look for specifications.

use std::collections::BTreeSet;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::spec::{Device, Spec};

/// Why a specification could not be written. What was there is still there.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}", path.display())]
pub struct Error {
    path: PathBuf,
    source: io::Error,
}

/// A folder of specifications.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder at this path; it is made when something is written.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Writes a specification under the name that NVIDIA's device plugin gives it, so that a file
    /// which that left is taken over: a device that two files name cannot be had at all.
    ///
    /// Devices of the old file whose names are in `keep` stay although the specification does not
    /// have them: a container may restart with them. Not so one whose device nodes are now those of
    /// another, as the driver gives numbers again: its container would get what somebody else has.
    /// Nothing is written if nothing changed; whether
    /// something was. Without any device the file is removed: runtimes take one as broken that has
    /// none.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn write(&self, spec: &Spec, keep: &BTreeSet<String>) -> Result<bool, Error> {
        let path = self.path(&spec.kind);
        let fail = |source| Error {
            path: path.clone(),
            source,
        };
        let old = fs::read(&path).ok();
        let there: Option<Spec> = old
            .as_deref()
            .and_then(|old| serde_json::from_slice(old).ok());
        let mut spec = spec.clone();
        let left = there.into_iter().flat_map(|there| there.devices);
        let stays = |device: &Device| {
            let replaced = |it: &Device| it.name == device.name || it.has_nodes_of(device);
            keep.contains(&device.name) && !spec.devices.iter().any(replaced)
        };
        let kept: Vec<Device> = left.filter(stays).collect();
        spec.devices.extend(kept);
        if spec.devices.is_empty() {
            return match fs::remove_file(&path) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(fail(error)),
            };
        }
        let mut text = serde_json::to_vec_pretty(&spec).map_err(|error| fail(error.into()))?;
        text.push(b'\n');
        if old.as_ref() == Some(&text) {
            return Ok(false);
        }
        replace(&self.0, &path, &text).map_err(fail)?;
        Ok(true)
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.0.join(format!("{}.json", kind.replace('/', "-")))
    }

    /// Other files that name devices of this specification too, each with one such device.
    pub fn conflicts(&self, spec: &Spec) -> Vec<(PathBuf, String)> {
        let own = self.path(&spec.kind);
        let names: BTreeSet<&String> = spec.devices.iter().map(|device| &device.name).collect();
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let mut found = Vec::new();
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| *path != own)
        {
            let Some(other) = read(&path).filter(|other| other.kind == spec.kind) else {
                continue;
            };
            let both = other
                .devices
                .iter()
                .find(|device| names.contains(&device.name));
            found.extend(both.map(|device| (path, device.name.clone())));
        }
        found.sort();
        found
    }
}

/// The specification in a file; `None` if runtimes pass over it or cannot read it.
fn read(path: &Path) -> Option<Spec> {
    let text = || fs::read(path).ok();
    match path.extension()?.to_str()? {
        "json" => serde_json::from_slice(&text()?).ok(),
        "yaml" => serde_saphyr::from_slice(&text()?).ok(),
        _ => None,
    }
}

/// Replaces a file whole or not at all, readable for everybody.
fn replace(folder: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // Runtimes read what ends in .json or .yaml.
    let temporary = path.with_extension("json.new");
    let mut file = File::create(&temporary)?;
    // Whatever the umask is, and whoever left a file of that name.
    file.set_permissions(Permissions::from_mode(0o644))?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&temporary, path)?;
    File::open(folder)?.sync_all()
}
