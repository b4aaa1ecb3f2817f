// SPDX-License-Identifier: Apache-2.0
//! Fault scripts: what can be said, and what happens then.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use gpu::{Driver, Instances, MigMode, NvmlCode, ReadGpus};
use nvmlsim::{Fault, Handle, Options, Simulated, World, verbs};
use units::{GpuUuid, Placement};

/// Two H100 with MIG on.
fn machine(latency_ms: u64) -> (Handle, Driver, Vec<GpuUuid>) {
    let options = Options {
        latency_ms,
        ..Options::default()
    };
    let mut world = World::create(&"2xH100-80GB-SXM".parse().unwrap(), &options);
    for gpu in 0..2 {
        world.set_mode(gpu, true, false).unwrap();
    }
    let handle = Handle::in_memory(world);
    let driver = Driver::new(Arc::new(Simulated::new(handle.clone()))).unwrap();
    let gpus = driver.inventory().unwrap().gpus;
    (
        handle,
        driver,
        gpus.into_iter().map(|gpu| gpu.uuid).collect(),
    )
}

#[test]
fn a_line_reads_back_as_it_was_meant() {
    for (line, shown) in [
        (
            "fail create-gi code=IN_USE",
            "fail create-gi gpu=any nth=1 code=IN_USE",
        ),
        (
            "fail any gpu=1 nth=3 every code=19",
            "fail any gpu=1 nth=3 every code=IN_USE",
        ),
        ("hang read", "hang read gpu=any nth=1 ms=60000"),
        (
            "slow set-mode ms=5 gpu=any",
            "slow set-mode gpu=any nth=1 ms=5",
        ),
        (
            "kill-after nvmlGpuInstanceDestroy nth=2",
            "kill-after nvmlGpuInstanceDestroy gpu=any nth=2",
        ),
        ("kill-before reset", "kill-before reset gpu=any nth=1"),
    ] {
        let Fault::Rule(rule) = line.parse().unwrap() else {
            panic!("{line} is no rule");
        };
        assert_eq!(rule.to_string(), shown);
        assert_eq!(shown.parse(), Ok(Fault::Rule(rule)), "{shown}");
    }
    let xid = Fault::Xid {
        gpu: 0,
        instance: Some((2, 0)),
        xid: 79,
    };
    assert_eq!("xid gpu=0 gi=2 79".parse(), Ok(xid));
}

#[test]
fn what_is_wrong_with_a_line_is_said_with_the_choices() {
    let (handle, _, _) = machine(0);
    for (line, message) in [
        ("", "\"\" is no fault; there are: fail, fail-after, hang,"),
        ("break any", "\"break\" is no fault"),
        ("fail", "fail: no call is named"),
        (
            "fail nvmlFoo code=IN_USE",
            "\"nvmlFoo\" is no NVML function that is served, nor a kind of call (any, change,",
        ),
        (
            "fail any",
            "fail: no code=; expected code= one of UNINITIALIZED, INVALID_ARGUMENT,",
        ),
        ("fail any code=FOO", "fail: FOO; expected code= one of"),
        ("slow any", "slow: no ms=; expected ms= milliseconds"),
        ("slow any ms=x", "slow: ms=x; expected ms= a number"),
        (
            "hang any nth=0",
            "hang: nth=0; expected nth=N, counted from 1",
        ),
        ("kill-after any gpu=9", "there is no GPU 9: the world has 2"),
        (
            "kill-after any foo=9",
            "kill-after: foo=9; expected gpu=, nth=",
        ),
        ("xid gpu=0", "xid: nothing; expected the XID, a number"),
        ("lose", "lose: no gpu=; expected gpu= the index of a GPU"),
    ] {
        let error = verbs::fault(&handle, &["clear", line]).unwrap_err();
        assert!(error.to_string().contains(message), "{line}: {error}");
    }
    assert!(handle.world().unwrap().rules.is_empty());
}

#[test]
fn calls_are_counted_by_rule_and_gpu() {
    let (handle, driver, gpus) = machine(0);
    let lines = [
        "fail create-gi gpu=1 nth=2 every code=UNKNOWN",
        "fail read gpu=0 nth=9999 code=UNKNOWN",
    ];
    verbs::fault(&handle, &lines).unwrap();
    let create = |gpu: usize, start| {
        let created = driver.create_gpu_instance(&gpus[gpu], 19, Placement::new(start, 1));
        created.map_err(|error| error.nvml().unwrap())
    };
    assert_eq!((create(0, 0), create(0, 1)), (Ok(7), Ok(8)));
    assert_eq!(create(1, 0), Ok(7));
    assert_eq!(create(1, 1), Err(NvmlCode::UNKNOWN));
    assert_eq!(create(1, 1), Err(NvmlCode::UNKNOWN));
    assert_eq!(handle.world().unwrap().rules[0].seen, 3);
}

#[test]
fn a_change_takes_its_latency_and_keeps_no_other_waiting() {
    const LATENCY: Duration = Duration::from_millis(50);
    let (handle, driver, gpus) = machine(LATENCY.as_millis() as u64);
    let start = Instant::now();
    driver.set_mode(&gpus[0], true).unwrap();
    assert!(start.elapsed() >= LATENCY);
    verbs::fault(&handle, &["slow set-mode gpu=0 ms=1500"]).unwrap();
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| driver.set_mode(&gpus[0], true).unwrap());
        while handle.world().unwrap().rules[0].seen == 0 {}
        driver.set_mode(&gpus[1], true).unwrap();
        driver.inventory().unwrap();
        assert!(!slow.is_finished(), "they went one after the other");
    });
}
