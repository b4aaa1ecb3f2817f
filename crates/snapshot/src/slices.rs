// SPDX-License-Identifier: Apache-2.0
//! What the inventory does not say about slices.

use std::collections::BTreeMap;

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use gpu::{Driver, SliceAttributes, Telemetry};
use publish::SliceFacts;
use units::MigUuid;

use crate::caps::CapMinors;
use crate::reader::Findings;

/// A slice, and the driver ids of its profiles: a UUID is used again for another slice in its place.
type Key = (MigUuid, u32, u32);

/// Attributes of the slices that there are: they are asked once.
#[derive(Debug, Default)]
pub struct Slices(BTreeMap<Key, SliceAttributes>);

impl Slices {
    /// Facts of the slices that there are. One of which the driver does not tell is left out.
    pub(crate) fn read(
        &mut self,
        driver: &Driver,
        inventory: &Inventory,
        minors: &CapMinors,
        findings: &mut Findings,
    ) -> BTreeMap<MigUuid, SliceFacts> {
        let mut old = std::mem::take(&mut self.0);
        let mut all = BTreeMap::new();
        for gpu in &inventory.gpus {
            for (instance, compute, uuid, index) in shown(gpu) {
                let key = (uuid.clone(), instance.driver_id, compute.driver_id);
                let known = old.remove(&key);
                let ask = || findings.known(driver.attributes(uuid));
                let Some(attributes) = known.or_else(ask) else {
                    continue;
                };
                self.0.insert(key, attributes);
                let minor = |ci| minors.get(&(gpu.minor?, instance.id, ci)).copied();
                let cap_minors = minor(None).zip(minor(Some(compute.id)));
                all.insert(uuid.clone(), facts(index, attributes, cap_minors));
            }
        }
        all
    }
}

/// The slices of a GPU that the driver shows, with UUID and index.
fn shown(gpu: &Gpu) -> Vec<(&GpuInstance, &ComputeInstance, &MigUuid, u32)> {
    let mut slices = Vec::new();
    for instance in &gpu.instances {
        for compute in &instance.compute {
            let names = compute.uuid.as_ref().zip(compute.mig_index);
            slices.extend(names.map(|(uuid, index)| (instance, compute, uuid, index)));
        }
    }
    slices
}

fn facts(index: u32, attributes: SliceAttributes, cap_minors: Option<(u32, u32)>) -> SliceFacts {
    SliceFacts {
        index,
        multiprocessors: attributes.multiprocessors,
        engines: attributes.engines,
        gpu_slices: attributes.gpu_slices,
        compute_slices: attributes.compute_slices,
        memory_mib: attributes.memory_mib,
        cap_minors,
    }
}
