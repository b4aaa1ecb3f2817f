// SPDX-License-Identifier: Apache-2.0
//! What is to be done about the layout, and whom it would hurt.

use agent::decide::{Allocation, Goes, Kept, MigChange, MigDecision, decide, resolve};
use geometry::inventory::Inventory;
use units::Code;

use crate::support::{Machine, labelled, settings};

fn decided(name: &str, inventory: &Inventory) -> MigDecision {
    let told = labelled(&[("nvidia.com/mig.config", name)]);
    let desired = resolve(&told, &settings(), Some(inventory), &Kept::default());
    decide(desired.mig.as_ref(), inventory, &[])
}

fn change(name: &str, inventory: &Inventory) -> MigChange {
    match decided(name, inventory) {
        MigDecision::Change(change) => *change,
        other => panic!("{other:?}"),
    }
}

fn slices(inventory: &Inventory) -> Vec<String> {
    let gpus = inventory.gpus.iter();
    let instances = gpus.flat_map(|gpu| &gpu.instances);
    let compute = instances.flat_map(|instance| &instance.compute);
    compute
        .map(|it| it.uuid.clone().unwrap().to_string())
        .collect()
}

fn allocation(pod: &str, id: &str) -> Allocation {
    Allocation {
        pod: pod.to_owned(),
        resource: "nvidia.com/gpu".to_owned(),
        id: id.to_owned(),
    }
}

#[test]
fn without_a_label_nothing_is_to_be_done() {
    let inventory = Machine::new("1xH100-80GB-SXM").inventory();
    assert!(matches!(decide(None, &inventory, &[]), MigDecision::Leave));
}

#[test]
fn a_layout_that_is_there_is_not_touched() {
    let machine = Machine::new("2xA100-80GB");
    let inventory = machine.cut("7x1g.10gb");
    let decision = decided("all-1g.10gb", &inventory);
    assert!(
        matches!(decision, MigDecision::Applied { .. }),
        "{decision:?}"
    );
}

#[test]
fn what_cannot_be_is_refused() {
    let inventory = Machine::new("1xT4").inventory();
    let MigDecision::Refused { refusal, .. } = decided("all-1g.10gb", &inventory) else {
        panic!("it is not refused");
    };
    assert_eq!(refusal.code, Code::ConfigNotFound);
}

#[test]
fn only_what_goes_is_fenced() {
    let machine = Machine::new("2xH100-80GB-SXM");
    let inventory = machine.cut("7x1g.10gb");
    let goes = change("all-balanced", &inventory).goes;
    // Two 1g stay on each GPU.
    assert_eq!(goes.slices.len(), 10);
    assert_eq!(goes.gpus.len(), 2);
    // From nothing nothing goes, but the GPUs cannot be used whole any more.
    let fresh = Machine::new("2xH100-80GB-SXM").inventory();
    let goes = change("all-1g.10gb", &fresh).goes;
    assert_eq!((goes.slices.len(), goes.gpus.len()), (0, 2));
    // More slices beside those that are there take nothing from anybody.
    let some = Machine::new("1xH100-80GB-SXM").cut("5x1g.10gb");
    assert_eq!(change("all-1g.10gb", &some).goes, Goes::default());
}

#[test]
fn pods_on_slices_that_go_stop_the_change_and_are_named() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let inventory = machine.cut("7x1g.10gb");
    let goes = change("all-balanced", &inventory).goes;
    let going: Vec<String> = goes.slices.iter().map(ToString::to_string).collect();
    let all = slices(&inventory);
    let staying: Vec<&String> = all.iter().filter(|uuid| !going.contains(uuid)).collect();
    assert_eq!(goes.hurts(&[allocation("team-a/stays", staying[0])]), None);
    let hurt = [
        allocation("team-a/stays", staying[0]),
        allocation("team-a/goes", &going[0]),
        allocation("team-b/shared", &format!("{}::3", going[1])),
    ];
    let refusal = goes.hurts(&hurt).unwrap();
    assert_eq!(refusal.code, Code::InUse);
    assert!(
        refusal.message.contains("team-a/goes"),
        "{}",
        refusal.message
    );
    assert!(
        refusal.message.contains("team-b/shared"),
        "{}",
        refusal.message
    );
    assert!(
        !refusal.message.contains("team-a/stays"),
        "{}",
        refusal.message
    );
    // A GPU that is handed out whole, too.
    let whole = inventory.gpus[0].uuid.to_string();
    assert!(goes.hurts(&[allocation("team-a/whole", &whole)]).is_some());
}

#[test]
fn the_same_wish_on_other_hardware_is_another_attempt() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let before = change("all-balanced", &machine.inventory()).fingerprint;
    assert_eq!(
        change("all-balanced", &machine.inventory()).fingerprint,
        before
    );
    assert_ne!(
        change("all-1g.10gb", &machine.inventory()).fingerprint,
        before
    );
    assert_ne!(
        change("all-balanced", &machine.cut("7x1g.10gb")).fingerprint,
        before
    );
}
