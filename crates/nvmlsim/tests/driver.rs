// SPDX-License-Identifier: Apache-2.0
//! The simulator as `gpu`'s driver sees it.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use geometry::Confidence;
use geometry::inventory::Inventory;
use gpu::{Driver, Error, Instances, MigMode, NvmlCode, ReadGpus, Reset};
use nvmlsim::{Handle, Options, Simulated, World, verbs};
use units::{GpuUuid, Mode, Placement};

fn world(spec: &str) -> Handle {
    Handle::in_memory(World::create(&spec.parse().unwrap(), &Options::default()))
}

fn driver(handle: &Handle) -> Driver {
    Driver::new(Arc::new(Simulated::new(handle.clone()))).unwrap()
}

/// A driver on one H100 with MIG on, and its UUID.
fn partitioned(handle: &Handle) -> (Driver, GpuUuid) {
    let driver = driver(handle);
    let gpu = driver.inventory().unwrap().gpus[0].uuid.clone();
    driver.set_mode(&gpu, true).unwrap();
    (driver, gpu)
}

fn inject(handle: &Handle, line: &str) {
    verbs::fault(handle, &[line]).unwrap();
}

#[track_caller]
fn assert_code<T: std::fmt::Debug>(answer: Result<T, Error>, code: NvmlCode) {
    assert_eq!(answer.unwrap_err().nvml(), Some(code));
}

#[test]
fn an_inventory_says_what_the_world_is() {
    let handle = world("2xH100-80GB-SXM,1xT4");
    let Inventory {
        driver_version,
        cuda_version,
        gpus,
        lost,
    } = driver(&handle).inventory().unwrap();
    assert!(lost.is_empty());
    assert_eq!(
        (driver_version.as_str(), cuda_version),
        ("580.95.05", (13, 0))
    );
    let modes: Vec<Option<Mode>> = gpus.iter().map(|gpu| gpu.mode).collect();
    assert_eq!(modes, [Some(Mode::Off), Some(Mode::Off), None]);
    assert_eq!(gpus[1].name, "NVIDIA H100 80GB HBM3");
    assert_eq!(gpus[1].memory_mib, 81559);
    assert_eq!(gpus[1].pci_bus_id, "00000000:0F:00.0");
    assert_eq!(gpus[2].board.key, "T4");
    let catalogue = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    let profile = |board: &geometry::Board| {
        let all = board.profiles.iter();
        let facts = all.map(|p| {
            (
                p.name.clone(),
                p.driver_id,
                p.placements.clone(),
                p.memory_mib,
            )
        });
        facts.collect::<Vec<_>>()
    };
    assert_eq!(profile(&gpus[0].board), profile(&catalogue));
}

#[test]
fn every_board_that_can_be_simulated_reads_as_the_catalogue_has_it() {
    for board in geometry::catalogue::boards() {
        if board.unknown.is_some() {
            continue;
        }
        let handle = world(&format!("1x{}", board.key));
        let driver = driver(&handle);
        let uuid = driver.inventory().unwrap().gpus[0].uuid.clone();
        if board.has_mig() {
            driver.set_mode(&uuid, true).unwrap();
            driver
                .while_closed(|| Simulated::new(handle.clone()).reset(std::slice::from_ref(&uuid)))
                .unwrap()
                .unwrap();
            assert_eq!(driver.mode(&uuid).unwrap(), Some(Mode::On), "{}", board.key);
        }
        let gpu = driver.gpu(&uuid).unwrap();
        let read: Vec<_> = gpu
            .board
            .profiles
            .iter()
            .map(|p| (&p.name, p.slices))
            .collect();
        let known: Vec<_> = board.profiles.iter().map(|p| (&p.name, p.slices)).collect();
        assert_eq!(read, known, "{}", board.key);
    }
}

