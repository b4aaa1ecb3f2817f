// SPDX-License-Identifier: Apache-2.0
//! From the tree to a MIG config file.

use std::collections::BTreeMap;
use std::collections::btree_map;

use units::{Code, ProfileName};

use super::{DeviceFilter, Devices, Entry, MigConfig, MigConfigFile, Parsed};
use crate::manifest::{self, Kind};
use crate::sink::Sink;
use crate::tree::{Mapping, Member, Node, Position, Value, quoted};

/// Reads a MIG config file, bare or in a ConfigMap manifest, and notes every fault.
///
/// `file` is only what messages call it.
pub fn parse(file: &str, text: &str) -> Parsed {
    let mut sink = Sink::new(file);
    let part = manifest::only(&mut sink, text, Kind::MigConfig);
    let decoded = part.and_then(|part| part.read(&mut sink, decode));
    Parsed::new(file, decoded.unwrap_or_default(), sink.finish())
}

/// The file from its root mapping.
pub(crate) fn decode(sink: &mut Sink, root: &Node) -> Option<MigConfigFile> {
    let mapping = sink.mapping(root, "a mapping with version and mig-configs")?;
    sink.only(mapping, &["version", "mig-configs"]);
    match mapping.get("version") {
        None => sink.error(root.at, "no version", "expected version: v1"),
        Some(version) => sink.key("version", |sink| check_version(sink, &version.value)),
    }
    let configs = mapping.get("mig-configs")?;
    let configs = sink.key("mig-configs", |sink| decode_configs(sink, &configs.value));
    Some(MigConfigFile { configs })
}

fn check_version(sink: &mut Sink, node: &Node) {
    if node.as_str() != Some("v1") {
        sink.wrong(node, "v1");
    }
}

const CONFIGS: &str = "a mapping from names to lists of entries, with at least one name";

fn decode_configs(sink: &mut Sink, node: &Node) -> Vec<MigConfig> {
    let Some(mapping) = node.as_mapping() else {
        sink.wrong(node, CONFIGS);
        return Vec::new();
    };
    if mapping.members.is_empty() {
        sink.error(node.at, "an empty mapping", format!("expected {CONFIGS}"));
    }
    for duplicate in &mapping.duplicates {
        sink.in_config(&duplicate.key, |sink| sink.duplicate(duplicate));
    }
    let mut configs = Vec::new();
    for Member { key, value, .. } in &mapping.members {
        let entries = sink.in_config(key, |sink| {
            sink.key(key, |sink| decode_entries(sink, value))
        });
        configs.push(MigConfig {
            name: key.clone(),
            entries,
        });
    }
    configs
}

fn decode_entries(sink: &mut Sink, node: &Node) -> Vec<Entry> {
    const ENTRIES: &str = "a list with at least one entry (each begins with a dash)";
    let Some(items) = sink.sequence(node, ENTRIES) else {
        return Vec::new();
    };
    if items.is_empty() {
        sink.error(node.at, "an empty list", format!("expected {ENTRIES}"));
    }
    sink.each(items, decode_entry)
        .into_iter()
        .flatten()
        .collect()
}

fn decode_entry(sink: &mut Sink, node: &Node) -> Option<Entry> {
    const FIELDS: [&str; 4] = ["device-filter", "devices", "mig-enabled", "mig-devices"];
    let mapping = sink.mapping(node, "a mapping with devices, mig-enabled and mig-devices")?;
    sink.only(mapping, &FIELDS);
    let filter = mapping.get("device-filter").map(|member| &member.value);
    let device_filter = sink.key("device-filter", |sink| match filter {
        None => Vec::new(),
        Some(node) => decode_filter(sink, node),
    });
    let devices = required(sink, node, mapping, "devices", decode_devices);
    let mig_enabled = required(sink, node, mapping, "mig-enabled", Sink::bool);
    let mig_devices = mapping.get("mig-devices").map(|member| &member.value);
    let mig_devices = decode_mig_devices(sink, node, mig_enabled, mig_devices);
    Some(Entry {
        device_filter,
        devices: devices?,
        mig_enabled: mig_enabled?,
        mig_devices,
    })
}

/// Reads the value of a key that must be there and not be null.
fn required<T>(
    sink: &mut Sink,
    entry: &Node,
    mapping: &Mapping,
    key: &str,
    read: impl FnOnce(&mut Sink, &Node) -> Option<T>,
) -> Option<T> {
    match mapping.get(key) {
        Some(member) => sink.key(key, |sink| read(sink, &member.value)),
        None => {
            sink.error(entry.at, format!("no {key}"), "every entry needs it");
            None
        }
    }
}

