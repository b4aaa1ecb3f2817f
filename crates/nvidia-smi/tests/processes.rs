// SPDX-License-Identifier: Apache-2.0
//! Processes that share a world, and die.

#![allow(clippy::unwrap_used)]

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use nvmlsim::verbs;
use support::Machine;

fn partitioned(name: &str, spec: &str) -> Machine {
    let machine = Machine::new(name, spec);
    for gpu in 0..machine.handle.world().unwrap().gpus.len() as u32 {
        let update = machine
            .handle
            .update(|world| world.set_mode(gpu, true, false));
        assert_eq!(update.unwrap(), Ok(nvmlsim::code::SUCCESS));
    }
    machine
}

fn spawn(machine: &Machine, words: &str) -> Child {
    let mut command = machine.nvidia_smi(words);
    command.stdout(Stdio::null()).spawn().unwrap()
}

#[test]
fn no_update_of_any_process_is_lost() {
    let machine = partitioned("processes", "2xH100-80GB-SXM");
    let words = ["mig -i 0 -cgi 19 -C", "mig -i 1 -cgi 19 -C"];
    let children = (0..7).flat_map(|_| words.map(|words| spawn(&machine, words)));
    let children: Vec<Child> = children.collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let world = machine.handle.world().unwrap();
    let slices: Vec<usize> = world
        .gpus
        .iter()
        .map(|gpu| gpu.mig_devices().count())
        .collect();
    assert_eq!(slices, [7, 7]);
    assert_eq!(world.check(), Ok(()));
}

#[test]
fn a_process_dies_where_the_script_says() {
    for (fault, left) in [("kill-before create-gi", 0), ("kill-after create-gi", 1)] {
        let machine = partitioned("script", "1xH100-80GB-SXM");
        verbs::fault(&machine.handle, &[fault]).unwrap();
        let status = spawn(&machine, "mig -cgi 19 -C").wait().unwrap();
        assert_eq!(status.signal(), Some(9), "{fault}");
        let world = machine.handle.world().unwrap();
        assert_eq!(world.gpus[0].instances.len(), left, "{fault}");
        assert_eq!(world.gpus[0].mig_devices().count(), 0);
    }
}

#[test]
fn a_process_killed_in_the_middle_leaves_a_whole_world() {
    let machine = partitioned("killed", "1xH100-80GB-SXM");
    for writes in 1..15 {
        let start = machine.handle.world().unwrap().generation;
        let mut child = spawn(&machine, "mig -cgi 19,19,19,19,19,19,19 -C");
        // Kill it as soon as it has made so many changes; it may be done by then.
        while machine.handle.world().unwrap().generation < start + writes
            && child.try_wait().unwrap().is_none()
        {}
        child.kill().unwrap();
        child.wait().unwrap();
        let world = machine.handle.world().unwrap();
        assert!(world.generation >= start + writes);
        assert_eq!(world.check(), Ok(()));
        machine
            .handle
            .update(|world| world.reset(0))
            .unwrap()
            .unwrap();
    }
}
