// SPDX-License-Identifier: Apache-2.0
//! Laws of whatever a node is like.

use std::collections::BTreeSet;

use config::deviceplugin::AllocationPolicy;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use publish::{
    AllocateFlags, Allocated, Fabric, Links, MODEL_PREFIX, Node, PciFunction, PreferenceRequest,
    allocate, is_ours, labels, preferred, resources, withhold,
};

use super::machine::{config, node};

const PROFILES: [&str; 5] = [
    "1g.10gb",
    "1g.10gb+me",
    "2g.20gb",
    "1c.3g.40gb",
    "1g.24gb-me",
];
const SHARING: [&str; 6] = [
    "",
    "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 3}]}}",
    "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2},
        {name: mig-1g.10gb, replicas: 4}]}}",
    "sharing: {timeSlicing: {resources: [{name: gpu, rename: some, devices: [0, '1:0'], replicas: 2},
        {name: gpu, devices: 1, replicas: 5}]}}",
    "sharing: {timeSlicing: {resources: [{name: small, replicas: 2}]}}
resources: {gpus: [{pattern: '*A*', name: a}], mig: [{pattern: 1g*, name: small}]}",
    "sharing: {timeSlicing: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 7}]}}",
];

type GpuSpec = (String, Option<Vec<&'static str>>);

fn any_gpu() -> impl Strategy<Value = GpuSpec> {
    let name = prop_oneof![
        Just("NVIDIA A100-SXM4-80GB".to_owned()),
        Just("Tesla T4".to_owned()),
        any::<String>(),
        "[ -~]{0,90}",
    ];
    let slices = prop::collection::vec(select(PROFILES.as_slice()), 0..5);
    (name, prop::option::of(slices))
}

fn any_settings() -> impl Strategy<Value = String> {
    let strategy = select(["none", "single", "mixed"].as_slice());
    (strategy, select(SHARING.as_slice()))
        .prop_map(|(strategy, sharing)| format!("flags: {{migStrategy: {strategy}}}\n{sharing}"))
}

fn build(gpus: &[GpuSpec], settings: &str) -> Node {
    let gpus: Vec<(&str, Option<&[&str]>)> = gpus
        .iter()
        .map(|(name, slices)| (name.as_str(), slices.as_deref()))
        .collect();
    node(&gpus, settings)
}

fn any_node() -> impl Strategy<Value = Node> {
    let gpus = prop::collection::vec(any_gpu(), 0..5);
    (gpus, any_settings()).prop_map(|(gpus, settings)| build(&gpus, &settings))
}

fn is_legal(text: &str, may_be_empty: bool) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let edge = |c: Option<char>| c.map_or(may_be_empty, |c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && text.chars().all(inside)
        && edge(text.chars().next())
        && edge(text.chars().last())
}

proptest! {
    #[test]
    fn labels_are_legal_and_ours(
        node in any_node(),
        machine in any::<Option<String>>(),
        capability in prop::option::of(prop::collection::vec(any::<u8>(), 0..40)),
        records in prop::collection::vec(any::<u8>(), 0..40),
        fabric in any::<String>(),
    ) {
        let virtual_gpu = [b"\x09\x00\x1bVF".as_slice(), records.as_slice()].concat();
        let function = |capability| PciFunction {
            address: "0000:01:00.0".to_owned(),
            vendor: 0x10de,
            class: 0x03_02_00,
            config_bytes: 256,
            vendor_capability: capability,
        };
        let fabric = Fabric { cluster_uuid: fabric, clique_id: 1 };
        let node = Node {
            machine_type: machine,
            timestamp: Some(1),
            pci: vec![function(capability), function(Some(virtual_gpu))],
            fabrics: [(super::machine::gpu_uuid(0), fabric)].into(),
            ..node
        };
        let (labels, _) = publish::labels(&node);
        for (key, value) in &labels {
            let (_, name) = key.split_once('/').unwrap();
            prop_assert!(is_legal(name, false), "{key}");
            prop_assert!(is_legal(value, true), "{key}: {value}");
            prop_assert!(is_ours(key), "{key}");
        }
        prop_assert_eq!(labels, publish::labels(&node).0);
    }

    #[test]
    fn every_device_has_one_name(node in any_node()) {
        let (resources, findings) = resources(&node);
        let mut ids = BTreeSet::new();
        let mut name_of = std::collections::BTreeMap::new();
        for resource in &resources {
            for device in &resource.devices {
                prop_assert!(ids.insert(device.id.clone()), "{} twice", device.id);
                let uuid = device.hardware.uuid().to_owned();
                let shared = (resource.name.clone(), device.replica.is_some());
                let before = name_of.insert(uuid, shared.clone());
                prop_assert!(before.is_none_or(|before| before == shared));
            }
        }
        // A GPU is whole or cut.
        let mut devices = resources.iter().flat_map(|it| &it.devices);
        let whole = |it: &&publish::Device| it.hardware.slice.is_none();
        let wholes: BTreeSet<u32> = devices.clone().filter(whole).map(|it| it.hardware.gpu_index).collect();
        prop_assert!(devices.all(|it| it.hardware.slice.is_none() || !wholes.contains(&it.hardware.gpu_index)));
        prop_assert_eq!((resources, findings), publish::resources(&node));
    }

    #[test]
    fn replicas_are_those_of_the_settings(count in 1_usize..9, replicas in 2_usize..50, shared in 1_usize..9) {
        let settings = format!(
            "sharing: {{timeSlicing: {{resources: [{{name: gpu, replicas: {replicas}, devices: {shared}}}]}}}}"
        );
        let (resources, findings) = resources(&super::machine::whole(count, &settings));
        let shared = shared.min(count);
        prop_assert_eq!(resources[0].devices.len(), shared * replicas + count - shared);
        prop_assert!(findings.len() <= 1);
    }

    #[test]
    fn whatever_is_advertised_can_be_allocated(node in any_node()) {
        let flags = AllocateFlags {
            config: &node.config,
            control_nodes: &[],
            has_imex_channel_0: false,
            cdi_extras: &[],
            annotation_id: "",
        };
        for resource in resources(&node).0 {
            for device in &resource.devices {
                let answer = allocate(&resource, std::slice::from_ref(&device.id), &flags).unwrap();
                prop_assert_eq!(&answer.envs["NVIDIA_VISIBLE_DEVICES"], device.hardware.uuid());
            }
        }
    }

    #[test]
    fn preferred_devices_are_available_and_as_many_as_wanted(
        node in any_node(),
        picks in prop::collection::vec(any::<bool>(), 64),
        size in 0_usize..8,
        packed in any::<bool>(),
    ) {
        let policy = if packed { AllocationPolicy::Packed } else { AllocationPolicy::Distributed };
        for resource in resources(&node).0 {
            let ids = resource.devices.iter().map(|it| it.id.clone());
            let available: Vec<String> = ids.zip(picks.iter().cycle()).filter(|it| *it.1).map(|it| it.0).collect();
            let required: Vec<String> = available.iter().take(size / 2).cloned().collect();
            let request = PreferenceRequest { available: &available, required: &required, size };
            let links = Links::default();
            let Ok(ids) = preferred(&resource, &links, policy, &request) else {
                prop_assert!(available.len() < size);
                continue;
            };
            prop_assert_eq!(&ids, &preferred(&resource, &links, policy, &request).unwrap());
            let distinct: BTreeSet<&String> = ids.iter().collect();
            prop_assert_eq!(distinct.len(), ids.len());
            prop_assert!(ids.iter().all(|id| available.contains(id)));
            if available.len() >= size {
                prop_assert_eq!(ids.len(), size);
                prop_assert_eq!(&ids[..required.len()], required.as_slice());
            }
        }
    }

    /// From one setting to another with pods running: no GPU or slice is offered while it is
    /// allocated otherwise, no replica in use is taken away, and nothing waits without reason.
    #[test]
    fn nothing_is_offered_twice(
        gpus in prop::collection::vec(any_gpu(), 1..4),
        (before, after) in (any_settings(), any_settings()),
        held in subsequence((0_usize..40).collect::<Vec<_>>(), 0..12),
    ) {
        let (old, mut node) = (build(&gpus, &before), build(&gpus, &before));
        node.config = config(&after);
        let (old, _) = resources(&old);
        let devices: Vec<_> = old.iter().flat_map(|it| it.devices.iter().map(move |device| (it, device))).collect();
        let held: Vec<_> = held.into_iter().filter_map(|place| devices.get(place)).collect();
        let allocated: Vec<Allocated> = held
            .iter()
            .map(|(resource, device)| Allocated { resource: resource.name.clone(), ids: vec![device.id.clone()] })
            .collect();
        let (wanted, _) = resources(&node);
        let (offered, reasons) = withhold(&node, wanted.clone(), &allocated);
        for resource in &offered {
            for device in &resource.devices {
                for (other, holder) in &held {
                    let overlap = device.hardware.overlaps(&holder.hardware);
                    let same = other.name == resource.name
                        && device.hardware.uuid() == holder.hardware.uuid()
                        && device.replica.is_some() == holder.replica.is_some();
                    prop_assert!(!overlap || same, "{} {}", device.id, holder.id);
                    prop_assert!(!overlap || resource.device(&holder.id).is_some(), "{}", holder.id);
                }
            }
        }
        let names = |list: &[publish::Resource]| list.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
        prop_assert_eq!(names(&offered), names(&wanted));
        if reasons.is_empty() {
            let counts = |list: &[publish::Resource]| list.iter().map(|it| it.devices.len()).collect::<Vec<_>>();
            prop_assert_eq!(counts(&offered), counts(&wanted));
        }
        prop_assert_eq!(withhold(&node, wanted.clone(), &[]), (wanted, vec![]));
    }
}

#[test]
fn model_labels_are_short_enough() {
    let long = "A very long name of a GPU model, longer than any label may ever be, and more";
    let node = node(&[(long, None), ("Tesla T4", None)], "");
    let (labels, _) = labels(&node);
    let keys: Vec<&String> = labels
        .keys()
        .filter(|key| key.starts_with(MODEL_PREFIX))
        .collect();
    assert_eq!(keys.len(), 2);
    assert!(
        keys.iter()
            .all(|key| key.split_once('/').unwrap().1.len() <= 63)
    );
}
