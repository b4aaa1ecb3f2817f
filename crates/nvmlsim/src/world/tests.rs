// SPDX-License-Identifier: Apache-2.0
//! Captured sequences of real GPUs, and what the architectures do.

use units::Placement;

use super::{Options, Spec, World};
use crate::code::{
    Answer, IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED,
    RESET_REQUIRED, SUCCESS,
};

/// A world of that spec with MIG in force on the first GPU.
fn partitioned(spec: &str) -> World {
    let mut world = World::create(&spec.parse::<Spec>().unwrap(), &Options::default());
    world.set_mode(0, true, false).unwrap();
    world.reset(0).unwrap();
    world
}

/// Creates the profiles in turn where the driver wants; answers ids and starts.
fn create(world: &mut World, profiles: &[u32]) -> Vec<Answer<(u32, u8)>> {
    let mut one = |profile: &u32| {
        let id = world.create_gpu_instance(0, *profile, None)?;
        Ok((id, world.gpus[0].instance(id)?.placement.start))
    };
    profiles.iter().map(&mut one).collect()
}

#[track_caller]
fn check_trace(spec: &str, profiles: &[u32], ids: &[u32], starts: &[u8]) {
    let expected: Vec<Answer<(u32, u8)>> = ids
        .iter()
        .copied()
        .zip(starts.iter().copied())
        .map(Ok)
        .collect();
    assert_eq!(create(&mut partitioned(spec), profiles), expected, "{spec}");
}

#[test]
fn recorded_traces_of_the_drivers_own_placement() {
    let sevenths = [6, 4, 5, 0, 1, 2, 3];
    for spec in ["1xA100-40GB", "1xH100-80GB-SXM"] {
        check_trace(spec, &[19; 7], &[13, 11, 12, 7, 8, 9, 10], &sevenths);
    }
    let mirrored = "1xH100-80GB-PCIe:mirrored";
    check_trace(mirrored, &[19; 7], &[9, 7, 8, 11, 12, 13, 14], &sevenths);
    check_trace(
        "1xA100-40GB",
        &[9, 19, 14, 19],
        &[2, 7, 4, 8],
        &[4, 0, 2, 1],
    );
    let fives = [14, 19, 19, 19, 19, 19];
    check_trace(
        "1xA100-40GB",
        &fives,
        &[5, 13, 7, 8, 9, 10],
        &[4, 6, 0, 1, 2, 3],
    );
    check_trace("1xA100-40GB", &[9, 9], &[2, 1], &[4, 0]);
    check_trace("1xH100-80GB-SXM", &[9, 14], &[2, 3], &[4, 0]);
    check_trace(
        "1xH100-94GB-NVL:mirrored",
        &[9, 15, 19],
        &[1, 5, 13],
        &[4, 0, 2],
    );
    check_trace("1xRTX-PRO-6000-SE", &[14; 4], &[3, 4, 5, 6], &[0, 3, 6, 9]);
    check_trace("1xRTX-PRO-6000-SE", &[5, 14, 14], &[1, 5, 6], &[0, 6, 9]);
}

#[test]
fn one_trace_is_a_known_miss() {
    // A real GH200 gave 5, 3, 4: it does not use slot 6 first.
    check_trace("1xGH200-96GB", &[15; 3], &[6, 5, 3], &[6, 4, 0]);
}

#[test]
fn small_first_leaves_no_room_for_a_half() {
    let answers = create(&mut partitioned("1xA100-40GB"), &[19, 19, 14, 9]);
    assert_eq!(answers[..3], [Ok((13, 6)), Ok((11, 4)), Ok((3, 0))]);
    assert_eq!(answers[3], Err(INSUFFICIENT_RESOURCES));
}

#[test]
fn four_and_three_fit_together() {
    check_trace("1xA100-40GB", &[5, 9], &[1, 2], &[0, 4]);
}

