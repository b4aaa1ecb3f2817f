// SPDX-License-Identifier: Apache-2.0
//! What the inventory does not say about slices.

use std::collections::BTreeMap;

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use gpu::{Driver, Error, SliceAttributes, Telemetry};
use publish::SliceFacts;
use units::{GpuUuid, MigUuid};

use crate::caps::CapMinors;
use crate::reader::Findings;

/// A slice, and the driver ids of its profiles: a UUID is used again for another slice in its place.
type Key = (MigUuid, u32, u32);
type Known = BTreeMap<Key, SliceFacts>;

/// Facts of slices by GPU. What is known of a slice is not asked again; its index only when slices
/// of its GPU came or went.
#[derive(Debug, Default)]
pub struct Slices(BTreeMap<GpuUuid, Known>);

impl Slices {
    /// Facts of the slices that there are. One of which the driver does not tell is left out.
    pub(crate) fn read(
        &mut self,
        driver: &Driver,
        inventory: &Inventory,
        minors: &CapMinors,
        findings: &mut Findings,
    ) -> BTreeMap<MigUuid, SliceFacts> {
        let old = std::mem::take(&mut self.0);
        let mut all = BTreeMap::new();
        for gpu in &inventory.gpus {
            let known = old.get(&gpu.uuid);
            let now = of_gpu(driver, gpu, known, findings);
            for (instance, compute, uuid) in in_order(gpu) {
                let Some(facts) = now.get(&key(instance, compute, uuid)) else {
                    continue;
                };
                let minor = |ci| minors.get(&(gpu.minor?, instance.id, ci)).copied();
                let facts = SliceFacts {
                    cap_minors: minor(None).zip(minor(Some(compute.id))),
                    ..*facts
                };
                all.insert(uuid.clone(), facts);
            }
            self.0.insert(gpu.uuid.clone(), now);
        }
        all
    }
}

fn of_gpu(driver: &Driver, gpu: &Gpu, old: Option<&Known>, findings: &mut Findings) -> Known {
    let slices = in_order(gpu);
    let keys = slices.iter().map(|(gi, ci, uuid)| key(gi, ci, uuid));
    let keys: Vec<Key> = keys.collect();
    if let Some(old) = old
        && old.len() == keys.len()
        && keys.iter().all(|key| old.contains_key(key))
    {
        return old.clone();
    }
    let mut now = Known::new();
    for (place, key) in (0..).zip(keys) {
        let known = old.and_then(|old| old.get(&key));
        if let Some(facts) = findings.known(ask(driver, &key.0, known, place)) {
            now.insert(key, facts);
        }
    }
    now
}

/// Asks for the index of a slice, and for the rest if it is not known. A driver without such an
/// index counts in the order of ids.
fn ask(
    driver: &Driver,
    uuid: &MigUuid,
    known: Option<&SliceFacts>,
    place: u32,
) -> Result<SliceFacts, Error> {
    let facts = match known {
        Some(known) => *known,
        None => facts(driver.attributes(uuid)?),
    };
    let index = driver.slice_index(uuid)?.unwrap_or(place);
    Ok(SliceFacts { index, ..facts })
}

/// The slices of a GPU by GPU instance, then by compute instance.
fn in_order(gpu: &Gpu) -> Vec<(&GpuInstance, &ComputeInstance, &MigUuid)> {
    let mut slices = Vec::new();
    for instance in &gpu.instances {
        for compute in &instance.compute {
            slices.extend(compute.uuid.as_ref().map(|uuid| (instance, compute, uuid)));
        }
    }
    slices.sort_by_key(|(instance, compute, _)| (instance.id, compute.id));
    slices
}

fn key(instance: &GpuInstance, compute: &ComputeInstance, uuid: &MigUuid) -> Key {
    (uuid.clone(), instance.driver_id, compute.driver_id)
}

fn facts(attributes: SliceAttributes) -> SliceFacts {
    SliceFacts {
        index: 0,
        multiprocessors: attributes.multiprocessors,
        engines: attributes.engines,
        gpu_slices: attributes.gpu_slices,
        compute_slices: attributes.compute_slices,
        memory_mib: attributes.memory_mib,
        cap_minors: None,
    }
}
