// SPDX-License-Identifier: Apache-2.0
//! Plans that were sound and have been spoiled: the linter finds each.

#![allow(clippy::unwrap_used)]

use geometry::inventory::{Gpu, Holder, Inventory};
use geometry::{ComputeSpec, catalogue};
use plan::testing::{gpu, machine, put};
use plan::{Action, Condition, GpuPlan, GpuWish, Plan, Policy, Wish, parse_layout, plan};
use units::{Mode, Placement, ProfileName};

fn name(text: &str) -> ProfileName {
    text.parse().unwrap()
}

fn a_gpu(board: &str, mode: Mode, instances: &[(&str, u8)]) -> Gpu {
    let mut gpu = gpu(catalogue::by_key(board).unwrap(), 0, mode);
    for (profile, start) in instances {
        put(&mut gpu, &name(profile), *start, &[(name(profile), 0)]);
    }
    gpu
}

fn sound(gpu: Gpu, layout: &str) -> (Inventory, Plan) {
    let wish: GpuWish = parse_layout(layout).unwrap();
    let wish = Wish {
        gpus: [(0, wish)].into(),
        warnings: Vec::new(),
    };
    let inventory = machine(vec![gpu]);
    let policy = Policy {
        ignore_holders: true,
        ..Policy::default()
    };
    let plan = plan(&inventory, &wish, &policy).unwrap();
    assert_eq!(lint::check(&inventory, &plan), []);
    (inventory, plan)
}

/// On a H100: one instance stays, one goes, two come.
fn layout_change() -> (Inventory, Plan) {
    let gpu = a_gpu("H100-80GB-SXM", Mode::On, &[("1g.10gb", 0), ("3g.40gb", 4)]);
    sound(gpu, "1g.10gb,2x2g.20gb")
}

/// On an A100: MIG goes on, and two instances come.
fn mode_on() -> (Inventory, Plan) {
    sound(a_gpu("A100-40GB", Mode::Off, &[]), "1g.5gb,3g.20gb")
}

/// On an A100: an instance goes, and MIG off.
fn mode_off() -> (Inventory, Plan) {
    sound(a_gpu("A100-40GB", Mode::On, &[("3g.20gb", 4)]), "off")
}

/// The linter finds something whose message has `expected` in it.
#[track_caller]
fn finds(
    (inventory, mut plan): (Inventory, Plan),
    expected: &str,
    spoil: impl FnOnce(&mut GpuPlan),
) {
    spoil(&mut plan.gpus[0]);
    let findings = lint::check(&inventory, &plan);
    let found = findings.iter().any(|f| f.message.contains(expected));
    assert!(found, "expected {expected:?} in {findings:#?}");
}

fn at(plan: &GpuPlan, is_it: impl Fn(&Action) -> bool) -> usize {
    let mut steps = plan.steps.iter();
    steps.position(|step| is_it(&step.action)).unwrap()
}

fn creates(action: &Action) -> bool {
    matches!(action, Action::CreateGpuInstance { .. })
}

fn destroys(action: &Action) -> bool {
    matches!(action, Action::DestroyGpuInstance { .. })
}

fn move_create(action: &mut Action, to: Placement) {
    if let Action::CreateGpuInstance { placement, .. } = action {
        *placement = to;
    }
}

#[test]
fn any_step_dropped_doubled_or_swapped() {
    for (inventory, plan) in [layout_change(), mode_on(), mode_off()] {
        let count = plan.gpus[0].steps.len();
        for step in 0..count {
            let mut dropped = plan.clone();
            dropped.gpus[0].steps.remove(step);
            assert_ne!(lint::check(&inventory, &dropped), [], "without {step}");
            let mut doubled = plan.clone();
            let again = doubled.gpus[0].steps[step].clone();
            doubled.gpus[0].steps.insert(step, again);
            assert_ne!(lint::check(&inventory, &doubled), [], "{step} twice");
        }
    }
    finds(layout_change(), "with compute instances", |plan| {
        plan.steps.swap(0, 1);
    });
    finds(mode_on(), "no mode is pending", |plan| {
        plan.steps.swap(0, 1);
    });
    finds(mode_on(), "no such instance", |plan| {
        plan.steps.swap(2, 3);
    });
}

