// SPDX-License-Identifier: Apache-2.0
//! Checkpoints as the original writes and reads them.

use super::*;
use geometry::inventory::ComputeInstance;
use units::PciDevice;

/// As the original writes it.
const FILE: &str = concat!(
    r#"{"Version":"v1","MigState":{"Devices":["#,
    r#"{"UUID":"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f","MigMode":1,"GpuInstances":["#,
    r#"{"ProfileID":0,"Placement":{"Start":4,"Size":1},"ComputeInstances":[{"ProfileID":0,"EngProfileID":0}]},"#,
    r#"{"ProfileID":2,"Placement":{"Start":0,"Size":4},"ComputeInstances":null}]},"#,
    r#"{"UUID":"GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc40","MigMode":0,"GpuInstances":null}]}}"#,
);

fn gpu(uuid: &str, mode: Mode, instances: Vec<GpuInstance>) -> Gpu {
    let board = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    Gpu {
        index: 0,
        minor: None,
        uuid: uuid.parse().unwrap(),
        name: "NVIDIA H100 80GB HBM3".to_owned(),
        pci_bus_id: "00000000:19:00.0".to_owned(),
        pci_device: board.pci_devices[0],
        pci_subsystem: PciDevice(0x16C1_10DE),
        numa_node: None,
        memory_mib: 81559,
        compute_capability: (9, 0),
        mode: Some(mode),
        board,
        instances,
        holders: Vec::new(),
    }
}

fn instance(id: u32, driver_id: u32, start: u8, compute: bool) -> GpuInstance {
    let board = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    let profile = board.profile(driver_id).unwrap();
    let full = profile.full_compute().unwrap();
    let compute = compute.then(|| ComputeInstance {
        id: 0,
        driver_id: full.driver_id,
        profile: profile.name.clone(),
        placement: None,
        uuid: None,
        mig_index: None,
        holders: Vec::new(),
    });
    GpuInstance {
        id,
        driver_id,
        profile: profile.name.clone(),
        placement: Placement::new(start, profile.placements[0].size),
        compute: compute.into_iter().collect(),
    }
}

fn machine() -> Inventory {
    Inventory {
        lost: Vec::new(),
        driver_version: "580.95.05".to_owned(),
        cuda_version: (13, 0),
        gpus: vec![
            gpu(
                "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f",
                Mode::On,
                vec![instance(1, 9, 0, false), instance(7, 19, 4, true)],
            ),
            gpu(
                "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc40",
                Mode::Off,
                Vec::new(),
            ),
        ],
    }
}

#[test]
fn a_machine_is_written_as_the_original_writes_it() {
    assert_eq!(Checkpoint::of(&machine()).unwrap().print(), FILE);
    let empty = Checkpoint::default().print();
    assert_eq!(empty, r#"{"Version":"v1","MigState":{"Devices":null}}"#);
    assert_eq!(parse("f", &empty).unwrap(), Checkpoint::default());
}

#[test]
fn what_is_read_back_is_the_layout_that_was_there() {
    let machine = machine();
    let checkpoint = parse("f", FILE).unwrap();
    for gpu in &machine.gpus {
        let state = checkpoint.device(&gpu.uuid).unwrap();
        assert_eq!(state.layout(&gpu.board).unwrap(), gpu.layout());
    }
    let a30 = geometry::catalogue::by_key("A30").unwrap();
    let error = checkpoint.devices[0].layout(&a30).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("A30 has no GPU instance profile"),
        "{error}"
    );
}

#[test]
fn faults_are_told_with_their_path() {
    for (from, to, message) in [
        (
            "\"v1\"",
            "\"v2\"",
            "f:1:12: Version: found the text \"v2\", expected \"v1\"",
        ),
        (
            "MigMode\":1",
            "MigMode\":2",
            "MigState.Devices[0].MigMode: found the number 2",
        ),
        (
            "GPU-5c89852c",
            "GPU-x",
            "MigState.Devices[0].UUID: found the text",
        ),
        (
            "\"Start\":4",
            "\"Start\":256",
            "GpuInstances[0].Placement.Start: found the number 256",
        ),
        (
            "\"Size\":1",
            "\"Siez\":1",
            "GpuInstances[0].Placement: found no Size",
        ),
        ("{\"Version\"", "[\"Version\"", "f:1:1"),
    ] {
        let problems = parse("f", &FILE.replacen(from, to, 1)).unwrap_err();
        assert!(problems.to_string().contains(message), "{problems}");
    }
    assert!(parse("f", "").is_err());
    assert!(parse("f", "version: v1\nmig-configs: {}\n").is_err());
}
