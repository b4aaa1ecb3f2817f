// SPDX-License-Identifier: Apache-2.0
//! Which devices of a resource an entry means.

use serde::{Serialize, Serializer};
use units::{GpuUuid, MigUuid};

use super::sharing::not_portable;
use crate::sink::Sink;
use crate::tree::{Node, Value};

/// Devices of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Devices {
    /// All of them.
    #[default]
    All,
    /// So many, at least 1: the first ones.
    Count(u32),
    /// These.
    List(Vec<DeviceRef>),
}

/// One device, as a file names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DeviceRef {
    /// The GPU of that index.
    Gpu(u32),
    /// The slice of that index on the GPU of that index.
    Slice(u32, u32),
    /// The GPU of that UUID.
    GpuUuid(GpuUuid),
    /// The slice of that UUID.
    SliceUuid(MigUuid),
}

impl Devices {
    /// Whether all are meant.
    pub fn is_all(&self) -> bool {
        *self == Self::All
    }
}

impl Serialize for Devices {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Count(count) => serializer.serialize_u32(*count),
            Self::List(list) => serializer.collect_seq(list),
        }
    }
}

impl std::fmt::Display for DeviceRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Gpu(index) => write!(f, "{index}"),
            Self::Slice(gpu, slice) => write!(f, "{gpu}:{slice}"),
            Self::GpuUuid(uuid) => write!(f, "{uuid}"),
            Self::SliceUuid(uuid) => write!(f, "{uuid}"),
        }
    }
}

impl Serialize for DeviceRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

const EXPECTED: &str = "all, a number of devices from 1, or a list of indices or UUIDs";

/// Reads a selection of devices.
pub(super) fn selection(sink: &mut Sink, node: &Node) -> Option<Devices> {
    let devices = match &node.value {
        Value::String(text) if text == "all" => return Some(Devices::All),
        Value::Sequence(items) => {
            let list = sink.each(items, device).into_iter();
            Devices::List(list.collect::<Option<_>>()?)
        }
        _ => match node.as_int().map(u32::try_from) {
            Some(Ok(count)) if count > 0 => Devices::Count(count),
            _ => {
                sink.wrong(node, EXPECTED);
                return None;
            }
        },
    };
    not_portable(sink, node, "a selection of devices");
    Some(devices)
}

fn device(sink: &mut Sink, node: &Node) -> Option<DeviceRef> {
    let device = match &node.value {
        Value::Int(index) => u32::try_from(*index).ok().map(DeviceRef::Gpu),
        Value::String(text) => parse(text),
        _ => None,
    };
    if device.is_none() {
        let expected = "an index such as 0 or 0:1, or a UUID of a GPU or slice";
        sink.wrong(node, expected);
    }
    device
}

fn parse(text: &str) -> Option<DeviceRef> {
    let index = |text: &str| text.parse::<u16>().ok().map(u32::from);
    if let Some((gpu, slice)) = text.split_once(':') {
        return Some(DeviceRef::Slice(index(gpu)?, index(slice)?));
    }
    let gpu = || text.parse().ok().map(DeviceRef::GpuUuid);
    let slice = || text.parse().ok().map(DeviceRef::SliceUuid);
    index(text).map(DeviceRef::Gpu).or_else(gpu).or_else(slice)
}