fn decode_filter(sink: &mut Sink, node: &Node) -> Vec<DeviceFilter> {
    match &node.value {
        Value::Null => Vec::new(),
        Value::String(text) if text.is_empty() => Vec::new(),
        Value::Sequence(items) => sink
            .each(items, decode_one_filter)
            .into_iter()
            .flatten()
            .collect(),
        _ => decode_one_filter(sink, node).into_iter().collect(),
    }
}

fn decode_one_filter(sink: &mut Sink, node: &Node) -> Option<DeviceFilter> {
    let number = node.as_int().and_then(|number| u32::try_from(number).ok());
    if let Some(number) = number {
        let found = format!("the number 0x{number:08X} without quotes");
        sink.error(node.at, found, format!("expected \"0x{number:08X}\""));
        return None;
    }
    let text = sink.string(node, "PCI ids such as \"0x233010DE\"")?;
    match text.parse() {
        Ok(filter) => Some(filter),
        Err(_) => {
            let allowed = "which matches no GPU; expected PCI device and vendor such as \
                           \"0x233010DE\", or with subsystem \"0x233010DE:0x16C110DE\"";
            sink.error(node.at, node.describe(), allowed);
            None
        }
    }
}

fn decode_devices(sink: &mut Sink, node: &Node) -> Option<Devices> {
    const EXPECTED: &str = "all, or a list of GPU indices such as [0, 1]";
    if node.as_str() == Some("all") {
        return Some(Devices::All);
    }
    if let Some(index) = node.as_int() {
        let allowed = format!("read as [{index}]; nvidia-mig-parted accepts only the list");
        sink.warn(Code::NotPortable, node.at, node.describe(), allowed);
        return Some(Devices::Indices(vec![index]));
    }
    let items = sink.sequence(node, EXPECTED)?;
    let indices = sink.each(items, |sink, item| sink.int(item, "a GPU index such as 0"));
    indices
        .into_iter()
        .collect::<Option<_>>()
        .map(Devices::Indices)
}

/// Reads the slices. `enabled` is `None` if it could not be read.
fn decode_mig_devices(
    sink: &mut Sink,
    entry: &Node,
    enabled: Option<bool>,
    node: Option<&Node>,
) -> BTreeMap<ProfileName, u32> {
    let node = node.filter(|node| node.value != Value::Null);
    let Some(node) = node else {
        if enabled == Some(true) {
            let allowed = "mig-enabled: true needs it; write {} for MIG without slices";
            sink.error(entry.at, "no mig-devices", allowed);
        }
        return BTreeMap::new();
    };
    sink.key("mig-devices", |sink| {
        let expected = "a mapping from profiles to counts such as {1g.10gb: 7}";
        let Some(mapping) = sink.mapping(node, expected) else {
            return BTreeMap::new();
        };
        if enabled == Some(false) && !mapping.members.is_empty() {
            let allowed = "mig-enabled: false must have none";
            sink.error(node.at, "slices", allowed);
        }
        decode_counts(sink, node, mapping)
    })
}

fn decode_counts(sink: &mut Sink, node: &Node, mapping: &Mapping) -> BTreeMap<ProfileName, u32> {
    let mut counts = BTreeMap::new();
    let mut zeros = 0;
    for Member { key, at, value } in &mapping.members {
        let name = decode_name(sink, key, *at);
        let count = sink.key(key, |sink| decode_count(sink, value));
        let (Some(name), Some(count)) = (name, count) else {
            continue;
        };
        if count == 0 {
            zeros += 1;
            continue;
        }
        match counts.entry(name) {
            btree_map::Entry::Vacant(place) => {
                place.insert(count);
            }
            btree_map::Entry::Occupied(place) => {
                let found = format!("the profile {} again", place.key());
                let allowed = format!("{} is another name of it; keep one", quoted(key));
                sink.error(*at, found, allowed);
            }
        }
    }
    if zeros > 0 && zeros == mapping.members.len() {
        let allowed = "expected at least one count above 0, or {} for MIG without slices";
        sink.error(node.at, "only counts of 0", allowed);
    }
    counts
}

fn decode_name(sink: &mut Sink, text: &str, at: Position) -> Option<ProfileName> {
    let error = match text.parse::<ProfileName>() {
        Ok(name) => return Some(name),
        Err(error) => error,
    };
    let hint = match ProfileName::meant_by(text) {
        Some(meant) => format!("did you mean {meant}?"),
        None => "expected a profile such as 1g.10gb, 1c.3g.40gb, 1g.10gb+me or 1g.24gb-me".into(),
    };
    let found = format!("the profile {}", quoted(text));
    sink.error(at, found, format!("{}; {hint}", error.reason));
    None
}

fn decode_count(sink: &mut Sink, node: &Node) -> Option<u32> {
    const EXPECTED: &str = "how many: a whole number from 0";
    let number = sink.int(node, EXPECTED)?;
    let count = u32::try_from(number).ok();
    if count.is_none() {
        sink.wrong(node, EXPECTED);
    }
    count
}