#[test]
fn places_are_judged() {
    let mut world = partitioned("1xH100-80GB-SXM");
    let at = |start, size| Some(Placement::new(start, size));
    assert_eq!(
        world.create_gpu_instance(0, 19, at(7, 1)),
        Err(INVALID_ARGUMENT)
    );
    assert_eq!(
        world.create_gpu_instance(0, 14, at(6, 2)),
        Err(INVALID_ARGUMENT)
    );
    assert_eq!(
        world.create_gpu_instance(0, 99, None),
        Err(INVALID_ARGUMENT)
    );
    assert_eq!(world.create_gpu_instance(0, 15, at(6, 2)), Ok(6));
    assert_eq!(
        world.create_gpu_instance(0, 9, at(4, 4)),
        Err(INSUFFICIENT_RESOURCES)
    );
    assert_eq!(world.create_gpu_instance(0, 20, at(0, 1)), Ok(7));
    assert_eq!(
        world.create_gpu_instance(0, 20, at(1, 1)),
        Err(INSUFFICIENT_RESOURCES)
    );
    assert_eq!(world.gpus[0].remaining(19), Ok(5));
    assert_eq!(world.gpus[0].remaining(0), Ok(0));
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn engines_are_a_budget() {
    let mut a30 = partitioned("1xA30");
    assert_eq!(a30.create_gpu_instance(0, 21, None), Ok(3));
    assert_eq!(
        a30.create_gpu_instance(0, 6, None),
        Err(INSUFFICIENT_RESOURCES)
    );
    let mut rtx = partitioned("1xRTX-PRO-6000-SE");
    assert_eq!(rtx.create_gpu_instance(0, 65, None), Ok(3));
    assert_eq!(
        rtx.create_gpu_instance(0, 14, None),
        Err(INSUFFICIENT_RESOURCES)
    );
    assert_eq!(rtx.create_gpu_instance(0, 67, None), Ok(4));
}

#[test]
fn compute_instances_live_in_gpu_instances() {
    let mut world = partitioned("1xA100-40GB");
    let id = world.create_gpu_instance(0, 9, None).unwrap();
    assert_eq!(world.create_compute_instance(0, id, 0, None), Ok(0));
    assert_eq!(
        world.create_compute_instance(0, id, 2, None),
        Err(INSUFFICIENT_RESOURCES)
    );
    assert_eq!(
        world.create_compute_instance(0, id, 0, Some(Placement::new(2, 1))),
        Ok(1)
    );
    assert_eq!(world.gpus[0].remaining_compute(id, 0), Ok(1));
    assert_eq!(
        world.create_compute_instance(0, id, 3, None),
        Err(INVALID_ARGUMENT)
    );
    assert_eq!(
        world.create_compute_instance(0, 14, 0, None),
        Err(NOT_FOUND)
    );
    assert_eq!(world.destroy_gpu_instance(0, id), Err(IN_USE));
    assert_eq!(world.destroy_compute_instance(0, id, 0), Ok(()));
    assert_eq!(world.create_compute_instance(0, id, 0, None), Ok(0));
    assert_eq!(world.destroy_compute_instance(0, id, 7), Err(NOT_FOUND));
}

#[test]
fn a_slice_in_the_same_place_has_the_same_uuid() {
    let mut world = partitioned("2xH100-80GB-SXM");
    let mut uuid = |gpu| {
        world.set_mode(gpu, true, false).unwrap();
        let id = world.create_gpu_instance(gpu, 19, None).unwrap();
        world.create_compute_instance(gpu, id, 0, None).unwrap();
        let device = &world.gpus[gpu as usize];
        let (instance, compute) = device.mig_devices().next().unwrap();
        let uuid = device.mig_uuid(instance, compute);
        world.reset(gpu).unwrap();
        uuid
    };
    let first = uuid(0);
    assert_eq!(uuid(0), first);
    assert_ne!(uuid(1), first);
}

#[test]
fn ampere_waits_for_a_reset_and_keeps_the_mode_over_a_reboot() {
    let mut world = World::create(&"1xA100-40GB".parse().unwrap(), &Options::default());
    assert_eq!(world.create_gpu_instance(0, 19, None), Err(NOT_SUPPORTED));
    assert_eq!(world.set_mode(0, true, false), Ok(RESET_REQUIRED));
    assert_eq!(world.gpus[0].mode(), units::Mode::PendingOn);
    assert_eq!(world.set_mode(0, true, true), Ok(IN_USE));
    world.reset(0).unwrap();
    assert_eq!(world.gpus[0].mode(), units::Mode::On);
    world.create_gpu_instance(0, 19, None).unwrap();
    assert_eq!(world.set_mode(0, false, false), Err(IN_USE));
    world.reboot();
    assert_eq!(world.gpus[0].mode(), units::Mode::On);
    assert!(world.gpus[0].instances.is_empty());
}

#[test]
fn hopper_changes_at_once_and_forgets_the_mode_at_a_reboot() {
    let mut world = World::create(&"1xH100-80GB-SXM".parse().unwrap(), &Options::default());
    assert_eq!(world.set_mode(0, true, true), Ok(IN_USE));
    assert_eq!(world.gpus[0].mode(), units::Mode::PendingOn);
    assert_eq!(world.set_mode(0, true, false), Ok(SUCCESS));
    assert_eq!(world.gpus[0].mode(), units::Mode::On);
    world.reset(0).unwrap();
    assert_eq!(world.gpus[0].mode(), units::Mode::On);
    world.reboot();
    assert_eq!(world.gpus[0].mode(), units::Mode::Off);
}

#[test]
fn boards_without_mig_have_none() {
    let mut world = World::create(&"1xT4".parse().unwrap(), &Options::default());
    assert_eq!(world.set_mode(0, true, false), Err(NOT_SUPPORTED));
    assert_eq!(world.create_gpu_instance(0, 19, None), Err(NOT_SUPPORTED));
}

#[test]
fn specs() {
    let spec: Spec = "1xa100-40gb,1xA100-40GB,2xH100-80GB-PCIe:mirrored"
        .parse()
        .unwrap();
    assert_eq!(spec.to_string(), "2xA100-40GB,2xH100-80GB-PCIe:mirrored");
    for (text, message) in [
        ("", "describes no GPUs"),
        ("H100", "describes no GPUs"),
        ("0xT4", "describes no GPUs"),
        (
            "1xG9000",
            "there is no board \"G9000\"; known are A100-40GB,",
        ),
        ("1xJetson-Thor", "cannot be simulated"),
        ("33xT4", "33 GPUs are too many"),
    ] {
        let error = text.parse::<Spec>().unwrap_err();
        assert!(error.to_string().contains(message), "{error}");
    }
    let error = "1xRTX-PRO-5000".parse::<Spec>().unwrap_err();
    assert_eq!(error.code(), units::Code::BoardUnknown);
}

#[test]
fn a_driver_brings_its_cuda_version() {
    for (driver, cuda) in [
        ("535.183.01", (12, 2)),
        ("575.57.08", (12, 8)),
        ("580.95.05", (13, 0)),
    ] {
        let driver_version = super::driver_version(driver).unwrap();
        let options = Options {
            driver_version,
            ..Options::default()
        };
        let world = World::create(&"1xT4".parse().unwrap(), &options);
        assert_eq!(world.cuda_version, cuda, "{driver}");
    }
    for text in ["", "580", "580.x", "580..1", "1.2.3.4"] {
        let error = super::driver_version(text).unwrap_err();
        assert!(
            error.to_string().contains("is not a driver version"),
            "{error}"
        );
    }
}
