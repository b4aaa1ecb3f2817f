// SPDX-License-Identifier: Apache-2.0
//! The process dies at every point of a change, and at every point of its recovery; or one call
//! after the other fails. Always the old layout or the new one, what both contain never touched,
//! nothing left over, the journal closed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::io::{self, Write};

use common::{Dice, Event, Fault, Machine, Place, Shape, scatter};
use geometry::inventory::Inventory;
use host::{Ending, GpuState, Intent, Toward, open_change};
use plan::{GpuWish, Plan, Policy, Wish};
use units::Mode;

/// A change of a machine from one layout to another.
struct Case {
    name: String,
    machine: Machine,
    plan: Plan,
    old: Shape,
    new: Shape,
    /// Instances that both layouts contain, with their serial numbers.
    kept: BTreeMap<Place, u32>,
}

fn wish(states: &[GpuState]) -> Wish {
    let gpus = states.iter().zip(0..).map(|(state, index)| {
        let wish = match state.mode {
            Mode::On => GpuWish::Exact(state.layout.clone()),
            _ => GpuWish::Off,
        };
        (index, wish)
    });
    Wish {
        gpus: gpus.collect(),
        warnings: Vec::new(),
    }
}

impl Case {
    fn new(spec: &str, seed: u64) -> Self {
        let mut dice = Dice(seed);
        let machine = Machine::new(spec);
        let other = machine.twin();
        scatter(&machine, &mut dice);
        scatter(&other, &mut dice);
        let inventory: Inventory = machine.run(|host| host.inventory()).unwrap();
        let plan = plan::plan(&inventory, &wish(&other.states()), &Policy::default()).unwrap();
        let (old, new) = (machine.shape(), other.shape());
        let kept = old.shared(&new);
        Self {
            name: format!("{spec} seed {seed}"),
            machine,
            plan,
            old,
            new,
            kept,
        }
    }

    fn intent(&self) -> Intent {
        Intent::apply(&self.name)
    }

