// SPDX-License-Identifier: Apache-2.0
//! Our own driver on simulated machines: how often it asks, how it closes around a reset, what it
//! reads of a slice.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gpu::{
    ClosedReset, CommonAncestor, Driver, Event, EventKind, Events, Instances, MigMode, ReadGpus,
    Reset, Telemetry, Topology,
};
use nvmlsim::{Handle, Options, Simulated, Spec, World, verbs};
use units::{Mode, Placement};

fn simulated(spec: &str) -> Arc<Simulated> {
    let spec: Spec = spec.parse().unwrap();
    let world = World::create(&spec, &Options::default());
    Arc::new(Simulated::new(Handle::in_memory(world)))
}

/// Switches MIG on and cuts every GPU into as many of the smallest profile as there are.
fn cut(driver: &Driver) {
    for gpu in driver.inventory().unwrap().gpus {
        driver.set_mode(&gpu.uuid, true).unwrap();
        let profile = &gpu.board.profiles[0];
        for place in &profile.placements {
            let id = driver
                .create_gpu_instance(&gpu.uuid, profile.driver_id, *place)
                .unwrap();
            let whole = profile.full_compute().unwrap().driver_id;
            driver
                .create_compute_instance(&gpu.uuid, id, whole, None)
                .unwrap();
        }
    }
}

#[test]
fn nothing_is_asked_twice() {
    let driver = Driver::new(simulated("8xH100-80GB-SXM")).unwrap();
    cut(&driver);
    let before = driver.calls_by_name();
    let inventory = driver.inventory().unwrap();
    let slices: usize = inventory.gpus.iter().map(|gpu| gpu.instances.len()).sum();
    assert_eq!(slices, 56);
    let mut calls = driver.calls_by_name();
    for (name, count) in &before {
        *calls.get_mut(name).unwrap() -= count;
    }
    calls.retain(|_, count| *count > 0);
    // Each thing once: 8 GPUs, 7 profiles, 56 instances with one MIG device each.
    let expected: BTreeMap<&str, u64> = BTreeMap::from([
        ("nvmlDeviceGetName", 8),
        ("nvmlDeviceGetMigMode", 8),
        ("nvmlDeviceGetGpuInstances", 8 * 7),
        ("nvmlGpuInstanceGetInfo", 56),
        ("nvmlGpuInstanceGetComputeInstances", 56),
        ("nvmlComputeInstanceGetInfo_v2", 56),
        ("nvmlDeviceGetUUID", 8 + 56),
        ("nvmlDeviceGetComputeRunningProcesses_v3", 8),
    ]);
    for (name, count) in expected {
        assert_eq!(calls.get(name), Some(&count), "{name}: {calls:?}");
    }
}

#[test]
fn mode_and_instances_are_changed_and_read_back() {
    let simulated = simulated("1xA30");
    let driver = Driver::new(simulated.clone()).unwrap();
    let uuid = driver.inventory().unwrap().gpus.remove(0).uuid;
    driver.set_mode(&uuid, true).unwrap();
    assert_eq!(driver.mode(&uuid).unwrap(), Some(Mode::PendingOn));
    let reset = ClosedReset::new(&driver, simulated.as_ref());
    reset.reset(std::slice::from_ref(&uuid)).unwrap();
    assert_eq!(driver.mode(&uuid).unwrap(), Some(Mode::On));

    // 2g.12gb is 5 here, and 14 is 1g.6gb.
    let id = driver
        .create_gpu_instance(&uuid, 5, Placement::new(2, 2))
        .unwrap();
    let one = driver
        .create_compute_instance(&uuid, id, 0, Some(Placement::new(1, 1)))
        .unwrap();
    let read = driver.instances(&uuid).unwrap();
    assert_eq!(read.len(), 1);
    assert_eq!((read[0].id, read[0].placement), (id, Placement::new(2, 2)));
    let compute = &read[0].compute[0];
    assert_eq!(
        (compute.id, compute.profile.to_string().as_str()),
        (one, "1c.2g.12gb")
    );
    assert_eq!(compute.placement, Some(Placement::new(1, 1)));
    let slice = compute.uuid.as_ref().unwrap();
    let attributes = driver.attributes(slice).unwrap();
    assert_eq!((attributes.gpu_slices, attributes.compute_slices), (2, 1));
    assert_eq!(compute.mig_index, Some(0));

    assert_eq!(driver.wait(Duration::ZERO).unwrap(), None);

    let busy = driver.destroy_gpu_instance(&uuid, id).unwrap_err();
    assert_eq!(busy.nvml(), Some(gpu::NvmlCode::IN_USE));
    driver.destroy_compute_instance(&uuid, id, one).unwrap();
    driver.destroy_gpu_instance(&uuid, id).unwrap();
    assert!(driver.instances(&uuid).unwrap().is_empty());
}

