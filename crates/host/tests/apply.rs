// SPDX-License-Identifier: Apache-2.0
//! A change as its users see it: done, put back, refused, told what others do, rolled back.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use common::{Event, Fault, Machine};
use host::{Ended, Ending, Error, Intent, Kind, Outcome, Toward, open_change};
use nvmlsim::{Handle, HoldGuard};
use plan::{Action, GpuWish, Plan, Policy, Wish};
use units::{Code, Mode};

/// So many slices of each profile on each GPU; `off` for MIG off.
fn wish(layouts: &[&str]) -> Wish {
    let gpus = (0..).zip(layouts).map(|(index, layout)| {
        let slices = layout.split(',').filter(|part| !part.is_empty());
        let wish = match *layout {
            "off" => GpuWish::Off,
            _ => GpuWish::Slices(slices.fold(BTreeMap::new(), |mut counts, profile| {
                *counts.entry(profile.parse().unwrap()).or_default() += 1;
                counts
            })),
        };
        (index, wish)
    });
    Wish {
        gpus: gpus.collect(),
        warnings: Vec::new(),
    }
}

fn plan_of(machine: &Machine, layouts: &[&str]) -> Plan {
    let inventory = machine.run(|host| host.inventory()).unwrap();
    plan::plan(&inventory, &wish(layouts), &Policy::default()).unwrap()
}

fn apply(machine: &Machine, layouts: &[&str]) -> Outcome {
    let plan = plan_of(machine, layouts);
    let intent = Intent::apply(layouts.join(" "));
    machine.run(|host| host.apply(&plan, &intent)).unwrap()
}

fn texts(machine: &Machine) -> Vec<String> {
    machine.states().iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_done_is_in_the_history_and_nothing_to_do_is_not() {
    let machine = Machine::new("1xH100-80GB-SXM,1xA30");
    let layouts = ["3g.40gb,1g.10gb", "2g.12gb"];
    let outcome = apply(&machine, &layouts);
    assert_eq!((outcome.id, &outcome.ending), (Some(1), &Ending::Done));
    assert_eq!(outcome.gpus.len(), 2);
    let again = apply(&machine, &layouts);
    assert_eq!((again.id, &again.ending), (None, &Ending::Nothing));

    let history = machine.run(|host| host.history()).unwrap();
    assert_eq!(history.len(), 1);
    let entry = &history[0];
    assert_eq!(
        (entry.id, entry.ended, entry.recovered),
        (1, Ended::Done, false)
    );
    assert_eq!(entry.intent, Intent::apply("3g.40gb,1g.10gb 2g.12gb"));
    assert_eq!(entry.gpus[0].before.mode, Mode::Off);
    let after: Vec<_> = entry.gpus.iter().map(|gpu| gpu.after.clone()).collect();
    assert_eq!(after, machine.states());
    assert_eq!(open_change(&*machine.disk).unwrap(), None);
}

#[test]
fn eight_gpus_of_seven_slices_take_112_changing_calls() {
    let machine = Machine::new("8xH100-80GB-SXM");
    apply(&machine, &[""; 8]);
    let sevenths = "1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb,1g.10gb";
    let plan = plan_of(&machine, &[sevenths; 8]);
    let (outcome, switch) = machine.process(&[], |host| host.apply(&plan, &Intent::apply("all")));
    assert_eq!(outcome.unwrap().ending, Ending::Done);
    let changes = switch
        .events()
        .into_iter()
        .filter(|it| *it == Event::Change);
    assert_eq!(changes.count(), 112);
}

#[test]
fn rolling_back_goes_one_change_further_each_time() {
    let machine = Machine::new("2xA100-40GB");
    let start = machine.states();
    apply(&machine, &["3g.20gb,3g.20gb"]);
    let first = machine.states();
    apply(&machine, &["1g.5gb,3g.20gb", "7g.40gb"]);
    assert_ne!(machine.states(), first);

    let rollback = |machine: &Machine| machine.run(|host| host.rollback(&Policy::default()));
    assert_eq!(rollback(&machine).unwrap().ending, Ending::Done);
    assert_eq!(machine.states(), first);
    assert_eq!(rollback(&machine).unwrap().ending, Ending::Done);
    assert_eq!(machine.states(), start);
    assert_eq!(
        rollback(&machine).unwrap_err().code(),
        Code::NothingToRollBack
    );

    let history = machine.run(|host| host.history()).unwrap();
    let kinds: Vec<Kind> = history.iter().map(|entry| entry.intent.kind).collect();
    let back = |of| Kind::Rollback { of };
    assert_eq!(kinds, [Kind::Apply, Kind::Apply, back(2), back(1)]);

    apply(&machine, &["7g.40gb"]);
    assert_eq!(rollback(&machine).unwrap().ending, Ending::Done);
    assert_eq!(machine.states(), start);
}

#[test]
fn a_rollback_that_finds_its_layout_already_there_counts() {
    let machine = Machine::new("1xH100-80GB-SXM");
    apply(&machine, &["7g.80gb"]);
    apply(&machine, &["3g.40gb"]);
    let by_hand = machine.copy();
    apply(&by_hand, &["7g.80gb"]);
    let world = by_hand.world.world().unwrap();
    let by_hand = nvmlsim::World::clone(&world);
    machine.world.change(|there| *there = by_hand).unwrap();
    let rollback = |machine: &Machine| machine.run(|host| host.rollback(&Policy::default()));
    assert_eq!(rollback(&machine).unwrap().id, Some(3));
    rollback(&machine).unwrap();
    assert_eq!(texts(&machine), ["MIG off"]);
}

#[test]
fn a_change_that_failed_is_put_back_with_its_cause_and_does_not_count_for_a_rollback() {
    let machine = Machine::new("1xH100-80GB-SXM");
    apply(&machine, &["3g.40gb,3g.40gb"]);
    let before = machine.states();
    let plan = plan_of(&machine, &["1g.10gb,3g.40gb"]);
    let intent = Intent::apply("x");
    let events = machine
        .twin()
        .process(&[], |host| host.apply(&plan, &intent))
        .1
        .events();
    let third = |kind| {
        let mut found = events
            .iter()
            .enumerate()
            .filter(|(_, event)| **event == kind);
        found.nth(2).unwrap().0
    };
    for (kind, code) in [
        (Event::Change, Code::DriverFailed),
        (Event::Write, Code::StateUnwritable),
    ] {
        let fault = Fault::FailBefore(third(kind));
        let outcome = machine
            .process(&[fault], |host| host.apply(&plan, &intent))
            .0
            .unwrap();
        assert_eq!(outcome.ending.code(), Some(Code::RolledBack));
        let Ending::PutBack { cause } = outcome.ending else {
            panic!("{outcome:?}");
        };
        assert_eq!(cause.code, code, "{cause}");
        assert_eq!(machine.states(), before);
    }
    let history = machine.run(|host| host.history()).unwrap();
    assert_eq!(history.len(), 3);
    assert_eq!(history[2].ended, Ended::PutBack);
    machine
        .run(|host| host.rollback(&Policy::default()))
        .unwrap();
    assert_eq!(texts(&machine), ["MIG off"]);
}

#[test]
fn nothing_is_begun_where_it_cannot_be_recorded() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let plan = plan_of(&machine, &["7g.80gb"]);
    // Reading comes first, then the journal's first line.
    let full = Fault::FailBefore(1);
    let (outcome, switch) = machine.process(&[full], |host| host.apply(&plan, &Intent::apply("x")));
    assert_eq!(outcome.unwrap_err().code(), Code::StateUnwritable);
    assert!(!switch.events().contains(&Event::Change));
    assert_eq!(texts(&machine), ["MIG off"]);
}

