// SPDX-License-Identifier: Apache-2.0
//! The driver on functions that answer badly, or not at all.
#![allow(unsafe_code, clippy::unwrap_used, clippy::panic)]

mod fake;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fake::{Fake, uuid};
use geometry::Confidence;
use geometry::inventory::Gpu;
use gpu::sys::*;
use gpu::{
    CallCounts, ClosedReset, CommonAncestor, Driver, Error, EventKind, Events, FabricClique,
    Instances, MigMode, NvmlCode, ReadGpus, Reset, Topology,
};
use units::{GpuUuid, Mode, Placement};

fn open(fake: Fake) -> (Driver, Arc<Fake>) {
    let fake = Arc::new(fake);
    (Driver::new(fake.clone()).unwrap(), fake)
}

fn first() -> GpuUuid {
    uuid(0).parse().unwrap()
}

fn read(fake: Fake) -> Result<Gpu, Error> {
    open(fake).0.gpu(&first())
}

fn names(gpu: &Gpu) -> Vec<String> {
    let profiles = gpu.board.profiles.iter();
    profiles.map(|profile| profile.name.to_string()).collect()
}

#[test]
fn a_missing_library_is_no_driver() {
    let path = Path::new("/nonexistent/libnvidia-ml.so.1");
    let Err(Error::NoDriver { reason }) = Driver::load(Some(path)) else {
        panic!("loaded");
    };
    assert!(
        reason.starts_with("cannot load /nonexistent/libnvidia-ml.so.1"),
        "{reason}"
    );
}

#[test]
fn a_library_without_the_symbols_is_no_driver() {
    let Err(error) = Driver::load(Some(Path::new("libc.so.6"))) else {
        panic!("initialised");
    };
    let text = error.to_string();
    assert!(text.contains("FUNCTION_NOT_FOUND (13)"), "{text}");
}

#[test]
fn a_driver_that_is_not_loaded_is_told_in_words() {
    let fake = Fake::default();
    fake.init
        .store(NvmlCode::DRIVER_NOT_LOADED.0, Ordering::Relaxed);
    let Err(error) = Driver::new(Arc::new(fake)) else {
        panic!("initialised");
    };
    let text = error.to_string();
    assert_eq!(
        text,
        "no NVIDIA driver: the nvidia kernel module is not loaded"
    );
}

#[test]
fn a_board_that_no_catalogue_lists_is_read_from_the_driver() {
    let (driver, _) = open(Fake::default());
    let inventory = driver.inventory().unwrap();
    assert_eq!(inventory.driver_version, "580.95.05");
    assert_eq!(inventory.cuda_version, (13, 1));
    let [gpu] = inventory.gpus.as_slice() else {
        panic!("{inventory:?}");
    };
    assert_eq!((gpu.minor, gpu.numa_node), (Some(3), Some(66)));
    assert_eq!((gpu.memory_mib, gpu.mode), (81559, Some(Mode::On)));
    assert_eq!(gpu.pci_bus_id, "00000000:19:00.0");

    let board = &gpu.board;
    assert_eq!(board.key, "Test-80GB");
    assert_eq!((board.compute_slices, board.placement_units), (3, 8));
    assert_eq!(board.unknown, None);
    assert_eq!(names(gpu), ["1g.10gb", "3g.40gb", "3g.40gb+gfx"]);
    let wide = board.profile(9).unwrap();
    assert_eq!(wide.confidence, Confidence::Driver);
    assert_eq!(
        wide.placements,
        [Placement::new(0, 4), Placement::new(4, 4)]
    );
    // No such instance exists, so its compute profiles are those of the rule.
    let compute: Vec<_> = wide
        .compute
        .iter()
        .map(|c| (c.slices, c.max_instances))
        .collect();
    assert_eq!(compute, [(1, 3), (2, 1), (3, 1)]);
    // One of these exists: the driver tells, and the one with all multiprocessors comes first.
    let compute: Vec<u32> = board
        .profile(19)
        .unwrap()
        .compute
        .iter()
        .map(|c| c.driver_id)
        .collect();
    assert_eq!(compute, [7, 0]);

    let [instance] = gpu.instances.as_slice() else {
        panic!("{:?}", gpu.instances);
    };
    assert_eq!((instance.id, instance.placement), (9, Placement::new(6, 1)));
    let slice = &instance.compute[0];
    assert_eq!(
        slice.uuid.as_ref().unwrap().as_str(),
        uuid(0).replace("GPU-", "MIG-")
    );
    assert_eq!(slice.placement, Some(Placement::new(0, 1)));
}

