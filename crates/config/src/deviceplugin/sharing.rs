// SPDX-License-Identifier: Apache-2.0
//! `sharing`: a GPU or slice advertised several times.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use units::Code;

use super::devices::{Devices, selection};
use crate::sink::Sink;
use crate::tree::{Mapping, Member, Node, Value, quoted};

/// Most clients of one MPS server, so most replicas under MPS (source: the MPS control daemon of
/// the device plugin).
pub const MPS_LIMIT: u32 = 48;
/// Longest resource name, prefix included (source: the device plugin).
const LONGEST_NAME: usize = 63;
const PREFIX: &str = "nvidia.com/";

/// How devices are shared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Not at all.
    #[default]
    Exclusive,
    /// By turns.
    TimeSlicing(Replication),
    /// By the MPS daemon.
    Mps(Replication),
}

impl Serialize for Sharing {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Self::Exclusive => map.serialize_entry("timeSlicing", &serde_json::Map::new())?,
            Self::TimeSlicing(replication) => map.serialize_entry("timeSlicing", replication)?,
            Self::Mps(replication) => map.serialize_entry("mps", replication)?,
        }
        map.end()
    }
}

/// Which resources are shared, by how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replication {
    /// Whether shared resources get `.shared` behind their name.
    pub rename_by_default: bool,
    /// Whether a container may ask for one replica only.
    pub fail_requests_greater_than_one: bool,
    /// The resources, each once; at least one.
    pub resources: Vec<SharedResource>,
}

/// A shared resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SharedResource {
    /// Full name, `nvidia.com/gpu`.
    pub name: String,
    /// Full name of what is shared, if it is not to be called as `renameByDefault` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rename: Option<String>,
    /// Which devices of the resource are shared.
    #[serde(skip_serializing_if = "Devices::is_all")]
    pub devices: Devices,
    /// How many replicas of each device, at least 2.
    pub replicas: u32,
}

impl Replication {
    /// The name under which a shared resource is advertised.
    pub fn advertised(&self, resource: &SharedResource) -> String {
        match &resource.rename {
            Some(name) => name.clone(),
            None if self.rename_by_default => format!("{}.shared", resource.name),
            None => resource.name.clone(),
        }
    }
}

/// The block that a member of `sharing` holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    TimeSlicing,
    Mps,
}

/// Reads `sharing`.
pub fn decode(sink: &mut Sink, mapping: &Mapping) -> Sharing {
    let block = |name| super::decode::field(mapping, name);
    let time_slicing = block("timeSlicing");
    let mps = block("mps").filter(|mps| mps.value.value != Value::Null);
    if let (Some(_), Some(mps)) = (time_slicing, mps) {
        let allowed = "keep one of them (nvidia-device-plugin drops timeSlicing silently)";
        sink.error(mps.at, "mps beside timeSlicing", allowed);
    }
    let mut read = |member: Option<&Member>, way| {
        let member = member?;
        sink.key(&member.key, |sink| replication(sink, &member.value, way))
    };
    let time_slicing = read(time_slicing, Way::TimeSlicing).map(Sharing::TimeSlicing);
    let mps = read(mps, Way::Mps).map(Sharing::Mps);
    mps.or(time_slicing).unwrap_or_default()
}

fn replication(sink: &mut Sink, node: &Node, way: Way) -> Option<Replication> {
    const KEYS: [&str; 3] = ["renameByDefault", "failRequestsGreaterThanOne", "resources"];
    const EXPECTED: &str = "a mapping with resources, or no such key at all";
    let mapping = sink.mapping(node, EXPECTED)?;
    super::decode::unknown(sink, mapping, &KEYS, false);
    let flag = |sink: &mut Sink, key: &str| {
        let member = present(mapping, key)?;
        sink.key(key, |sink| sink.bool(&member.value))
    };
    let rename_by_default = flag(sink, KEYS[0]).unwrap_or(false);
    let fail_requests_greater_than_one = flag(sink, KEYS[1]).unwrap_or(way == Way::Mps);
    let Some(list) = mapping.get("resources") else {
        let allowed = "expected a list of resources such as {name: nvidia.com/gpu, replicas: 4}";
        sink.error(node.at, "no resources", allowed);
        return None;
    };
    let resources = sink.key("resources", |sink| resources(sink, &list.value, way));
    Some(Replication {
        rename_by_default,
        fail_requests_greater_than_one,
        resources,
    })
}

/// The member with that key, unless it is null.
fn present<'a>(mapping: &'a Mapping, key: &str) -> Option<&'a Member> {
    let member = mapping.get(key)?;
    (member.value.value != Value::Null).then_some(member)
}

