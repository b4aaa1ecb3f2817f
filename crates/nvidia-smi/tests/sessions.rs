// SPDX-License-Identifier: Apache-2.0
//! Recorded sessions: what is typed, and what comes back.
//!
//! A file begins with the machine; `$ nvidia-smi ...` is run, `% ...` is a line of a fault script,
//! `reboot`, or `hold GPU` and `release` by the test itself. With `UPDATE_EXPECT=1` the files are
//! written anew.

#![allow(clippy::unwrap_used)]

mod support;

use std::fmt::Write;
use std::path::Path;

use nvmlsim::verbs;
use support::Machine;

/// What the session in the text gives when it is run.
fn replay(name: &str, recorded: &str) -> String {
    let first = recorded.lines().next().unwrap();
    let machine = Machine::new(name, first.trim_start_matches("# "));
    let mut text = format!("{first}\n");
    let mut hold = None;
    for line in recorded.lines() {
        if let Some(words) = line.strip_prefix("$ nvidia-smi") {
            let output = machine.nvidia_smi(words).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let printed = printed.replace(&std::process::id().to_string(), "<pid>");
            let status = output.status.code().unwrap();
            write!(text, "\n{line}\n{printed}[{status}]\n").unwrap();
        } else if let Some(act) = line.strip_prefix("% ") {
            match act.split_once(' ') {
                Some(("hold", gpu)) => {
                    let world = machine.handle.world().unwrap();
                    let gpu = &world.gpus[gpu.parse::<usize>().unwrap()];
                    hold = Some(machine.handle.hold(gpu.uuid.as_str()).unwrap());
                }
                None if act == "release" => drop(hold.take()),
                None if act == "reboot" => verbs::reboot(&machine.handle).unwrap(),
                _ => verbs::fault(&machine.handle, &[act]).unwrap(),
            }
            write!(text, "\n{line}\n").unwrap();
        }
    }
    text
}

fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/sessions");
    let path = folder.join(name).with_extension("txt");
    let recorded = std::fs::read_to_string(&path).unwrap();
    let now = replay(name, &recorded);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, now).unwrap();
    } else {
        pretty_compare(&recorded, &now);
    }
}

#[track_caller]
fn pretty_compare(recorded: &str, now: &str) {
    for (number, (old, new)) in recorded.lines().zip(now.lines()).enumerate() {
        assert_eq!(old, new, "line {}", number + 1);
    }
    assert_eq!(recorded.lines().count(), now.lines().count());
}

#[test]
fn hopper() {
    check("hopper");
}

#[test]
fn ampere() {
    check("ampere");
}

#[test]
fn without_mig() {
    check("without_mig");
}