#[test]
fn instances_come_and_go() {
    let handle = world("1xH100-80GB-SXM");
    let (driver, gpu) = partitioned(&handle);
    let at = Placement::new(4, 4);
    assert_eq!(driver.create_gpu_instance(&gpu, 9, at).unwrap(), 2);
    assert_code(
        driver.create_gpu_instance(&gpu, 14, Placement::new(4, 2)),
        NvmlCode::INSUFFICIENT_RESOURCES,
    );
    assert_eq!(driver.create_compute_instance(&gpu, 2, 2, None).unwrap(), 0);
    let read = driver.gpu(&gpu).unwrap();
    assert_eq!(read.layout().to_string(), "1x3g.40gb");
    assert_eq!(read.instances[0].placement, at);
    assert!(read.instances[0].compute[0].uuid.is_some());
    assert_code(driver.destroy_gpu_instance(&gpu, 2), NvmlCode::IN_USE);
    assert_code(driver.set_mode(&gpu, false), NvmlCode::IN_USE);
    driver.destroy_compute_instance(&gpu, 2, 0).unwrap();
    driver.destroy_gpu_instance(&gpu, 2).unwrap();
    assert_code(driver.destroy_gpu_instance(&gpu, 2), NvmlCode::NOT_FOUND);
    assert!(driver.instances(&gpu).unwrap().is_empty());
}

#[test]
fn what_is_held_is_in_use() {
    let handle = world("1xH100-80GB-SXM");
    let (driver, gpu) = partitioned(&handle);
    driver
        .create_gpu_instance(&gpu, 19, Placement::new(6, 1))
        .unwrap();
    driver.create_compute_instance(&gpu, 13, 0, None).unwrap();
    let slice = driver.gpu(&gpu).unwrap().instances[0].compute[0]
        .uuid
        .clone()
        .unwrap();
    let hold = handle.hold(slice.as_str()).unwrap();
    let holders = driver.gpu(&gpu).unwrap().instances[0].compute[0]
        .holders
        .clone();
    assert_eq!(
        holders.iter().map(|holder| holder.pid).collect::<Vec<_>>(),
        [std::process::id()]
    );
    assert_code(
        driver.destroy_compute_instance(&gpu, 13, 0),
        NvmlCode::IN_USE,
    );
    let reset = Simulated::new(handle.clone())
        .reset(std::slice::from_ref(&gpu))
        .unwrap_err();
    assert!(
        reset.to_string().contains("In use by another client"),
        "{reset}"
    );
    drop(hold);
    driver.destroy_compute_instance(&gpu, 13, 0).unwrap();
    assert!(handle.hold(slice.as_str()).is_err());
}

#[test]
fn the_nth_call_fails_as_the_script_says() {
    let handle = world("2xH100-80GB-SXM");
    let (driver, gpu) = partitioned(&handle);
    let create = |start| driver.create_gpu_instance(&gpu, 19, Placement::new(start, 1));
    inject(&handle, "fail create-gi gpu=0 nth=2 code=IN_USE");
    inject(
        &handle,
        "fail nvmlDeviceCreateGpuInstanceWithPlacement gpu=1 code=UNKNOWN",
    );
    create(0).unwrap();
    assert_code(create(1), NvmlCode::IN_USE);
    create(1).unwrap();
    inject(&handle, "clear");
    inject(&handle, "fail-after create-gi code=UNKNOWN");
    assert_code(create(2), NvmlCode::UNKNOWN);
    assert_eq!(driver.instances(&gpu).unwrap().len(), 3);
    inject(&handle, "hang destroy-gi ms=1");
    assert_code(driver.destroy_gpu_instance(&gpu, 7), NvmlCode::UNKNOWN);
    assert_eq!(driver.instances(&gpu).unwrap().len(), 3);
}

#[test]
fn a_lost_gpu_is_still_counted() {
    let handle = world("2xH100-80GB-SXM");
    let driver = driver(&handle);
    let gpus = driver.inventory().unwrap().gpus;
    inject(&handle, "lose gpu=1");
    assert_code(driver.gpu(&gpus[1].uuid), NvmlCode::GPU_IS_LOST);
    assert!(driver.gpu(&gpus[0].uuid).is_ok());
    verbs::reboot(&handle).unwrap();
    assert!(driver.gpu(&gpus[1].uuid).is_ok());
}

#[test]
fn an_old_driver_tells_nothing_while_mig_is_off() {
    let told = |driver_version: &str| {
        let options = Options {
            driver_version: driver_version.into(),
            ..Options::default()
        };
        let world = World::create(&"1xA100-40GB".parse().unwrap(), &options);
        let inventory = driver(&Handle::in_memory(world)).inventory().unwrap();
        inventory.gpus[0].board.profiles[0].confidence == Confidence::Driver
    };
    assert!(told("580.95.05"));
    assert!(!told("535.183.01"));
}
