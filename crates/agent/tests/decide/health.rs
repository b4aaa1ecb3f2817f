// SPDX-License-Identifier: Apache-2.0
//! Faults of slices while layouts change.

use std::collections::BTreeSet;
use std::time::Duration;

use agent::decide::Health;
use geometry::inventory::Inventory;
use publish::Fault;

use crate::support::Machine;

const NOW: Duration = Duration::from_secs(1);

/// A fault of the first GPU instance of the first GPU.
fn fault(inventory: &Inventory) -> Fault {
    let gpu = &inventory.gpus[0];
    Fault {
        gpu: gpu.uuid.clone(),
        gpu_instance: Some(gpu.instances[0].id),
        compute_instance: None,
        what: "XID 48".to_owned(),
    }
}

#[test]
fn a_fault_does_not_pass_to_a_new_slice_with_the_same_number() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let before = machine.cut("7x1g.10gb");
    let mut health = Health::default();
    health.report(NOW, fault(&before));
    health.seen(NOW, &before);
    assert_eq!(health.faults(), [fault(&before)]);

    let other = (before.gpus[0].uuid.clone(), before.gpus[0].instances[1].id);
    health.destroyed(&BTreeSet::from([other]));
    assert_eq!(health.faults(), [fault(&before)]);
    let this = (before.gpus[0].uuid.clone(), before.gpus[0].instances[0].id);
    health.destroyed(&BTreeSet::from([this]));
    health.seen(NOW, &before);
    assert_eq!(health.faults(), []);
}

#[test]
fn a_fault_of_a_slice_that_somebody_destroyed_is_over() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let cut = machine.cut("7x1g.10gb");
    let mut health = Health::default();
    health.report(NOW, fault(&cut));
    health.seen(NOW, &machine.cut("off"));
    assert_eq!(health.faults(), []);
}
