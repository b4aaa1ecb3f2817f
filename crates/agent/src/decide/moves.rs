// SPDX-License-Identifier: Apache-2.0
//! Devices that get another name: they must be free of the old one first.

use std::collections::BTreeSet;

use publish::{Device, Resource};

/// UUIDs of GPUs and slices that are offered now and would be offered in another way: under another
/// name, shared instead of whole or the reverse, cut instead of whole or the reverse. The kubelet
/// counts names separately, so as long as it may hand out the old one, the new one must not be
/// there.
pub fn moves(offered: &[Resource], next: &[Resource]) -> BTreeSet<String> {
    let mut moving = BTreeSet::new();
    for (old_name, old) in devices(offered) {
        let differs = |(name, new): (&str, &Device)| {
            old.hardware.overlaps(&new.hardware)
                && (name != old_name
                    || old.replica.is_some() != new.replica.is_some()
                    || old.hardware.uuid() != new.hardware.uuid())
        };
        if devices(next).any(differs) {
            moving.insert(old.hardware.uuid().to_owned());
        }
    }
    if !moving.is_empty() {
        // While these are fenced the old list is offered: what is gone must not come back with it.
        let gone = devices(offered).map(|(_, old)| old.hardware.uuid());
        let is_gone = |uuid: &&str| devices(next).all(|(_, new)| new.hardware.uuid() != *uuid);
        moving.extend(gone.filter(is_gone).map(str::to_owned));
    }
    moving
}

fn devices(resources: &[Resource]) -> impl Iterator<Item = (&str, &Device)> {
    resources.iter().flat_map(|resource| {
        // Replicas of a device all stand for the same hardware.
        let same = |one: &Device, other: &Device| one.hardware.uuid() == other.hardware.uuid();
        let each = resource.devices.chunk_by(same);
        each.filter_map(|replicas| Some((resource.name.as_str(), replicas.first()?)))
    })
}
