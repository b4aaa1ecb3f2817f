// SPDX-License-Identifier: Apache-2.0
//! Which devices are shared, under which name and by how many.

use config::deviceplugin::{DeviceRef, Devices, Replication, SharedResource, Sharing};
use plan::Warning;
use units::Code;

use crate::found::Found;
use crate::hardware::Hardware;

/// How one device is shared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    /// Resource name.
    pub name: String,
    /// How many replicas, at least 2.
    pub replicas: u32,
}

/// How each of the found is shared, in the same order; `None`: not at all.
pub(crate) fn shares(sharing: &Sharing, found: &[Found]) -> (Vec<Option<Share>>, Vec<Warning>) {
    let mut shares = vec![None; found.len()];
    let mut findings = Vec::new();
    match sharing {
        Sharing::Exclusive => {}
        Sharing::Mps(_) => findings.push(Warning {
            code: Code::NotSupportedYet,
            message: "sharing by MPS (sharing.mps) is not supported yet: every device is \
                      advertised unshared; time-slicing (sharing.timeSlicing) works"
                .to_owned(),
        }),
        Sharing::TimeSlicing(replication) => {
            for entry in &replication.resources {
                apply(replication, entry, found, &mut shares, &mut findings);
            }
        }
    }
    (shares, findings)
}

fn apply(
    replication: &Replication,
    entry: &SharedResource,
    found: &[Found],
    shares: &mut [Option<Share>],
    findings: &mut Vec<Warning>,
) {
    let name = replication.advertised(entry);
    for place in selected(entry, found, findings) {
        match &mut shares[place] {
            free @ None => {
                *free = Some(Share {
                    name: name.clone(),
                    replicas: entry.replicas,
                });
            }
            Some(share) if share.name == name => {
                share.replicas = share.replicas.max(entry.replicas);
            }
            Some(share) => findings.push(Warning {
                code: Code::OverlappingEntries,
                message: format!(
                    "{} {} is shared as {} and as {name}; the first counts",
                    entry.name,
                    found[place].hardware.index(),
                    share.name
                ),
            }),
        }
    }
}

/// Places of the devices that an entry means. A resource that this node does not have is no fault:
/// configurations are for many nodes.
fn selected(entry: &SharedResource, found: &[Found], findings: &mut Vec<Warning>) -> Vec<usize> {
    let places = found.iter().enumerate();
    let of_resource: Vec<usize> = places
        .filter(|(_, it)| it.name == entry.name)
        .map(|(place, _)| place)
        .collect();
    let mut missing = |what: String| {
        if !of_resource.is_empty() {
            findings.push(Warning {
                code: Code::IndexWithoutGpu,
                message: format!("sharing of {}: this node has {what}", entry.name),
            });
        }
    };
    match &entry.devices {
        Devices::All => of_resource,
        Devices::Count(count) => {
            let count = usize::try_from(*count).unwrap_or(usize::MAX);
            if count > of_resource.len() {
                missing(format!("{} devices, not {count}", of_resource.len()));
            }
            of_resource.into_iter().take(count).collect()
        }
        Devices::List(list) => {
            let mut chosen = Vec::new();
            for named in list {
                let is_it = |place: &&usize| means(named, &found[**place].hardware);
                match of_resource.iter().find(is_it) {
                    Some(place) => chosen.push(*place),
                    None => missing(format!("no such device as {named}")),
                }
            }
            chosen
        }
    }
}

fn means(named: &DeviceRef, hardware: &Hardware) -> bool {
    let slice = hardware.slice.as_ref();
    match named {
        DeviceRef::Gpu(index) => slice.is_none() && hardware.gpu_index == *index,
        DeviceRef::Slice(gpu, index) => {
            hardware.gpu_index == *gpu && slice.is_some_and(|slice| slice.index == *index)
        }
        DeviceRef::GpuUuid(uuid) => slice.is_none() && hardware.gpu == *uuid,
        DeviceRef::SliceUuid(uuid) => slice.is_some_and(|slice| slice.uuid == *uuid),
    }
}
