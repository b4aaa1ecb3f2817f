// SPDX-License-Identifier: Apache-2.0
//! Names, sharing of some devices, and mixtures that a strategy cannot name.

use publish::{Fault, Node, labels};
use units::Code;

use super::machine::{gpu_uuid, node, published, whole};

const A100: &str = "NVIDIA A100-SXM4-80GB";
const T4: &str = "Tesla T4";

#[test]
fn some_gpus_are_shared_and_others_are_whole() {
    for (entry, expected) in [
        ("devices: [0]", ["gpu: G0::0 G0::1 G1 G2"].as_slice()),
        ("devices: 2", &["gpu: G0::0 G0::1 G1::0 G1::1 G2"]),
        (
            "rename: gpu-ts, devices: [2, 0]",
            &["gpu: G1", "gpu-ts: G0::0 G0::1 G2::0 G2::1"],
        ),
        (
            "rename: gpu-ts, devices: [GPU-00000000-0000-0000-0000-000000000001]",
            &["gpu: G0 G2", "gpu-ts: G1::0 G1::1"],
        ),
        (
            "rename: gpu-ts",
            &["gpu-ts: G0::0 G0::1 G1::0 G1::1 G2::0 G2::1"],
        ),
    ] {
        let entry = format!("{{name: gpu, replicas: 2, {entry}}}");
        let node = whole(
            3,
            &format!("sharing: {{timeSlicing: {{resources: [{entry}]}}}}"),
        );
        assert_eq!(published(&node), (owned(expected), vec![]), "{entry}");
    }
}

#[test]
fn entries_for_different_devices_go_together() {
    let settings = "sharing: {timeSlicing: {renameByDefault: true, resources: [
        {name: gpu, replicas: 2, devices: [0]}, {name: gpu, replicas: 3, devices: [1]},
        {name: gpu, replicas: 4, devices: [0]}, {name: gpu, rename: other, replicas: 2, devices: [1, 9]}]}}";
    let (resources, codes) = published(&whole(3, settings));
    let shared = "gpu.shared: G0::0 G0::1 G0::2 G0::3 G1::0 G1::1 G1::2";
    assert_eq!(resources, ["gpu: G2", shared]);
    assert_eq!(codes, [Code::IndexWithoutGpu, Code::OverlappingEntries]);
}

#[test]
fn slices_are_shared_by_index() {
    let cut: &[&str] = &["1g.10gb", "1g.10gb", "2g.20gb"];
    let settings = "flags: {migStrategy: mixed}
sharing: {timeSlicing: {resources: [{name: mig-1g.10gb, replicas: 2, devices: ['1:0']}]}}";
    let node = node(&[(A100, None), (A100, Some(cut))], settings);
    let resources = [
        "gpu: G0",
        "mig-1g.10gb: M1:0::0 M1:0::1 M1:1",
        "mig-2g.20gb: M1:2",
    ];
    assert_eq!(published(&node), (owned(&resources), vec![]));
    let (labels, _) = labels(&node);
    assert_eq!(labels["nvidia.com/mig-1g.10gb.replicas"], "2");
    assert_eq!(labels["nvidia.com/mig-2g.20gb.replicas"], "1");
}

#[test]
fn patterns_give_names() {
    let settings = "flags: {migStrategy: mixed}
resources: {gpus: [{pattern: '*A100*', name: a100}], mig: [{pattern: '1g.*', name: small}]}
sharing: {timeSlicing: {renameByDefault: true, resources: [{name: small, replicas: 2}]}}";
    let cut: &[&str] = &["1g.10gb", "1g.10gb+me", "2g.20gb"];
    let node = node(&[(A100, None), (T4, None), (A100, Some(cut))], settings);
    let resources = [
        "a100: G0",
        "gpu: G1",
        "mig-2g.20gb: M2:2",
        "small.shared: M2:0::0 M2:0::1 M2:1::0 M2:1::1",
    ];
    assert_eq!(published(&node), (owned(&resources), vec![]));
}