fn resources(sink: &mut Sink, node: &Node, way: Way) -> Vec<SharedResource> {
    const EXPECTED: &str = "a list with at least one resource";
    let items = sink.sequence(node, EXPECTED).unwrap_or_default();
    if items.is_empty() && matches!(node.value, Value::Sequence(_)) {
        sink.error(node.at, "an empty list", format!("expected {EXPECTED}"));
    }
    let mut resources: Vec<SharedResource> = Vec::new();
    let mut places = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let Some(resource) = sink.item(index, |sink| resource(sink, item, way)) else {
            continue;
        };
        let key = (
            resource.name.clone(),
            resource.rename.clone(),
            resource.devices.clone(),
        );
        match places.entry(key) {
            Entry::Vacant(place) => {
                place.insert(resources.len());
                resources.push(resource);
            }
            Entry::Occupied(place) => {
                let other = &mut resources[*place.get()];
                other.replicas = other.replicas.max(resource.replicas);
                let found = format!("{} again", resource.name);
                let allowed = format!("of its counts the largest is taken, {}", other.replicas);
                sink.warn(Code::ContentIgnored, item.at, found, allowed);
            }
        }
    }
    resources
}

fn resource(sink: &mut Sink, node: &Node, way: Way) -> Option<SharedResource> {
    const KEYS: [&str; 4] = ["name", "rename", "devices", "replicas"];
    let mapping = sink.mapping(node, "a mapping with name and replicas")?;
    super::decode::unknown(sink, mapping, &KEYS, false);
    let name = required(sink, node, mapping, "name", resource_name);
    let replicas = required(sink, node, mapping, "replicas", |sink, node| {
        replicas(sink, node, way)
    });
    let rename = present(mapping, "rename").map(|member| {
        sink.key("rename", |sink| {
            not_portable(sink, &member.value, "a name of one's own");
            resource_name(sink, &member.value)
        })
    });
    let devices = present(mapping, "devices")
        .map(|member| sink.key("devices", |sink| selection(sink, &member.value)));
    Some(SharedResource {
        name: name?,
        rename: rename.flatten(),
        devices: devices.flatten().unwrap_or_default(),
        replicas: replicas?,
    })
}

/// Warns of what works here and is dropped by the original.
pub(super) fn not_portable(sink: &mut Sink, node: &Node, found: &str) {
    let allowed = "which works here; nvidia-device-plugin reads it and has no use for it";
    sink.warn(Code::NotPortable, node.at, found, allowed);
}

/// The value of a key that must be there.
pub(super) fn required<T>(
    sink: &mut Sink,
    item: &Node,
    mapping: &Mapping,
    key: &str,
    read: impl FnOnce(&mut Sink, &Node) -> Option<T>,
) -> Option<T> {
    match present(mapping, key) {
        Some(member) => sink.key(key, |sink| read(sink, &member.value)),
        None => {
            sink.error(item.at, format!("no {key}"), "every resource needs it");
            None
        }
    }
}

/// A resource name with its prefix.
pub(super) fn resource_name(sink: &mut Sink, node: &Node) -> Option<String> {
    let text = sink.string(node, "a resource name such as nvidia.com/gpu")?;
    let short = text.strip_prefix(PREFIX).unwrap_or(text);
    let word = |part: &str| {
        let inner = part
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        inner && !part.is_empty() && !part.starts_with('-') && !part.ends_with('-')
    };
    if !short.split('.').all(word) {
        let allowed = if short.contains('/') {
            "only resources of nvidia.com can be shared: expected a name such as nvidia.com/gpu"
        } else {
            "expected lower-case letters, digits, dots and dashes, such as nvidia.com/mig-1g.10gb"
        };
        sink.error(node.at, node.describe(), allowed);
        return None;
    }
    let name = format!("{PREFIX}{short}");
    if name.len() > LONGEST_NAME {
        let found = format!("the text {} of {} characters", quoted(text), name.len());
        let allowed = format!("expected at most {LONGEST_NAME}, {PREFIX} included");
        sink.error(node.at, found, allowed);
        return None;
    }
    Some(name)
}

fn replicas(sink: &mut Sink, node: &Node, way: Way) -> Option<u32> {
    let (most, expected) = match way {
        Way::TimeSlicing => (i64::from(i32::MAX), "a whole number from 2".to_owned()),
        Way::Mps => (
            i64::from(MPS_LIMIT),
            format!("a whole number from 2 to {MPS_LIMIT}, the most that MPS serves"),
        ),
    };
    let number = sink.int(node, &expected)?;
    if !(2..=most).contains(&number) {
        sink.wrong(node, &expected);
        return None;
    }
    u32::try_from(number).ok()
}
