// SPDX-License-Identifier: Apache-2.0
//! MIG config files as text, in the shape that `nvidia-mig-parted export` writes.

use std::fmt::Write;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{Devices, Entry, MigConfig, MigConfigFile};
use crate::tree::{Value, resolve};

/// A notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// YAML.
    Yaml,
    /// JSON, indented by two.
    Json,
}

/// The file as text; [`parse`](super::parse) reads it back unchanged. JSON has no newline at its
/// end, as in the original.
pub fn print(file: &MigConfigFile, format: Format) -> String {
    match format {
        Format::Yaml => yaml(file),
        Format::Json => escaped(&serde_json::to_string_pretty(file).unwrap_or_default()),
    }
}

fn yaml(file: &MigConfigFile) -> String {
    let mut text = String::from("version: v1\n");
    if !file.configs.is_empty() {
        text.push_str("mig-configs:\n");
    }
    for config in &file.configs {
        let _ = writeln!(text, "  {}:", key(&config.name));
        for entry in &config.entries {
            yaml_entry(&mut text, entry);
        }
    }
    text
}

fn yaml_entry(text: &mut String, entry: &Entry) {
    let mut lines = Vec::new();
    let filters: Vec<String> = entry
        .device_filter
        .iter()
        .map(|f| format!("\"{f}\""))
        .collect();
    match filters.as_slice() {
        [] => {}
        [one] => lines.push(format!("device-filter: {one}")),
        several => lines.push(format!("device-filter: [{}]", several.join(", "))),
    }
    lines.push(match &entry.devices {
        Devices::All => "devices: all".to_owned(),
        Devices::Indices(indices) => format!("devices: {indices:?}"),
    });
    lines.push(format!("mig-enabled: {}", entry.mig_enabled));
    if entry.mig_devices.is_empty() {
        lines.push("mig-devices: {}".to_owned());
    } else {
        lines.push("mig-devices:".to_owned());
        let counts = entry.mig_devices.iter();
        lines.extend(counts.map(|(profile, count)| format!("  {profile}: {count}")));
    }
    for (at, line) in lines.iter().enumerate() {
        let _ = writeln!(text, "  {} {line}", if at == 0 { "-" } else { " " });
    }
}

/// A key as it is if that is safe in YAML, else quoted as in JSON, which YAML reads too.
fn key(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
        && matches!(resolve(name), Value::String(_));
    if plain {
        return name.to_owned();
    }
    escaped(&serde_json::to_string(name).unwrap_or_default())
}

/// JSON in which characters that YAML does not take literally are escaped; they are only in strings.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match c {
            '\u{7f}'..='\u{9f}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{feff}'
            | '\u{fffe}'
            | '\u{ffff}' => {
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text
}

impl Serialize for MigConfigFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("version", "v1")?;
        if !self.configs.is_empty() {
            map.serialize_entry("mig-configs", &Configs(&self.configs))?;
        }
        map.end()
    }
}

struct Configs<'a>(&'a [MigConfig]);

impl Serialize for Configs<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|config| (&config.name, &config.entries)))
    }
}

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.device_filter.as_slice() {
            [] => {}
            [one] => map.serialize_entry("device-filter", one)?,
            several => map.serialize_entry("device-filter", several)?,
        }
        map.serialize_entry("devices", &self.devices)?;
        map.serialize_entry("mig-enabled", &self.mig_enabled)?;
        map.serialize_entry("mig-devices", &self.mig_devices)?;
        map.end()
    }
}