#[test]
fn any_undo_dropped_or_wrong() {
    for (inventory, plan) in [layout_change(), mode_on(), mode_off()] {
        for (step, sound) in plan.gpus[0].steps.iter().enumerate() {
            let mut spoiled = plan.clone();
            spoiled.gpus[0].steps[step].undo.clear();
            assert_ne!(
                lint::check(&inventory, &spoiled),
                [],
                "undo {step} is empty"
            );
            spoiled.gpus[0].steps[step].undo = vec![sound.action.clone()];
            assert_ne!(
                lint::check(&inventory, &spoiled),
                [],
                "undo {step} is the same"
            );
            spoiled = plan.clone();
            spoiled.gpus[0].steps[step].undo.reverse();
            let changed = spoiled != plan;
            assert_eq!(changed, !lint::check(&inventory, &spoiled).is_empty());
        }
    }
    finds(layout_change(), "taking it back", |plan| {
        let step = at(plan, destroys);
        move_create(&mut plan.steps[step].undo[0], Placement::new(0, 4));
    });
}

#[test]
fn a_check_that_does_not_tell() {
    for (inventory, plan) in [layout_change(), mode_on(), mode_off()] {
        for step in 0..plan.gpus[0].steps.len() {
            for check in [
                Condition::Idle,
                Condition::UnitsFree {
                    placement: Placement::new(3, 1),
                },
            ] {
                let mut spoiled = plan.clone();
                spoiled.gpus[0].steps[step].check = check;
                assert_ne!(lint::check(&inventory, &spoiled), [], "check of {step}");
            }
        }
    }
    // True after the step, but not for good.
    finds(layout_change(), "its check does not hold", |plan| {
        let (gone, placement) = (at(plan, destroys), Placement::new(4, 4));
        plan.steps[gone].check = Condition::UnitsFree { placement };
    });
}

#[test]
fn a_precondition_that_does_not_hold() {
    finds(layout_change(), "which does not hold", |plan| {
        let step = at(plan, creates);
        plan.steps[step].requires.push(Condition::NoInstances);
    });
}

#[test]
fn a_place_that_is_taken_or_not_offered() {
    finds(layout_change(), "on units that are taken", |plan| {
        let step = at(plan, creates);
        move_create(&mut plan.steps[step].action, Placement::new(0, 2));
        plan.steps[step].requires.clear();
    });
    finds(layout_change(), "does not offer that place", |plan| {
        let step = at(plan, creates);
        move_create(&mut plan.steps[step].action, Placement::new(1, 2));
        plan.steps[step].requires.clear();
    });
    finds(layout_change(), "not offer it under that id", |plan| {
        let step = at(plan, creates);
        if let Action::CreateGpuInstance { driver_id, .. } = &mut plan.steps[step].action {
            *driver_id = 1;
        }
    });
    finds(mode_on(), "slices that are taken", |plan| {
        let mut more = plan.steps[plan.steps.len() - 1].clone();
        let compute = ComputeSpec {
            profile: name("1c.3g.20gb"),
            driver_id: 0,
            placement: Some(Placement::new(1, 1)),
        };
        let instance = Placement::new(4, 4);
        more.action = Action::CreateCompute { instance, compute };
        plan.steps.push(more);
    });
}

#[test]
fn more_than_the_board_has() {
    let gpu = a_gpu("A30", Mode::On, &[("1g.6gb+me", 0)]);
    finds(
        sound(gpu, "1g.6gb+me,1g.6gb"),
        "no such engines left",
        |plan| {
            let (step, place) = (at(plan, creates), plan.create[0].placement);
            plan.steps[step].requires.clear();
            plan.steps[step].action = Action::CreateGpuInstance {
                placement: Placement::new(2, 2),
                profile: name("2g.12gb+me"),
                driver_id: 6,
            };
            assert_ne!(place, Placement::new(2, 2));
        },
    );
    let gpu = a_gpu("H100-80GB-SXM", Mode::On, &[("1g.10gb+me", 0)]);
    finds(
        sound(gpu, "1g.10gb+me,1g.10gb"),
        "as many as the board",
        |plan| {
            let step = at(plan, creates);
            if let Action::CreateGpuInstance {
                profile, driver_id, ..
            } = &mut plan.steps[step].action
            {
                (*profile, *driver_id) = (name("1g.10gb+me"), 20);
            }
        },
    );
}

#[test]
fn a_kept_instance_that_is_destroyed() {
    finds(layout_change(), "which the plan does not say", |plan| {
        let mut other = a_gpu("H100-80GB-SXM", Mode::On, &[("1g.10gb", 0)]);
        other.uuid = plan.uuid.clone();
        let (_, cleared) = sound(other, "empty");
        plan.steps.splice(0..0, cleared.gpus[0].steps.clone());
    });
    finds(layout_change(), "is not all that does not stay", |plan| {
        plan.destroy.extend(plan.keep.clone());
    });
    finds(layout_change(), "is there already", |plan| {
        let kept = plan.keep.remove(0);
        plan.destroy.insert(0, kept.clone());
        plan.create.insert(0, kept);
    });
}

