// SPDX-License-Identifier: Apache-2.0
//! Real processes that are killed by a signal at random moments of a change, on a world and a state
//! folder in files. After each the next process finds the old layout or the new one.
//!
//! Without the test harness, since this program is its own victim: `sigkill child FOLDER TARGET`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::yield_now;
use std::time::{Duration, Instant};

use common::{Dice, Shape};
use host::{Host, Intent, OpenDriver, StateDir, SystemClock, Toward, open_change};
use nvmlsim::{Handle, Options, Simulated, World};
use plan::{GpuWish, Policy, Wish};

/// Both have the first GPU's 3g.40gb; the second GPU's mode needs a reset.
const LAYOUTS: [[&str; 2]; 2] = [
    ["1x3g.40gb 3x1g.10gb", "off"],
    ["1x3g.40gb 1x2g.20gb", "2x3g.20gb"],
];

/// When no further process is started, and how many there are at most.
const TIME: Duration = Duration::from_secs(15);
const ROUNDS: usize = 150;
/// Longer than any change takes, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn wish(target: usize) -> Wish {
    let mut wish = Wish::default();
    for (index, layout) in (0..).zip(LAYOUTS[target]) {
        let slices = layout.split(' ').filter_map(|part| part.split_once('x'));
        let slices = slices.map(|(n, name)| (name.parse().unwrap(), n.parse().unwrap()));
        let slices = GpuWish::Slices(slices.collect());
        let off = layout == "off";
        wish.gpus
            .insert(index, if off { GpuWish::Off } else { slices });
    }
    wish
}

/// Runs a process' work on the machine in the folder.
fn on_machine<R>(folder: &Path, work: impl FnOnce(&Host<'_>) -> R) -> R {
    let world = Handle::open(&folder.join("world")).unwrap();
    let functions = Arc::new(Simulated::new(world.clone()));
    let driver = OpenDriver::of_functions(functions, Box::new(Simulated::new(world))).unwrap();
    let state = StateDir::open(folder.join("state")).unwrap();
    work(&Host {
        driver: driver.driver(),
        reset: &driver,
        state: &state,
        clock: &SystemClock,
        boot_id: "1",
    })
}

fn change(host: &Host<'_>, target: usize) {
    let plan = plan::plan(
        &host.inventory().unwrap(),
        &wish(target),
        &Policy::default(),
    )
    .unwrap();
    host.apply(&plan, &Intent::apply(target.to_string()))
        .unwrap();
}

/// The shape of the machine in the folder.
fn shape(folder: &Path) -> Shape {
    Shape::of(&Handle::open(&folder.join("world")).unwrap())
}

fn child(folder: &Path, target: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["child", folder.to_str().unwrap(), &target.to_string()])
        .stdin(Stdio::null())
        .spawn()
        .unwrap()
}

/// Waits until the journal has so many lines or the child has ended, then so much longer, and
/// kills it. Whether it was still alive.
fn kill(mut child: Child, folder: &Path, lines: usize, longer: Duration) -> bool {
    let journal = folder.join("state/journal.jsonl");
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(started.elapsed() < PATIENCE, "the change does not end");
        let text = fs::read(&journal).unwrap_or_default();
        if text.iter().filter(|byte| **byte == b'\n').count() >= lines {
            break;
        }
        yield_now();
    }
    let seen = Instant::now();
    while seen.elapsed() < longer {
        yield_now();
    }
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(9), "{status}");
    !status.success()
}

/// How often what happened.
#[derive(Debug, Default)]
struct Counts {
    killed: usize,
    recovered: usize,
    old: usize,
    new: usize,
}

fn round(folder: &Path, dice: &mut Dice, shapes: &[Shape; 2], counts: &mut Counts) {
    let before = shape(folder);
    let from = shapes
        .iter()
        .position(|known| before.is_like(known))
        .unwrap();
    let target = 1 - from;
    let (lines, micros) = (dice.roll(18), dice.roll(6000));
    let longer = Duration::from_micros(micros as u64);
    counts.killed += usize::from(kill(child(folder, target), folder, lines, longer));
    let toward = [Toward::New, Toward::Old][dice.roll(2)];
    let (recovered, open) = on_machine(folder, |host| {
        let recovered = host.recover(toward).unwrap();
        (recovered, open_change(host.state.storage()).unwrap())
    });
    assert_eq!(open, None, "the journal is open");
    counts.recovered += usize::from(recovered.is_some());
    let after = shape(folder);
    let how = format!("killed at line {lines} + {longer:?}, {toward:?}: {recovered:?}");
    match shapes.iter().position(|known| after.is_like(known)) {
        Some(found) if found == target => counts.new += 1,
        Some(_) => counts.old += 1,
        None => panic!("between the layouts: {how}: {after:?}"),
    }
    for (place, serial) in before.shared(&shapes[target]) {
        assert_eq!(after.serials.get(&place), Some(&serial), "{how}: {place:?}");
    }
}

/// A folder that is removed at the end.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, word, folder, target] = arguments.as_slice()
        && word == "child"
    {
        return on_machine(Path::new(folder), |host| {
            change(host, target.parse().unwrap())
        });
    }
    let name = format!("slicewright-sigkill-{}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    let folder = &scratch.0;
    fs::create_dir_all(folder).unwrap();
    let options = Options {
        latency_ms: 2,
        ..Options::default()
    };
    let spec = "1xH100-80GB-SXM,1xA100-40GB".parse().unwrap();
    Handle::create(&folder.join("world"), &World::create(&spec, &options)).unwrap();
    let shapes = [0, 1].map(|target| {
        on_machine(folder, |host| change(host, target));
        shape(folder)
    });
    assert!(!shapes[0].shared(&shapes[1]).is_empty());

    let mut dice = Dice(1);
    let mut counts = Counts::default();
    let started = Instant::now();
    let mut rounds = 0;
    while rounds < ROUNDS && (rounds < 5 || started.elapsed() < TIME) {
        round(folder, &mut dice, &shapes, &mut counts);
        rounds += 1;
    }
    println!("killed by a signal at random moments: {rounds} cases, {counts:?}");
    assert!(counts.killed > 0 && counts.recovered > 0, "{counts:?}");
}