#[test]
fn a_plan_is_refused_if_the_hardware_is_another_now_or_the_plan_is_wrong() {
    let machine = Machine::new("1xH100-80GB-SXM");
    apply(&machine, &["3g.40gb"]);
    let plan = plan_of(&machine, &["1g.10gb"]);
    apply(&machine, &["3g.40gb,3g.40gb"]);
    let refused = |plan: &Plan| -> Error {
        let (outcome, switch) = machine.process(&[], |host| host.apply(plan, &Intent::apply("x")));
        assert!(switch.events().iter().all(|event| *event == Event::Read));
        outcome.unwrap_err()
    };
    assert_eq!(refused(&plan).code(), Code::PlanOutdated);

    let mut unsound = plan_of(&machine, &["1g.10gb"]);
    unsound.gpus[0].steps.remove(0);
    assert_eq!(refused(&unsound).code(), Code::PlanUnsound);
}

#[test]
fn an_open_journal_is_in_the_way_until_it_is_recovered() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let plan = plan_of(&machine, &["7g.80gb"]);
    machine
        .process(&[Fault::KillBefore(9)], |host| {
            host.apply(&plan, &Intent::apply("mine"))
        })
        .0
        .ok();
    let again = machine
        .run(|host| host.apply(&plan, &Intent::apply("x")))
        .unwrap_err();
    assert_eq!(again.code(), Code::JournalOpen);
    assert!(again.to_string().contains("change 1 (mine)"), "{again}");

    let recovered = machine
        .run(|host| host.recover(Toward::New))
        .unwrap()
        .unwrap();
    assert_eq!((recovered.id, recovered.ending), (Some(1), Ending::Done));
    assert_eq!(machine.run(|host| host.recover(Toward::New)).unwrap(), None);
    let history = machine.run(|host| host.history()).unwrap();
    assert!(history[0].recovered);
    machine
        .run(|host| host.rollback(&Policy::default()))
        .unwrap();
    assert_eq!(texts(&machine), ["MIG off"]);
}