#[test]
fn what_is_said_and_what_is_there() {
    finds(layout_change(), "its UUID is", |plan| {
        plan.uuid = "GPU-00000000-0000-0000-0000-000000000009".parse().unwrap();
    });
    finds(layout_change(), "the layout before", |plan| {
        plan.before.instances.pop();
    });
    finds(layout_change(), "not the layout after", |plan| {
        plan.after.instances.pop();
    });
    finds(layout_change(), "do not lead to the layout after", |plan| {
        let slice = &mut plan.after.instances[0].compute;
        slice.clear();
    });
    finds(layout_change(), "no step creates", |plan| {
        let more = ComputeSpec {
            profile: name("1g.10gb"),
            driver_id: 0,
            placement: Some(Placement::new(0, 1)),
        };
        let mut instance = plan.keep[0].clone();
        instance.placement = Placement::new(6, 1);
        instance.compute = vec![more];
        plan.create.push(instance);
    });
    finds(mode_on(), "its mode is off", |plan| {
        plan.mode_before = Mode::On;
    });
    finds(layout_change(), "there is no such GPU", |plan| {
        plan.index = 7
    });
    let (inventory, mut plan) = layout_change();
    plan.gpus.push(plan.gpus[0].clone());
    let twice = lint::check(&inventory, &plan);
    assert!(twice.iter().any(|f| f.message == "it is planned twice"));
}

#[test]
fn mode_and_reset() {
    finds(mode_on(), "with MIG off", |plan| {
        let reset = at(plan, |action| *action == Action::Reset);
        plan.steps.remove(reset);
    });
    finds(mode_off(), "its mode ends pending off", |plan| {
        plan.steps.pop();
    });
    finds(mode_on(), "this reset is not needed", |plan| {
        plan.steps.insert(1, plan.steps[1].clone());
    });
    finds(mode_off(), "with instances on it", |plan| {
        plan.steps.drain(0..2);
        plan.steps.iter_mut().for_each(|step| step.requires.clear());
    });
    // On a Hopper the mode changes at once.
    let hopper = || sound(a_gpu("H100-80GB-SXM", Mode::Off, &[]), "1g.10gb");
    finds(hopper(), "no mode is pending", |plan| {
        let (_, ampere) = mode_on();
        plan.steps.insert(1, ampere.gpus[0].steps[1].clone());
    });
    finds(layout_change(), "this set mode is not needed", |plan| {
        let (_, ampere) = mode_on();
        plan.steps.insert(0, ampere.gpus[0].steps[0].clone());
    });
    finds(mode_on(), "cannot be begun anew", |plan| {
        let reset = at(plan, |action| *action == Action::Reset);
        plan.steps[reset].check = Condition::NothingPending;
        plan.steps[0].undo.clear();
    });
}

#[test]
fn somebody_who_is_hurt() {
    let busy = |holders: &dyn Fn(&mut Gpu) -> &mut Vec<Holder>| {
        let mut gpu = a_gpu("A100-40GB", Mode::On, &[("1g.5gb", 0), ("3g.20gb", 4)]);
        holders(&mut gpu).push(Holder {
            pid: 77,
            name: "train".into(),
        });
        gpu
    };
    let slice = busy(&|gpu| &mut gpu.instances[1].compute[0].holders);
    finds(
        sound(slice.clone(), "1g.5gb"),
        "process 77 is hurt",
        |plan| {
            plan.holders.clear();
        },
    );
    finds(
        sound(slice, "3g.20gb"),
        "process 77 is named and not",
        |plan| {
            plan.holders.push(Holder {
                pid: 77,
                name: "train".into(),
            });
        },
    );
    let whole = busy(&|gpu| &mut gpu.holders);
    finds(sound(whole.clone(), "off"), "process 77 is hurt", |plan| {
        plan.holders.clear();
    });
    finds(sound(whole, "off"), "Idle, which does not hold", |plan| {
        plan.holders.clear();
    });
}

#[test]
fn a_gpu_without_mig() {
    let gpu = gpu(catalogue::by_key("T4").unwrap(), 0, Mode::Off);
    finds(sound(gpu, "off"), "it has no MIG", |plan| {
        let (_, other) = mode_on();
        plan.steps = other.gpus[0].steps.clone();
    });
}