#[test]
fn neighbours_share_a_switch_and_halves_of_the_machine_a_processor() {
    let driver = Driver::new(simulated("8xH100-80GB-SXM")).unwrap();
    let gpus = driver.inventory().unwrap().gpus;
    let gpus: Vec<_> = gpus.into_iter().map(|gpu| gpu.uuid).collect();
    let connections = driver.connections(&gpus).unwrap();
    assert_eq!(connections.len(), 28);
    let count = |ancestor| {
        let such = connections.iter().filter(|it| it.ancestor == ancestor);
        such.count()
    };
    assert_eq!(count(CommonAncestor::SingleSwitch), 4);
    assert_eq!(count(CommonAncestor::Node), 8);
    assert_eq!(count(CommonAncestor::System), 16);
    assert_eq!(driver.fabric(&gpus[0]).unwrap(), None);
}

/// What is reported next.
fn xid(driver: &Driver) -> Option<Event> {
    driver.wait(Duration::ZERO).unwrap()
}

#[test]
fn a_gpu_that_was_lost_is_heard_again_once_it_is_back() {
    let spec: Spec = "2xA100-80GB".parse().unwrap();
    let handle = Handle::in_memory(World::create(&spec, &Options::default()));
    let driver = Driver::new(Arc::new(Simulated::new(handle.clone()))).unwrap();
    let fault = |line| verbs::fault(&handle, &[line]).unwrap();
    assert_eq!(xid(&driver), None);
    fault("lose gpu=1");
    // What is reported of it cannot be named; that nobody can hear it is an error.
    driver.wait(Duration::ZERO).unwrap_err();
    assert_eq!(xid(&driver), None);
    fault("xid gpu=0 48");
    assert_eq!(xid(&driver).unwrap().kind, EventKind::Xid(48));
    handle.change(|world| world.gpus[1].lost = false).unwrap();
    assert_eq!(xid(&driver), None);
    fault("xid gpu=1 48");
    let heard = xid(&driver).unwrap();
    assert_eq!(heard.gpu, driver.inventory().unwrap().gpus[1].uuid);
}

#[test]
fn a_fault_of_a_slice_is_one_of_its_gpu() {
    let spec: Spec = "1xH100-80GB-SXM".parse().unwrap();
    let handle = Handle::in_memory(World::create(&spec, &Options::default()));
    let driver = Driver::new(Arc::new(Simulated::new(handle.clone()))).unwrap();
    cut(&driver);
    let gpu = driver.inventory().unwrap().gpus.remove(0);
    let slice = &gpu.instances[0];
    assert_eq!(xid(&driver), None);
    verbs::fault(&handle, &[format!("xid gpu=0 gi={} ci=0 48", slice.id)]).unwrap();
    let heard = xid(&driver).unwrap();
    assert_eq!(heard.gpu, gpu.uuid);
    assert_eq!(
        (heard.gpu_instance, heard.compute_instance),
        (Some(slice.id), Some(0))
    );
}
