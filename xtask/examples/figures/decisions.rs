// SPDX-License-Identifier: Apache-2.0
//! Decisions, measured in this process: the slowest over every board and many wishes.

use std::collections::BTreeMap;
use std::error::Error;
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
///
/// # Errors
/// If a decision is wrong.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
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
    Ok(vec![
        placements.figure("placement decision", 100.0),
        proofs.figure("proof that nothing fits, with what would", 1000.0),
        refusal()?,
    ])
}

/// From what was read to the refusal of a layout that does not fit, on 8 full GPUs.
fn refusal() -> Result<Figure, Box<dyn Error>> {
    let board = catalogue::by_key("H100-80GB-SXM").ok_or("the H100 is not in the catalogue")?;
    let (small, large): (ProfileName, ProfileName) = ("1g.10gb".parse()?, "4g.40gb".parse()?);
    let full = |index| {
        let mut gpu = gpu(board.clone(), index, Mode::On);
        (0..7).for_each(|start| put(&mut gpu, &small, start, &[(small.clone(), 0)]));
        gpu
    };
    let inventory = machine((0..8).map(full).collect());
    let two_large = GpuWish::Slices(BTreeMap::from([(large, 2)]));
    let wish = Wish {
        gpus: (0..8).map(|index| (index, two_large.clone())).collect(),
        warnings: Vec::new(),
    };
    let mut times = Vec::new();
    for _ in 0..REFUSALS {
        let begun = Instant::now();
        let answer = black_box(plan::plan(black_box(&inventory), &wish, &Policy::default()));
        times.push(begun.elapsed());
        if answer.is_ok() {
            return Err("a layout that does not fit was planned".into());
        }
    }
    Ok(Figure {
        name: "layout that does not fit: refused after reading".to_owned(),
        budget: Budget::AtMost(1000.0),
        measured: median(times).as_secs_f64() * 1e6,
        unit: "us",
        runs: REFUSALS,
        original: "",
    })
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
