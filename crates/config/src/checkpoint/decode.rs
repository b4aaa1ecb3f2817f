// SPDX-License-Identifier: Apache-2.0
//! From the tree to a checkpoint.

use units::Placement;

use super::{Checkpoint, ComputeInstanceState, DeviceState, GpuInstanceState};
use crate::diagnostic::Problems;
use crate::manifest::{self, Kind};
use crate::sink::Sink;
use crate::tree::{Mapping, Node, Value};

/// Reads a checkpoint file; `file` is only what messages call it.
///
/// # Errors
/// The file is no checkpoint or has an error.
pub fn parse(file: &str, text: &str) -> Result<Checkpoint, Problems> {
    let mut sink = Sink::new(file);
    let part = manifest::only(&mut sink, text, Kind::Checkpoint);
    let missing = part.as_ref().is_some_and(|part| part.root.is_none());
    if missing {
        sink.error(
            crate::tree::Position::START,
            "nothing",
            "expected a checkpoint",
        );
    }
    let checkpoint = part.and_then(|part| part.read(&mut sink, decode));
    match Problems::of(file, &sink.finish()) {
        Some(problems) => Err(problems),
        None => Ok(checkpoint.unwrap_or_default()),
    }
}

/// The checkpoint from its root mapping.
pub(crate) fn decode(sink: &mut Sink, root: &Node) -> Option<Checkpoint> {
    let mapping = fields(sink, root, &["Version", "MigState"])?;
    field(sink, root, mapping, "Version", |sink, node| {
        if node.as_str() != Some("v1") {
            sink.wrong(node, "\"v1\"");
        }
        Some(())
    });
    let devices = field(sink, root, mapping, "MigState", |sink, node| {
        let mapping = fields(sink, node, &["Devices"])?;
        field(sink, node, mapping, "Devices", |sink, node| {
            list(sink, node, device)
        })
    });
    Some(Checkpoint { devices: devices? })
}

fn device(sink: &mut Sink, node: &Node) -> Option<DeviceState> {
    let mapping = fields(sink, node, &["UUID", "MigMode", "GpuInstances"])?;
    let uuid = field(sink, node, mapping, "UUID", |sink, node| {
        let uuid = sink.string(node, "the UUID of a GPU")?.parse().ok();
        if uuid.is_none() {
            sink.wrong(node, "the UUID of a GPU");
        }
        uuid
    });
    let mig_mode = field(sink, node, mapping, "MigMode", |sink, node| {
        match node.as_int() {
            Some(mode @ (0 | 1)) => Some(mode == 1),
            _ => {
                sink.wrong(node, "0 for MIG off or 1 for on");
                None
            }
        }
    });
    let instances = field(sink, node, mapping, "GpuInstances", |sink, node| {
        list(sink, node, gpu_instance)
    });
    Some(DeviceState {
        uuid: uuid?,
        mig_mode: mig_mode?,
        gpu_instances: instances?,
    })
}

fn gpu_instance(sink: &mut Sink, node: &Node) -> Option<GpuInstanceState> {
    let mapping = fields(sink, node, &["ProfileID", "Placement", "ComputeInstances"])?;
    let profile_enum = field(sink, node, mapping, "ProfileID", number::<u32>);
    let placement = field(sink, node, mapping, "Placement", |sink, node| {
        let mapping = fields(sink, node, &["Start", "Size"])?;
        let start = field(sink, node, mapping, "Start", number::<u8>);
        let size = field(sink, node, mapping, "Size", number::<u8>);
        Some(Placement::new(start?, size?))
    });
    let compute = field(sink, node, mapping, "ComputeInstances", |sink, node| {
        list(sink, node, compute_instance)
    });
    Some(GpuInstanceState {
        profile_enum: profile_enum?,
        placement: placement?,
        compute_instances: compute?,
    })
}

fn compute_instance(sink: &mut Sink, node: &Node) -> Option<ComputeInstanceState> {
    let mapping = fields(sink, node, &["ProfileID", "EngProfileID"])?;
    let profile_enum = field(sink, node, mapping, "ProfileID", number::<u32>);
    let engine_enum = field(sink, node, mapping, "EngProfileID", number::<u32>);
    Some(ComputeInstanceState {
        profile_enum: profile_enum?,
        engine_enum: engine_enum?,
    })
}

fn fields<'a>(sink: &mut Sink, node: &'a Node, known: &[&str]) -> Option<&'a Mapping> {
    let mapping = sink.mapping(node, &format!("a mapping with {}", known.join(", ")))?;
    sink.ignored(mapping, known);
    Some(mapping)
}

fn field<T>(
    sink: &mut Sink,
    node: &Node,
    mapping: &Mapping,
    key: &str,
    read: impl FnOnce(&mut Sink, &Node) -> Option<T>,
) -> Option<T> {
    match mapping.get(key) {
        Some(member) => sink.key(key, |sink| read(sink, &member.value)),
        None => {
            sink.error(node.at, format!("no {key}"), "every checkpoint has it");
            None
        }
    }
}

/// All items of a list; null is an empty one.
fn list<T>(
    sink: &mut Sink,
    node: &Node,
    read: impl Fn(&mut Sink, &Node) -> Option<T>,
) -> Option<Vec<T>> {
    if node.value == Value::Null {
        return Some(Vec::new());
    }
    let items = sink.sequence(node, "a list")?;
    sink.each(items, read).into_iter().collect()
}

fn number<T: TryFrom<i64>>(sink: &mut Sink, node: &Node) -> Option<T> {
    let number = node.as_int().and_then(|number| T::try_from(number).ok());
    if number.is_none() {
        sink.wrong(node, "a whole number from 0 in the range of its kind");
    }
    number
}