    /// Old or new on the whole machine, kept instances untouched, the world sound, no journal.
    fn check(&self, machine: &Machine, how: &str) -> Whole {
        let shape = machine.shape();
        for (place, serial) in &self.kept {
            assert_eq!(
                shape.serials.get(place),
                Some(serial),
                "{}: {how}: {place:?}",
                self.name
            );
        }
        machine.world.world().unwrap().check().unwrap();
        let open = open_change(&*machine.disk).unwrap();
        assert_eq!(open, None, "{}: {how}: journal is open", self.name);
        match (shape.is_like(&self.old), shape.is_like(&self.new)) {
            (true, _) => Whole::Old,
            (_, true) => Whole::New,
            _ => panic!(
                "{}: {how}: between the layouts: {shape:?}\nold {:?}\nnew {:?}",
                self.name, self.old, self.new
            ),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Whole {
    Old,
    New,
}

/// Every death at one event. A read has no effect: dying before it or after it is the same.
fn deaths(events: &[Event]) -> Vec<Fault> {
    let deaths = events.iter().enumerate().flat_map(|(number, event)| {
        let mut deaths = vec![Fault::KillBefore(number)];
        if *event != Event::Read {
            deaths.push(Fault::KillAfter(number));
        }
        if *event == Event::Write {
            deaths.push(Fault::Tear(number));
        }
        deaths
    });
    deaths.collect()
}

/// Every failure of one event, without and with its effect.
fn failures(events: &[Event]) -> Vec<Fault> {
    let failures = events.iter().enumerate().flat_map(|(number, event)| {
        let mut failures = vec![Fault::FailBefore(number)];
        if *event != Event::Read {
            failures.push(Fault::FailAfter(number));
        }
        failures
    });
    failures.collect()
}

impl Case {
    /// The events of the change if nothing happens to it.
    fn undisturbed(&self) -> Vec<Event> {
        let machine = self.machine.twin();
        let (outcome, switch) = machine.process(&[], |host| host.apply(&self.plan, &self.intent()));
        let ending = outcome.unwrap().ending;
        let nothing = self.plan.is_empty();
        assert_eq!(
            ending,
            if nothing {
                Ending::Nothing
            } else {
                Ending::Done
            }
        );
        assert!(machine.shape().is_like(&self.new), "{}", self.name);
        self.check(&machine, "undisturbed");
        switch.events()
    }

    /// Applies with faults on a machine of its own.
    fn disturbed(&self, faults: &[Fault]) -> Machine {
        let machine = self.machine.twin();
        let (outcome, switch) =
            machine.process(faults, |host| host.apply(&self.plan, &self.intent()));
        if switch.is_dead() {
            return machine;
        }
        let how = format!("{faults:?}: {outcome:?}");
        match outcome.map(|outcome| outcome.ending) {
            // What could not even begin has touched nothing; a second failure may leave a journal.
            Err(_) if faults.len() > 1 => assert_eq!(machine.shape(), self.old, "{how}"),
            Err(_) => assert_eq!(self.check(&machine, &how), Whole::Old),
            Ok(Ending::Nothing | Ending::Done) => {
                assert_eq!(self.check(&machine, &how), Whole::New);
            }
            Ok(Ending::PutBack { .. }) => assert_eq!(self.check(&machine, &how), Whole::Old),
            // Only a second failure can do that; then the journal is open.
            Ok(Ending::Stuck { .. }) => assert!(faults.len() > 1, "{}: {how}", self.name),
        }
        machine
    }

    /// Recovers undisturbed and checks that it ends where it should. Returns the events.
    fn recovered(&self, machine: &Machine, toward: Toward, how: &str) -> Vec<Event> {
        let undoing = open_change(&*machine.disk).unwrap();
        let undoing = undoing.is_some_and(|open| open.undoing().is_some());
        let (outcome, switch) = machine.process(&[], |host| host.recover(toward));
        let how = format!("{how}, then {toward:?}: {outcome:?}");
        let whole = self.check(machine, &how);
        if outcome.unwrap().is_some() {
            let wanted = match toward {
                Toward::New if !undoing => Whole::New,
                _ => Whole::Old,
            };
            assert!(
                whole == wanted || self.old.is_like(&self.new),
                "{}: {how}",
                self.name
            );
        }
        switch.events()
    }
}

/// Boards, and how many pairs of layouts on each.
const BOARDS: [(&str, usize); 5] = [
    ("1xA100-40GB", 5),
    ("1xH100-80GB-SXM", 5),
    ("1xA30", 5),
    ("1xRTX-PRO-6000-SE", 5),
    ("2xH100-80GB-SXM", 2),
];

/// Of the points of a second fault, one in so many is taken for each first fault.
const SPREAD: usize = 11;

const TOWARD: [Toward; 2] = [Toward::New, Toward::Old];

/// Random pairs with so many steps at least, the same in each run.
fn pairs(spec: &'static str, steps: usize) -> impl Iterator<Item = Case> {
    let cases = (1..).map(move |seed| Case::new(spec, seed));
    cases.filter(move |case| {
        let counts = case.plan.gpus.iter().map(|gpu| gpu.steps.len());
        counts.sum::<usize>() >= steps
    })
}

fn cases() -> impl Iterator<Item = Case> {
    BOARDS
        .into_iter()
        .flat_map(|(spec, count)| pairs(spec, 3).take(count))
}

/// Pairs for two faults each: only such whose events come in the same order in each run, and that
/// have something that stays.
fn cases_for_two() -> impl Iterator<Item = Case> {
    let boards = BOARDS.into_iter().filter(|(spec, _)| spec.starts_with('1'));
    boards.filter_map(|(spec, _)| pairs(spec, 6).find(|case| !case.kept.is_empty()))
}

/// Told whether or not the test passes: the number is part of the result.
fn tell(what: &str, count: usize) {
    let mut stderr = io::stderr();
    writeln!(stderr, "{what}: {count} cases").unwrap();
}

#[test]
fn killed_at_every_point_it_ends_in_the_old_or_the_new_layout() {
    let mut count = 0;
    for case in cases() {
        for death in deaths(&case.undisturbed()) {
            for toward in TOWARD {
                let machine = case.disturbed(&[death]);
                case.recovered(&machine, toward, &format!("{death:?}"));
                count += 1;
            }
        }
    }
    tell("killed at one point", count);
}

#[test]
fn killed_again_at_every_point_of_the_recovery() {
    let mut count = 0;
    for case in cases_for_two() {
        for (at, first) in deaths(&case.undisturbed()).into_iter().enumerate() {
            let toward = TOWARD[at % 2];
            let machine = case.disturbed(&[first]);
            let events = case.recovered(&machine.copy(), toward, &format!("{first:?}"));
            // Every point of the recovery, spread over the points of the change.
            for second in deaths(&events)
                .into_iter()
                .skip(at % SPREAD)
                .step_by(SPREAD)
            {
                let machine = machine.copy();
                let died = machine.process(&[second], |host| host.recover(toward)).1;
                assert!(died.is_dead());
                let how = format!("{first:?}, {toward:?} {second:?}");
                // The third process may want something else than the second.
                case.recovered(&machine, TOWARD[count % 2], &how);
                count += 1;
            }
        }
    }
    tell("killed in change and recovery", count);
}

#[test]
fn each_event_failing_once_is_put_back_or_done() {
    let mut count = 0;
    for case in cases() {
        for failure in failures(&case.undisturbed()) {
            case.disturbed(&[failure]);
            count += 1;
        }
    }
    tell("failing at one point", count);
}

#[test]
fn failing_again_on_the_way_back_is_put_back_or_left_to_recovery() {
    let mut count = 0;
    for case in cases_for_two() {
        let events = case.undisturbed();
        for (at, first) in failures(&events).into_iter().enumerate() {
            for second in (at % SPREAD..2 * events.len()).step_by(SPREAD) {
                let second = Fault::FailBefore(second);
                let machine = case.disturbed(&[first, second]);
                case.recovered(&machine, Toward::Old, &format!("{first:?}, {second:?}"));
                count += 1;
            }
        }
    }
    tell("failing at two points", count);
}