/// Does something right before the first destroying or creating call of a change.
fn once(work: impl Fn() + Send + Sync + 'static) -> impl Fn(usize, Event) + Send + Sync + 'static {
    let done = Mutex::new(false);
    move |_, event| {
        let mut done = done.lock().unwrap();
        if event == Event::Change && !std::mem::replace(&mut *done, true) {
            work();
        }
    }
}

/// Holds the slice of that profile, as a process that has just come.
fn hold(world: &Handle, profile: u32) -> HoldGuard {
    let state = world.world().unwrap();
    let gpu = &state.gpus[0];
    let (instance, compute) = gpu
        .mig_devices()
        .find(|(instance, _)| instance.profile == profile)
        .unwrap();
    world
        .hold(gpu.mig_uuid(instance, compute).as_str())
        .unwrap()
}

#[test]
fn a_holder_that_came_since_the_plan_refuses_it_and_one_that_comes_later_stops_it() {
    let machine = Machine::new("1xH100-80GB-SXM");
    apply(&machine, &["3g.40gb,2g.20gb"]);
    let plan = plan_of(&machine, &["1g.10gb"]);
    let before = machine.shape();
    let intent = Intent::apply("x");

    let holder = hold(&machine.world, 9);
    let refused = machine.run(|host| host.apply(&plan, &intent)).unwrap_err();
    assert_eq!(refused.code(), Code::InUse);
    drop(holder);

    let world = machine.world.clone();
    let comes = Mutex::new(None);
    let comes = once(move || *comes.lock().unwrap() = Some([hold(&world, 9), hold(&world, 14)]));
    let outcome = machine
        .process_while(comes, |host| host.apply(&plan, &intent))
        .0
        .unwrap();
    let Ending::PutBack { cause } = outcome.ending else {
        panic!("{outcome:?}");
    };
    assert_eq!(cause.code, Code::InUse);
    let who = format!("GPU 0 is used by process {}", std::process::id());
    assert!(cause.message.contains(&who), "{cause}");
    assert_eq!(machine.shape(), before);
}

#[test]
fn what_others_do_meanwhile_is_told_and_not_fought() {
    let machine = Machine::new("1xH100-80GB-SXM");
    apply(&machine, &["3g.40gb"]);
    let plan = plan_of(&machine, &["1g.10gb,1g.10gb"]);
    let world = machine.world.clone();
    let foreign = once(move || {
        let place = Some(units::Placement::new(2, 2));
        world
            .update(|world| world.create_gpu_instance(0, 14, place))
            .unwrap()
            .unwrap();
    });
    let outcome = machine
        .process_while(foreign, |host| host.apply(&plan, &Intent::apply("x")))
        .0
        .unwrap();
    let Ending::Stuck {
        cause,
        then,
        next_step,
    } = outcome.ending
    else {
        panic!("{outcome:?}");
    };
    assert_eq!(
        (cause.code, then.code),
        (Code::ForeignChange, Code::ForeignChange)
    );
    assert!(cause.message.contains("2g.20gb at 2:2 ()"), "{cause}");
    assert!(
        next_step.contains("slicewright host recover"),
        "{next_step}"
    );
    let state = &texts(&machine)[0];
    assert!(state.contains("2g.20gb at 2:2 ()"), "{state}");
    assert!(state.contains("3g.40gb at"), "{state}");

    // A person who says `recover` wants the recorded layout.
    let recovered = machine
        .run(|host| host.recover(Toward::New))
        .unwrap()
        .unwrap();
    assert_eq!(recovered.ending.code(), Some(Code::RolledBack));
    assert_eq!(machine.states()[0].layout.to_string(), "1x3g.40gb");
    assert_eq!(open_change(&*machine.disk).unwrap(), None);
}

#[test]
fn a_reboot_in_the_middle_ends_in_the_layout_that_is_wanted() {
    for board in ["1xA100-40GB", "1xH100-80GB-SXM"] {
        for toward in [Toward::New, Toward::Old] {
            let machine = Machine::new(board);
            let name = if board.contains("A100") {
                "5gb"
            } else {
                "10gb"
            };
            apply(&machine, &[&format!("1g.{name},1g.{name}")]);
            let old = machine.states();
            let plan = plan_of(&machine, &[&format!("1g.{name},1g.{name}+me")]);
            let events = {
                let twin = machine.twin();
                twin.process(&[], |host| host.apply(&plan, &Intent::apply("x")))
                    .1
                    .events()
                    .len()
            };
            let death = Fault::KillAfter(events / 2);
            machine
                .process(&[death], |host| host.apply(&plan, &Intent::apply("x")))
                .0
                .ok();
            nvmlsim::verbs::reboot(&machine.world).unwrap();
            let outcome = machine.run(|host| host.recover(toward)).unwrap().unwrap();
            let record = &outcome.gpus[0];
            match (toward, outcome.ending) {
                (Toward::New, Ending::Done) => {
                    assert_eq!(machine.states()[0], record.after);
                }
                (Toward::Old, Ending::PutBack { cause }) => {
                    assert!(cause.message.contains("by a reboot"), "{cause}");
                    assert_eq!(machine.states(), old);
                }
                other => panic!("{board}: {other:?}"),
            }
        }
    }
}

#[test]
fn a_mode_that_was_to_stay_pending_is_asked_for_again_and_nothing_is_reset() {
    let policy = Policy {
        reset: false,
        ..Policy::default()
    };
    let machine = Machine::new("2xA100-40GB");
    let inventory = machine.run(|host| host.inventory()).unwrap();
    let wish = plan::resolve_layout(&[0, 1], &GpuWish::On, &inventory).unwrap();
    let plan = plan::plan(&inventory, &wish, &policy).unwrap();
    let changes = AtomicUsize::new(0);
    let died = machine.process_while(
        move |_, event| {
            let is_second = event == Event::Change && changes.fetch_add(1, SeqCst) == 1;
            assert!(!is_second, "killed before the second change");
        },
        |host| catch_unwind(AssertUnwindSafe(|| host.apply(&plan, &Intent::apply("x")))),
    );
    assert!(died.0.is_err());
    let pending = |state: &host::GpuState| state.mode == Mode::PendingOn;
    let states = machine.states();
    assert_eq!(states.iter().filter(|state| pending(state)).count(), 1);

    // Somebody resets the one that is pending: no state that the plan explains.
    let at = states.iter().position(pending).unwrap();
    let simulated = nvmlsim::Simulated::new(machine.world.clone());
    gpu::Reset::reset(&simulated, &[inventory.gpus[at].uuid.clone()]).unwrap();
    let recovered = machine.run(|host| host.recover(Toward::New));
    assert_eq!(recovered.unwrap().unwrap().ending, Ending::Done);
    let mut texts = texts(&machine);
    texts.sort();
    assert_eq!(texts, ["MIG on", "MIG pending on"]);
}

#[test]
fn a_gpu_that_is_lost_in_the_middle_leaves_the_journal_open_until_it_is_back() {
    let machine = Machine::new("1xA100-40GB");
    apply(&machine, &["3g.20gb"]);
    let old = machine.states();
    let plan = plan_of(&machine, &["1g.5gb"]);
    let world = machine.world.clone();
    let lose = once(move || world.change(|world| world.gpus[0].lost = true).unwrap());
    let (outcome, _) = machine.process_while(lose, |host| host.apply(&plan, &Intent::apply("x")));
    let ending = outcome.unwrap().ending;
    assert_eq!(ending.code(), Some(Code::Stuck), "{ending:?}");
    assert!(open_change(&*machine.disk).unwrap().is_some());
    let recovered = machine.run(|host| host.recover(Toward::Old));
    let Ending::Stuck { then, .. } = recovered.unwrap().unwrap().ending else {
        panic!("a lost GPU cannot be put back");
    };
    assert_eq!(then.code, Code::GpuLost);
    assert!(open_change(&*machine.disk).unwrap().is_some());

    nvmlsim::verbs::reboot(&machine.world).unwrap();
    machine
        .run(|host| host.recover(Toward::Old))
        .unwrap()
        .unwrap();
    assert_eq!(machine.states(), old);
}

#[test]
fn a_mode_that_stays_pending_is_told_as_such_and_taken_back() {
    let machine = Machine::new("1xH100-80GB-SXM");
    let plan = plan_of(&machine, &["7g.80gb"]);
    assert!(matches!(
        plan.gpus[0].steps[0].action,
        Action::SetMode { on: true }
    ));
    let world = machine.world.clone();
    let gpu = world.world().unwrap().gpus[0].uuid.clone();
    let guard = Mutex::new(None);
    let comes = once(move || *guard.lock().unwrap() = Some(world.hold(gpu.as_str()).unwrap()));
    let outcome = machine
        .process_while(comes, |host| host.apply(&plan, &Intent::apply("x")))
        .0
        .unwrap();
    let Ending::PutBack { cause } = outcome.ending else {
        panic!("{outcome:?}");
    };
    assert_eq!(cause.code, Code::ResetNeeded, "{cause}");
    assert_eq!(texts(&machine), ["MIG off"]);
}
