// SPDX-License-Identifier: Apache-2.0
//! Decisions, measured in this process: the slowest over every board and many wishes.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use geometry::place::{Placed, Present, Wanted, place};
use geometry::{Board, catalogue};
use plan::testing::{gpu, machine, put};
use plan::{GpuWish, Policy, Wish};
use units::{Mode, ProfileName};

use crate::figure::{Budget, Figure, median};

/// Runs of each decision; the median counts.
const RUNS: usize = 5;

/// Runs of the refusal.
const REFUSALS: usize = 101;

/// What a board may be full of at most before a wish is certain not to fit.
const MOST_INSTANCES: u32 = 8;

/// The slowest decision of a kind, and on which board.
#[derive(Default)]
struct Slowest {
    time: Duration,
    board: String,
    decisions: usize,
}

impl Slowest {
    fn add(&mut self, time: Duration, board: &Board) {
        self.decisions += 1;
        if time >= self.time {
            self.time = time;
            self.board.clone_from(&board.key);
        }
    }

    fn figure(self, what: &str, budget: f64) -> Figure {
        Figure {
            name: format!(
                "{what} ({} decisions, slowest: {})",
                self.decisions, self.board
            ),
            budget: Budget::AtMost(budget),
            measured: self.time.as_secs_f64() * 1e6,
            unit: "us",
            runs: RUNS,
            original: "",
        }
    }
}

/// Placements that exist, and proofs that none does, on every board that can be planned: empty,
/// and full of its smallest profile with every second instance busy.
pub fn measure() -> Vec<Figure> {
    let (mut placements, mut proofs) = (Slowest::default(), Slowest::default());
    for board in catalogue::boards() {
        if board.unknown.is_some() || !board.has_mig() {
            continue;
        }
        for present in [Vec::new(), full(&board)] {
            for wanted in wishes(&board) {
                let decide = || place(black_box(&board), black_box(&present), black_box(&wanted));
                let time = |_| {
                    let begun = Instant::now();
                    _ = black_box(decide());
                    begun.elapsed()
                };
                let time = median((0..RUNS).map(time).collect());
                match decide() {
                    Ok(_) => placements.add(time, &board),
                    Err(_) => proofs.add(time, &board),
                }
            }
        }
    }
    vec![
        placements.figure("placement decision", 100.0),
        proofs.figure("proof that nothing fits, with what would", 1000.0),
        refusal(),
    ]
}

/// From what was read to the refusal of a layout that does not fit, on 8 full GPUs.
fn refusal() -> Figure {
    let mut gpus = Vec::new();
    let mut wish = Wish::default();
    for index in 0..8 {
        let board =
            catalogue::by_key("H100-80GB-SXM").unwrap_or_else(|| unreachable!("in the catalogue"));
        let profile = |slices| {
            board
                .profiles
                .iter()
                .find(|profile| profile.slices == slices)
                .map(|profile| profile.name.clone())
        };
        wish.gpus.insert(
            index,
            GpuWish::Slices(profile(4).map(|name| (name, 2)).into_iter().collect()),
        );
        let small = profile(1);
        let mut gpu = gpu(board, index, Mode::On);
        for (name, start) in small
            .iter()
            .flat_map(|name| (0..7).map(move |start| (name, start)))
        {
            put(&mut gpu, name, start, &[(name.clone(), 0)]);
        }
        gpus.push(gpu);
    }
    let inventory = machine(gpus);
    let refuse = |_| {
        let begun = Instant::now();
        let answer = black_box(plan::plan(black_box(&inventory), &wish, &Policy::default()));
        (begun.elapsed(), answer.is_err())
    };
    let answers: Vec<(Duration, bool)> = (0..REFUSALS).map(refuse).collect();
    let refused = answers.iter().filter(|(_, refused)| *refused).count();
    Figure {
        name: format!("layout that does not fit: refused after reading ({refused} of {REFUSALS})"),
        budget: Budget::AtMost(1000.0),
        measured: median(answers.into_iter().map(|(time, _)| time).collect()).as_secs_f64() * 1e6,
        unit: "us",
        runs: REFUSALS,
        original: "",
    }
}

/// Every mix of two profiles, and of the smallest with two others.
fn wishes(board: &Board) -> Vec<Wanted> {
    let names: Vec<&ProfileName> = board.profiles.iter().map(|profile| &profile.name).collect();
    let mut wishes = Vec::new();
    for (at, first) in names.iter().enumerate() {
        for second in &names[at..] {
            for (one, other) in (1..MOST_INSTANCES)
                .flat_map(|one| (0..MOST_INSTANCES - one).map(move |other| (one, other)))
            {
                let mut slices = BTreeMap::from([((*first).clone(), one)]);
                *slices.entry((*second).clone()).or_insert(0) += other;
                *slices.entry(names[0].clone()).or_insert(0) += 1;
                wishes.push(Wanted::Slices(slices));
            }
        }
    }
    wishes
}

/// The board full of its smallest profile, every second instance busy.
fn full(board: &Board) -> Vec<Present> {
    let smallest = &board.profiles[0];
    let wanted = Wanted::Slices(BTreeMap::from([(
        smallest.name.clone(),
        u32::from(smallest.max_instances),
    )]));
    let Placed { create, .. } = place(board, &[], &wanted).unwrap_or_default();
    let present = |(at, spec)| Present {
        spec,
        busy: vec![at % 2 == 0],
    };
    create.into_iter().enumerate().map(present).collect()
}