#[test]
fn every_version_of_the_profile_query_gives_the_same_names() {
    let with = |query| Fake {
        query,
        ..Fake::default()
    };
    assert_eq!(
        names(&read(with(2)).unwrap()),
        ["1g.10gb", "3g.40gb", "3g.40gb+gfx"]
    );
    // The plain query has no names, so the profile that is newer than the header has none.
    assert_eq!(names(&read(with(1)).unwrap()), ["1g.10gb", "3g.40gb"]);
}

#[test]
fn names_of_garbage_without_end_are_computed_instead() {
    let gpu = read(Fake {
        garbage_names: true,
        ..Fake::default()
    })
    .unwrap();
    assert_eq!(names(&gpu), ["1g.10gb", "3g.40gb"]);
}

#[test]
fn a_uuid_without_end_is_nonsense() {
    let (driver, _) = open(Fake {
        endless_uuid: true,
        ..Fake::default()
    });
    let error = driver.inventory().unwrap_err();
    assert!(matches!(error, Error::Nonsense { .. }), "{error}");
}

#[test]
fn placements_that_cannot_be_are_nonsense() {
    for place in [(0, 0), (300, 1), (0, u32::MAX), (250, 10)] {
        let error = read(Fake {
            places: vec![place],
            ..Fake::default()
        })
        .unwrap_err();
        assert!(matches!(error, Error::Nonsense { .. }), "{error}");
    }
}

#[test]
fn more_instances_than_any_buffer_holds_are_an_error() {
    let error = read(Fake {
        instances: u32::MAX,
        ..Fake::default()
    })
    .unwrap_err();
    assert_eq!(error.nvml(), Some(NvmlCode::INSUFFICIENT_SIZE));
}

#[test]
fn an_instance_without_known_profile_is_not_passed_over() {
    let error = read(Fake {
        compute_profile: 5,
        ..Fake::default()
    })
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("compute instance 0 of GPU instance 9 has no known profile"),
        "{text}"
    );
}

#[test]
fn any_number_of_processes_is_listed() {
    let gpu = read(Fake {
        processes: 500,
        ..Fake::default()
    })
    .unwrap();
    let holders = &gpu.instances[0].compute[0].holders;
    assert_eq!(holders.len(), 500);
    assert_eq!((holders[0].pid, holders[0].name.as_str()), (1000, "python"));
    assert!(gpu.holders.is_empty());
}

#[test]
fn what_an_old_driver_lacks_is_unknown() {
    let gpu = read(Fake::without(&[
        "nvmlDeviceGetMinorNumber",
        "nvmlDeviceGetMemoryAffinity",
        "nvmlDeviceGetMemoryInfo_v2",
        "nvmlDeviceGetGpuInstanceProfileInfoV",
        "nvmlComputeInstanceGetInfo_v2",
        "nvmlDeviceGetComputeRunningProcesses_v3",
        "nvmlSystemGetProcessName",
    ]))
    .unwrap();
    assert_eq!((gpu.minor, gpu.numa_node), (None, None));
    assert_eq!(gpu.memory_mib, 81559);
    assert_eq!(names(&gpu), ["1g.10gb", "3g.40gb"]);
    assert_eq!(gpu.instances[0].compute[0].placement, None);
    assert!(!gpu.is_busy());
}

#[test]
fn a_driver_without_mig_has_gpus_without_mig() {
    let gpu = read(Fake::without(&["nvmlDeviceGetMigMode"])).unwrap();
    assert_eq!(gpu.mode, None);
    assert!(!gpu.board.has_mig());
    assert_eq!(gpu.board.unknown, None);
}

