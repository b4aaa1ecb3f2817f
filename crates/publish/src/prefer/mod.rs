// SPDX-License-Identifier: Apache-2.0
//! Which devices a container had best get.

mod aligned;
mod links;
mod spread;

use std::collections::BTreeSet;

use config::deviceplugin::AllocationPolicy;
use plan::Refusal;
use units::Code;

pub use links::{Ancestor, Link, Links};

use crate::resource::{Device, Resource};

/// What the kubelet asks for one container.
#[derive(Clone, Copy, Debug)]
pub struct PreferenceRequest<'a> {
    /// Ids that are free.
    pub available: &'a [String],
    /// Ids that must be among the chosen.
    pub required: &'a [String],
    /// How many are wanted, the required ones included.
    pub size: usize,
}

/// The best ids for a container, the required ones first. Ids that the resource does not have are
/// not looked at. The same question has the same answer.
///
/// Whole GPUs go by their links: the set with the best links among its members, then of the fewest
/// NUMA nodes, then with the least links to what is left, then of the lowest indices. If that is
/// impossible the list is empty. Slices and replicas go by their GPU: spread out or packed as the
/// policy says.
///
/// # Errors
/// `not-enough-devices`: fewer slices or replicas are available than wanted.
pub fn preferred(
    resource: &Resource,
    links: &Links,
    policy: AllocationPolicy,
    request: &PreferenceRequest<'_>,
) -> Result<Vec<String>, Refusal> {
    let by_id = |ids: &[String]| -> Vec<&Device> {
        let wanted: BTreeSet<&String> = ids.iter().collect();
        let devices = resource.devices.iter();
        devices
            .filter(|device| wanted.contains(&device.id))
            .collect()
    };
    let required = by_id(request.required);
    let is_required = |device: &&Device| required.iter().any(|other| other.id == device.id);
    let mut free = by_id(request.available);
    free.retain(|device| !is_required(device));
    let whole = |device: &Device| device.replica.is_none() && device.hardware.slice.is_none();
    let chosen = if resource.devices.iter().all(whole) {
        aligned::choose(links, &required, &free, request.size)
    } else {
        let missing = request.size.saturating_sub(required.len());
        if missing > free.len() {
            let message = format!(
                "not enough available devices to satisfy the request for {} of {}: {} are free",
                request.size,
                resource.name,
                free.len() + required.len()
            );
            return Err(Refusal::new(Code::NotEnoughDevices, message));
        }
        let picked = spread::choose(resource, &free, missing, policy);
        required.into_iter().chain(picked).collect()
    };
    Ok(chosen.into_iter().map(|device| device.id.clone()).collect())
}
