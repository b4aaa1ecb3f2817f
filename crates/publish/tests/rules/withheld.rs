// SPDX-License-Identifier: Apache-2.0
//! No device under two names at once.

use publish::{Allocated, Node, resources, withhold};

use super::machine::{gpu_uuid, lines, node, whole};

/// What is offered while these are allocated (resource, GPU or slice, replica), and how many
/// reasons are given.
fn offered(node: &Node, held: &[(&str, &str)]) -> (Vec<String>, usize) {
    let id = |short: &str| {
        let (part, replica) = short
            .split_once("::")
            .map_or((short, None), |(a, b)| (a, Some(b)));
        let uuid = match part.split_once(':') {
            Some((gpu, slice)) => {
                let bits = (gpu.parse::<u128>().unwrap() << 64) + slice.parse::<u128>().unwrap();
                units::MigUuid::from_bits(bits).to_string()
            }
            None => gpu_uuid(part.parse().unwrap()).to_string(),
        };
        replica.map_or(uuid.clone(), |replica| format!("{uuid}::{replica}"))
    };
    let allocated: Vec<Allocated> = held
        .iter()
        .map(|(resource, short)| Allocated {
            resource: format!("nvidia.com/{resource}"),
            ids: vec![id(short)],
        })
        .collect();
    let (wanted, _) = resources(node);
    let (offered, reasons) = withhold(node, wanted, &allocated);
    (lines(&offered), reasons.len())
}

const SHARED: &str = "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}";
const RENAMED: &str =
    "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2}]}}";

#[test]
fn exclusive_waits_for_shared_pods() {
    let node = whole(2, "");
    let held = [("gpu.shared", "0::1"), ("gpu.shared", "0::3")];
    assert_eq!(offered(&node, &held), (vec!["gpu: G1".to_owned()], 1));
    assert_eq!(offered(&node, &[]), (vec!["gpu: G0 G1".to_owned()], 0));
    // The same without a new name: a replica is not the whole.
    assert_eq!(
        offered(&node, &[("gpu", "0::1")]),
        (vec!["gpu: G1".to_owned()], 1)
    );
    assert_eq!(
        offered(&node, &[("gpu", "0")]),
        (vec!["gpu: G0 G1".to_owned()], 0)
    );
}

#[test]
fn shared_waits_for_exclusive_pods() {
    let held = [("gpu", "1")];
    assert_eq!(
        offered(&whole(2, SHARED), &held),
        (vec!["gpu: G0::0 G0::1".to_owned()], 1)
    );
    let renamed = offered(&whole(1, RENAMED), &[("gpu", "0")]);
    assert_eq!(renamed, (vec!["gpu.shared: ".to_owned()], 1));
}

#[test]
fn replicas_in_use_stay() {
    let node = whole(1, SHARED);
    let held = [("gpu", "0::0"), ("gpu", "0::2"), ("gpu", "0::3")];
    let all = "gpu: G0::0 G0::2 G0::3".to_owned();
    assert_eq!(offered(&node, &held), (vec![all], 1));
    assert_eq!(
        offered(&node, &held[2..]),
        (vec!["gpu: G0::0 G0::3".to_owned()], 0)
    );
    assert_eq!(
        offered(&node, &held[..1]),
        (vec!["gpu: G0::0 G0::1".to_owned()], 0)
    );
}

#[test]
fn strategies_do_not_overlap() {
    let cut: &[&str] = &["1g.10gb", "1g.10gb"];
    let gpus = [("NVIDIA A100-SXM4-80GB", Some(cut))];
    let mixed = node(&gpus, "flags: {migStrategy: mixed}");
    let single = node(&gpus, "flags: {migStrategy: single}");
    let none = node(&gpus, "");
    let one = |line: &str, reasons: usize| (vec![line.to_owned()], reasons);
    assert_eq!(
        offered(&mixed, &[("gpu", "0:1")]),
        one("mig-1g.10gb: M0:0", 1)
    );
    assert_eq!(
        offered(&single, &[("mig-1g.10gb", "0:0")]),
        one("gpu: M0:1", 1)
    );
    assert_eq!(offered(&single, &[("gpu", "0")]), one("gpu: ", 2));
    assert_eq!(offered(&none, &[("gpu", "0:0")]), one("gpu: ", 1));
    // A slice that is not there any more, and devices of others.
    assert_eq!(
        offered(&single, &[("mig-1g.10gb", "0:6")]),
        one("gpu: M0:0 M0:1", 0)
    );
}
