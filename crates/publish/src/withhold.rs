// SPDX-License-Identifier: Apache-2.0
//! No device under two names at once.

use std::collections::BTreeSet;

use plan::Warning;
use units::Code;

use crate::hardware::{Hardware, hardware};
use crate::node::Node;
use crate::resource::{Device, Resource};

/// Devices that containers have now under one name, as the kubelet's pod-resources tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Full resource name.
    pub resource: String,
    /// Ids.
    pub ids: Vec<String>,
}

/// An allocated id with what it stands for.
struct Held<'a> {
    resource: &'a str,
    replica: Option<u32>,
    hardware: &'a Hardware,
}

/// Takes out of the wanted resources what is still allocated in another way, and says why.
///
/// The kubelet counts names separately, and ids under one name too. So a GPU or slice that a
/// container has under another name, or unshared where it is to be shared, or of which it has a
/// part or the whole, waits until it is free. Replicas that are in use stay even if there are to be
/// fewer. A resource of which nothing is left stays, and counts 0.
///
/// Ids of hardware that is not there are not looked at.
pub fn withhold(
    node: &Node,
    wanted: Vec<Resource>,
    allocated: &[Allocated],
) -> (Vec<Resource>, Vec<Warning>) {
    let hardware = hardware(node);
    let ids = allocated
        .iter()
        .flat_map(|it| it.ids.iter().map(|id| (it.resource.as_str(), id)));
    let held: Vec<Held<'_>> = ids
        .filter_map(|(resource, id)| held(resource, id, &hardware))
        .collect();
    let mut reasons = Vec::new();
    let settle = |mut resource: Resource| {
        let devices = std::mem::take(&mut resource.devices);
        let same = |one: &Device, other: &Device| one.hardware.uuid() == other.hardware.uuid();
        for devices in devices.chunk_by(same) {
            let offered = offer(&resource.name, devices, &held, &mut reasons);
            resource.devices.extend(offered);
        }
        resource
    };
    let resources = wanted.into_iter().map(settle).collect();
    (resources, reasons)
}

/// The GPU or slice that a device id stands for, by UUID: the id without its replica.
pub fn device_uuid(id: &str) -> &str {
    id.split_once("::").map_or(id, |(uuid, _)| uuid)
}

fn held<'a>(resource: &'a str, id: &str, hardware: &'a [Hardware]) -> Option<Held<'a>> {
    let (uuid, replica) = match id.split_once("::") {
        Some((uuid, replica)) => (uuid, replica.parse().ok()),
        None => (id, None),
    };
    let hardware = hardware.iter().find(|it| it.uuid() == uuid)?;
    Some(Held {
        resource,
        replica,
        hardware,
    })
}

/// What of the devices of one GPU or slice can be offered now.
fn offer(
    name: &str,
    devices: &[Device],
    held: &[Held<'_>],
    reasons: &mut Vec<Warning>,
) -> Vec<Device> {
    let Some(first) = devices.first() else {
        return Vec::new();
    };
    let here: Vec<&Held<'_>> = held
        .iter()
        .filter(|it| it.hardware.overlaps(&first.hardware))
        .collect();
    let fits = |it: &&&Held<'_>| {
        it.resource == name
            && it.hardware.uuid() == first.hardware.uuid()
            && it.replica.is_some() == first.replica.is_some()
    };
    let mut reason = |message: String| {
        reasons.push(Warning {
            code: Code::StillAllocated,
            message,
        });
    };
    if let Some(other) = here.iter().find(|it| !fits(it)) {
        reason(format!(
            "{name}: GPU {} is still allocated as {} ({}); it is offered again once pods give it back",
            first.hardware.index(),
            other.resource,
            manner(other),
        ));
        return Vec::new();
    }
    let in_use: BTreeSet<u32> = here.iter().filter_map(|it| it.replica).collect();
    if in_use.len() > devices.len() {
        reason(format!(
            "{name}: {} replicas of GPU {} are in use, {} are wanted; those in use stay until pods \
             give them back",
            in_use.len(),
            first.hardware.index(),
            devices.len(),
        ));
    }
    if first.replica.is_none() {
        return devices.to_vec();
    }
    let numbers = devices.iter().filter_map(|device| device.replica);
    let unused = numbers.filter(|number| !in_use.contains(number));
    let room = devices.len().saturating_sub(in_use.len());
    let mut offered: BTreeSet<u32> = unused.take(room).collect();
    offered.extend(&in_use);
    offered
        .into_iter()
        .map(|number| Device::new(&first.hardware, Some(number)))
        .collect()
}

fn manner(held: &Held<'_>) -> &'static str {
    match (held.hardware.slice.is_some(), held.replica.is_some()) {
        (false, false) => "the whole GPU",
        (true, false) => "a slice",
        (false, true) => "a replica of the GPU",
        (true, true) => "a replica of a slice",
    }
}