#[test]
fn mixtures_never_take_clear_devices_away() {
    let (ones, mixed): (&[&str], &[&str]) = (&["1g.10gb", "1g.10gb"], &["1g.10gb", "2g.20gb"]);
    let single = "flags: {migStrategy: single}";
    let shared = "flags: {migStrategy: single}
sharing: {timeSlicing: {renameByDefault: true, resources: [{name: gpu, replicas: 2}]}}";
    let chosen = "flags: {migStrategy: single}
resources: {mig: [{pattern: 2g.20gb, name: large}]}";
    for (gpus, settings, resources, codes) in [
        (
            [Some(ones), Some(ones)],
            single,
            ["gpu: M0:0 M0:1 M1:0 M1:1"].as_slice(),
            vec![],
        ),
        (
            [Some(ones), Some(&[])],
            single,
            &["gpu: M0:0 M0:1"],
            vec![Code::GpuEmpty],
        ),
        (
            [Some(&[]), Some(&[])],
            single,
            &["gpu: "],
            vec![Code::GpuEmpty],
        ),
        (
            [Some(&[]), Some(&[])],
            shared,
            &["gpu.shared: "],
            vec![Code::GpuEmpty],
        ),
        (
            [Some(mixed), Some(ones)],
            single,
            &["gpu: "],
            vec![Code::StrategyAmbiguous],
        ),
        (
            [Some(mixed), None],
            single,
            &["gpu: G1"],
            vec![Code::StrategyAmbiguous],
        ),
        (
            [Some(ones), None],
            shared,
            &["gpu.shared: G1::0 G1::1"],
            vec![Code::StrategyAmbiguous],
        ),
        (
            [Some(mixed), Some(ones)],
            chosen,
            &["gpu: M0:0 M1:0 M1:1", "large: M0:1"],
            vec![],
        ),
        (
            [Some(mixed), None],
            "",
            &["gpu: G0 G1"],
            vec![Code::MigIgnored],
        ),
    ] {
        let node = node(&gpus.map(|slices| (A100, slices)), settings);
        assert_eq!(
            published(&node),
            (owned(resources), codes),
            "{gpus:?} {settings}"
        );
    }
}

#[test]
fn one_name_for_two_models_is_told() {
    let cut: &[&str] = &["3g.40gb"];
    let node = node(
        &[(A100, Some(cut)), ("NVIDIA H100 80GB HBM3", Some(cut))],
        "flags: {migStrategy: single}",
    );
    assert_eq!(
        published(&node),
        (owned(&["gpu: M0:0 M1:0"]), vec![Code::SeveralModels])
    );
}

#[test]
fn mps_is_refused_and_hurts_nothing() {
    let settings = "flags: {mpsRoot: /r}\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}";
    let node = whole(2, settings);
    assert_eq!(
        published(&node),
        (owned(&["gpu: G0 G1"]), vec![Code::NotSupportedYet])
    );
    let (labels, _) = labels(&node);
    assert_eq!(labels["nvidia.com/mps.capable"], "false");
    assert_eq!(labels["nvidia.com/gpu.replicas"], "1");
}

#[test]
fn a_fault_concerns_every_replica_and_slice_of_its_part() {
    let cut: &[&str] = &["1g.10gb", "1g.10gb"];
    let settings = "flags: {migStrategy: mixed}
sharing: {timeSlicing: {resources: [{name: mig-1g.10gb, replicas: 2}]}}";
    let mut node = node(&[(A100, Some(cut)), (A100, Some(cut))], settings);
    let unhealthy = |node: &Node| {
        let (resources, _) = publish::resources(node);
        let devices = resources.into_iter().flat_map(|it| it.devices);
        devices
            .filter(|it| !it.is_healthy())
            .map(|it| it.hardware.index())
            .collect::<Vec<_>>()
    };
    assert_eq!(unhealthy(&node), [""; 0]);
    let mut fault = Fault {
        gpu: gpu_uuid(0),
        gpu_instance: Some(2),
        compute_instance: Some(0),
        what: "XID 48".to_owned(),
    };
    node.faults = vec![fault.clone()];
    assert_eq!(unhealthy(&node), ["0:1", "0:1"]);
    (fault.gpu_instance, fault.compute_instance) = (None, None);
    node.faults = vec![fault];
    assert_eq!(unhealthy(&node), ["0:0", "0:0", "0:1", "0:1"]);
    assert_eq!(published(&node).1, [Code::DeviceUnhealthy]);
}

#[test]
fn what_containers_need_and_is_missing_makes_devices_unhealthy() {
    let cut: &[&str] = &["1g.10gb"];
    let specs = "flags: {migStrategy: mixed, plugin: {passDeviceSpecs: true}}";
    let mut node = node(&[(A100, Some(cut)), (A100, None)], specs);
    assert_eq!(published(&node).1, []);
    node.slices.clear();
    let (resources, findings) = publish::resources(&node);
    assert_eq!(findings[0].code, Code::DeviceNodeUnknown);
    let healthy = |name: &str| {
        let resource = resources.iter().find(|it| it.short_name() == name).unwrap();
        resource.devices.iter().all(publish::Device::is_healthy)
    };
    assert!(healthy("gpu") && !healthy("mig-1g.10gb"));

    let mut node = whole(1, "imex: {channelIDs: [0], required: true}");
    let (resources, findings) = publish::resources(&node);
    assert_eq!(findings[0].code, Code::ImexChannelMissing);
    assert!(!resources[0].devices[0].is_healthy());
    node.has_imex_channel_0 = true;
    let (resources, findings) = publish::resources(&node);
    assert_eq!(findings, []);
    assert!(resources[0].devices[0].is_healthy());
}

fn owned(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| (*line).to_owned()).collect()
}