#[test]
fn what_cannot_be_missing_is_an_error_that_says_what_was_attempted() {
    let error = read(Fake::without(&["nvmlDeviceGetGpuInstances"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "list the GPU instances on {} failed: NVML answered FUNCTION_NOT_FOUND (13)",
            uuid(0)
        )
    );
}

#[test]
fn equal_boards_are_asked_once() {
    let (driver, _) = open(Fake {
        gpus: 8,
        ..Fake::default()
    });
    driver.inventory().unwrap();
    let one_board = driver.calls_by_name()["nvmlDeviceGetGpuInstanceProfileInfoV"];
    // Enums 0 to 18, and the first once more to find the version.
    assert_eq!(one_board, 20);
    driver.inventory().unwrap();
    let calls = driver.calls_by_name();
    assert_eq!(calls["nvmlDeviceGetGpuInstanceProfileInfoV"], one_board);
    assert_eq!(calls["nvmlDeviceGetName"], 16);
}

#[test]
fn calls_are_counted_by_kind() {
    let (driver, _) = open(Fake::default());
    assert_eq!(
        driver.calls(),
        CallCounts {
            mutating: 0,
            reading: 1
        }
    );
    driver
        .create_gpu_instance(&first(), 19, Placement::new(6, 1))
        .unwrap();
    driver.destroy_gpu_instance(&first(), 9).unwrap();
    let missing = driver.set_mode(&first(), true).unwrap_err();
    assert_eq!(missing.nvml(), Some(NvmlCode::FUNCTION_NOT_FOUND));
    assert_eq!(driver.calls().mutating, 3);
}

#[test]
fn an_instance_that_cannot_be_read_back_does_not_stay() {
    let (driver, fake) = open(Fake {
        instance_info: NvmlCode::GPU_IS_LOST.0,
        ..Fake::default()
    });
    let error = driver
        .create_gpu_instance(&first(), 19, Placement::new(6, 1))
        .unwrap_err();
    assert_eq!(error.nvml(), Some(NvmlCode::GPU_IS_LOST));
    assert_eq!(*fake.changes.lock().unwrap(), ["init", "create", "destroy"]);
}

struct Refused;

impl Reset for Refused {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error> {
        Err(Error::Reset {
            gpus: gpus.to_vec(),
            reason: "no".to_owned(),
        })
    }
}

#[test]
fn a_reset_closes_everything_around_itself() {
    let (driver, fake) = open(Fake::default());
    driver.wait(Duration::ZERO).unwrap();
    let error = ClosedReset::new(&driver, &Refused)
        .reset(&[first()])
        .unwrap_err();
    assert!(matches!(error, Error::Reset { .. }), "{error}");
    driver.gpu(&first()).unwrap();
    drop(driver);
    assert_eq!(
        *fake.changes.lock().unwrap(),
        ["init", "watch", "unwatch", "shutdown", "init", "shutdown"]
    );
}

#[test]
fn a_driver_that_does_not_open_again_stays_closed() {
    let (driver, fake) = open(Fake::default());
    fake.init
        .store(NvmlCode::DRIVER_NOT_LOADED.0, Ordering::Relaxed);
    assert!(driver.while_closed(|| ()).is_err());
    let error = driver.gpu(&first()).unwrap_err();
    assert!(matches!(error, Error::NoDriver { .. }), "{error}");
    fake.init.store(fake::OK, Ordering::Relaxed);
    driver.while_closed(|| ()).unwrap();
    driver.gpu(&first()).unwrap();
    // One shutdown: there was nothing to close the second time.
    let shutdowns = |changes: &[&str]| changes.iter().filter(|c| **c == "shutdown").count();
    assert_eq!(shutdowns(&fake.changes.lock().unwrap()), 1);
}

#[test]
fn events_are_typed_and_no_event_is_none() {
    let (driver, _) = open(Fake {
        event: (fake::OK, 79),
        ..Fake::default()
    });
    let event = driver.wait(Duration::ZERO).unwrap().unwrap();
    assert_eq!(event.gpu, first());
    assert_eq!(event.kind, EventKind::Xid(79));
    assert_eq!(
        (event.gpu_instance, event.compute_instance),
        (Some(9), None)
    );

    let (quiet, _) = open(Fake::default());
    assert_eq!(quiet.wait(Duration::ZERO).unwrap(), None);
    let lost = nvmlReturn_enum_NVML_ERROR_GPU_IS_LOST;
    let (lost, fake) = open(Fake {
        event: (lost, 0),
        ..Fake::default()
    });
    let error = lost.wait(Duration::ZERO).unwrap_err();
    assert_eq!(error.nvml(), Some(NvmlCode::GPU_IS_LOST));
    drop(lost);
    assert_eq!(
        *fake.changes.lock().unwrap(),
        ["init", "watch", "unwatch", "shutdown"]
    );
}

#[test]
fn a_watch_that_failed_is_opened_anew() {
    let (driver, fake) = open(Fake {
        event: (nvmlReturn_enum_NVML_ERROR_UNKNOWN, 0),
        ..Fake::default()
    });
    for _ in 0..2 {
        driver.wait(Duration::ZERO).unwrap_err();
    }
    assert_eq!(
        *fake.changes.lock().unwrap(),
        ["init", "watch", "unwatch", "watch", "unwatch"]
    );
}

#[test]
fn connections_are_those_that_the_driver_tells() {
    let (driver, _) = open(Fake {
        gpus: 3,
        ..Fake::default()
    });
    let gpus = [0, 1, 2].map(|gpu| fake::uuid(gpu).parse().unwrap());
    let connections = driver.connections(&gpus).unwrap();
    let told: Vec<_> = connections
        .iter()
        .map(|it| (&it.one, &it.other, it.ancestor, it.nvlinks))
        .collect();
    assert_eq!(
        told,
        [
            (&gpus[0], &gpus[1], CommonAncestor::SingleSwitch, 2),
            (&gpus[0], &gpus[2], CommonAncestor::System, 2),
        ]
    );
    // Each GPU is looked up once.
    assert_eq!(driver.calls_by_name()["nvmlDeviceGetHandleByUUID"], 3);
    // A driver with the older call.
    let (driver, _) = open(Fake {
        gpus: 2,
        ..Fake::without(&["nvmlDeviceGetNvLinkRemotePciInfo_v2"])
    });
    assert_eq!(driver.connections(&gpus[..2]).unwrap()[0].nvlinks, 2);
    // A driver without NVLink.
    let (driver, _) = open(Fake {
        gpus: 2,
        ..Fake::without(&["nvmlDeviceGetNvLinkState"])
    });
    assert_eq!(driver.connections(&gpus[..2]).unwrap()[0].nvlinks, 0);
    // One that tells nothing at all.
    let (driver, _) = open(Fake {
        gpus: 2,
        ..Fake::without(&["nvmlDeviceGetTopologyCommonAncestor"])
    });
    assert_eq!(driver.connections(&gpus[..2]).unwrap(), []);
}

#[test]
fn a_fabric_counts_once_registration_has_succeeded() {
    let fabric = |fake: Fake| open(fake).0.fabric(&first()).unwrap();
    let clique = FabricClique {
        cluster_uuid: "abababab-abab-abab-abab-abababababab".to_owned(),
        clique_id: 7,
    };
    assert_eq!(fabric(Fake::default()), Some(clique.clone()));
    for older in [
        Fake::without(&["nvmlDeviceGetGpuFabricInfoV"]),
        Fake {
            fabric_query: 1,
            ..Fake::default()
        },
    ] {
        assert_eq!(fabric(older), Some(clique.clone()));
    }
    let under_way = NVML_GPU_FABRIC_STATE_IN_PROGRESS as u8;
    let ended = NVML_GPU_FABRIC_STATE_COMPLETED as u8;
    let failed = nvmlReturn_enum_NVML_ERROR_UNKNOWN;
    for state in [(under_way, fake::OK), (ended, failed)] {
        let fake = Fake {
            fabric: state,
            ..Fake::default()
        };
        assert_eq!(fabric(fake), None);
    }
    let none = ["nvmlDeviceGetGpuFabricInfoV", "nvmlDeviceGetGpuFabricInfo"];
    assert_eq!(fabric(Fake::without(&none)), None);
}
