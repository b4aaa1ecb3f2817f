// SPDX-License-Identifier: Apache-2.0
//! Labels as a file for Node Feature Discovery.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Writes labels as `key=value` lines, whole or not at all, readable for everybody. Nothing is
/// written if nothing changed.
///
/// # Errors
/// If the folder is missing or cannot be written.
pub fn write_features(path: &Path, labels: &BTreeMap<String, String>) -> io::Result<()> {
    let text: String = labels
        .iter()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect();
    if fs::read_to_string(path).is_ok_and(|there| there == text) {
        return Ok(());
    }
    let mut name = path.as_os_str().to_owned();
    // Files that begin with a dot or end so are not read by Node Feature Discovery.
    name.push(".tmp");
    let temporary = Path::new(&name);
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o644)
        .open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

/// Removes the file, so that the labels go with the program that answers for them.
///
/// # Errors
/// If it is there and cannot be removed.
pub fn remove_features(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
