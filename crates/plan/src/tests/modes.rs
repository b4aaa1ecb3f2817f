// SPDX-License-Identifier: Apache-2.0
//! What a MIG mode takes, by board, mode before, and whether resets are allowed.

use units::Mode;

use super::{a_gpu, holder, short, steps, wish};
use crate::testing::machine;
use crate::{GpuPlan, GpuWish, Policy, Refusal, Warning, Wish, plan};

fn one(
    board: &str,
    mode: Mode,
    wished: &Wish,
    reset: bool,
) -> Result<(GpuPlan, Vec<Warning>), Refusal> {
    let instances: &[(&str, u8)] = match (mode.is_on(), board) {
        (false, _) => &[],
        (true, "A30") => &[("1g.6gb", 0)],
        (true, _) => &[("1g.10gb", 0)],
    };
    let mut gpu = a_gpu(0, board, instances);
    gpu.mode = Some(mode);
    let policy = Policy {
        reset,
        ..Policy::default()
    };
    let mut plan = plan(&machine(vec![gpu]), wished, &policy)?;
    Ok((plan.gpus.remove(0), plan.warnings))
}

#[test]
fn steps_of_every_way() {
    let gone = ["-ci 1g.6gb@0", "-gi 1g.6gb@0"];
    let came = ["+gi 1g.6gb@0", "+ci 1g.6gb@0"];
    use Mode::{Off, On, PendingOff, PendingOn};
    let cases: &[(Mode, &str, bool, &[&str], Mode)] = &[
        (Off, "off", true, &[], Off),
        (On, "off", true, &["mode off", "reset"], Off),
        (PendingOn, "off", true, &["mode off"], Off),
        (PendingOff, "off", true, &["reset"], Off),
        (Off, "on", true, &["mode on", "reset"], On),
        (On, "on", true, &[], On),
        (PendingOn, "on", true, &["reset"], On),
        (PendingOff, "on", true, &["mode on"], On),
        (On, "off", false, &["mode off"], PendingOff),
        (PendingOn, "off", false, &["mode off"], Off),
        (PendingOff, "off", false, &[], PendingOff),
        (Off, "on", false, &["mode on"], PendingOn),
        (PendingOn, "on", false, &[], PendingOn),
        (PendingOff, "on", false, &["mode on"], On),
    ];
    for (before, wanted, reset, mode_steps, after) in cases {
        let what = format!("{before} to {wanted}, reset {reset}");
        let on = *wanted == "on";
        let wished = wish(&[(0, if on { "1g.6gb" } else { "off" })]);
        let (gpu, warnings) = one("A30", *before, &wished, *reset).unwrap();
        let mut expected: Vec<&str> = mode_steps.to_vec();
        if on && !before.is_on() && after.is_on() {
            expected.extend(came);
        } else if !on && before.is_on() {
            expected.splice(0..0, gone);
        }
        assert_eq!(steps(&gpu), expected, "{what}");
        assert_eq!(gpu.mode_after, *after, "{what}");
        let codes: Vec<&str> = warnings.iter().map(|w| w.code.as_str()).collect();
        let pending: &[&str] = if after.is_pending() {
            &["reset-needed"]
        } else {
            &[]
        };
        assert_eq!(codes, pending, "{what}");
    }
}

#[test]
fn hopper_changes_at_once() {
    let (gpu, _) = one("H100-80GB-SXM", Mode::Off, &wish(&[(0, "7g.80gb")]), false).unwrap();
    assert_eq!(steps(&gpu), ["mode on", "+gi 7g.80gb@0", "+ci 7g.80gb@0"]);
    let (gpu, _) = one("H100-80GB-SXM", Mode::On, &wish(&[(0, "off")]), false).unwrap();
    assert_eq!(steps(&gpu), ["-ci 1g.10gb@0", "-gi 1g.10gb@0", "mode off"]);
    assert_eq!((gpu.mode_after, gpu.resets()), (Mode::Off, false));
}

#[test]
fn a_layout_that_waits_for_a_reset_is_checked_all_the_same() {
    let refusal = one("A30", Mode::Off, &wish(&[(0, "5x1g.6gb")]), false).unwrap_err();
    assert_eq!(refusal.code.as_str(), "layout-does-not-fit");
}

#[test]
fn a_reset_is_taken_back_to_what_was_pending() {
    let undo = |before, wanted: &str| {
        let (gpu, _) = one("A30", before, &wish(&[(0, wanted)]), true).unwrap();
        let reset = gpu.steps.iter().find(|step| short(&step.action) == "reset");
        let undo = &reset.unwrap().undo;
        undo.iter().map(short).collect::<Vec<_>>()
    };
    assert_eq!(undo(Mode::Off, "empty"), ["mode off", "reset"]);
    assert_eq!(
        undo(Mode::PendingOn, "empty"),
        ["mode off", "reset", "mode on"]
    );
    assert_eq!(
        undo(Mode::PendingOff, "off"),
        ["mode on", "reset", "mode off"]
    );
}

#[test]
fn a_gpu_in_use_keeps_its_mode() {
    for (board, before, wanted, hurt) in [
        ("A30", Mode::Off, "empty", true),
        ("A30", Mode::PendingOn, "empty", true),
        ("A30", Mode::PendingOn, "off", false),
        ("A30", Mode::On, "off", true),
        ("H100-80GB-SXM", Mode::Off, "empty", true),
        ("H100-80GB-SXM", Mode::On, "3g.40gb", false),
    ] {
        let mut gpu = a_gpu(0, board, &[]);
        gpu.mode = Some(before);
        gpu.holders = vec![holder(5, "nv-hostengine"), holder(9, "")];
        let planned = plan(
            &machine(vec![gpu]),
            &wish(&[(0, wanted)]),
            &Policy::default(),
        );
        assert_eq!(planned.is_err(), hurt, "{board} {before} {wanted}");
        if let Err(refusal) = planned {
            assert_eq!(refusal.code.as_str(), "in-use");
            assert!(
                refusal
                    .message
                    .contains("used by process 5 (nv-hostengine), process 9"),
                "{refusal}"
            );
        }
    }
}

#[test]
fn mode_only_keeps_instances() {
    let wished = wish(&[(0, "7g.80gb")]).mode_only();
    assert_eq!(wished.gpus[&0], GpuWish::On);
    let (gpu, _) = one("A100-80GB", Mode::PendingOff, &wished, true).unwrap();
    assert_eq!(steps(&gpu), ["mode on"]);
    assert_eq!(gpu.keep.len(), 1);
}
