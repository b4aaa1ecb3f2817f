// SPDX-License-Identifier: Apache-2.0
//! Whole changes as a person meets them: the release binary on files of simulated worlds.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::figure::{Budget, Figure, median};

/// The machine of every case, and what each call that changes something costs.
const SPEC: &str = "8xH100-80GB-SXM";
const LATENCY: &str = "50ms";

/// The world's file, in a folder of its own for each run.
const WORLD: &str = "world.json";

/// A change from one layout to another.
struct Case {
    /// What it is called.
    name: &'static str,
    /// Layouts that are applied one after the other before anything is measured.
    before: &'static [&'static [&'static str]],
    /// The change.
    change: &'static [&'static str],
    /// How often.
    runs: usize,
    /// What is measured, held against what.
    figures: &'static [(What, Budget, &'static str)],
}

/// What can be measured of a change.
#[derive(Clone, Copy)]
enum What {
    Milliseconds,
    MutatingCalls,
    Created,
    Destroyed,
    Untouched,
}

const CASES: &[Case] = &[
    Case {
        name: "8 GPUs x 7 slices from empty, 50 ms a mutating call",
        before: &[&["--layout", "empty"]],
        change: &["--layout", "7x1g.10gb"],
        runs: 5,
        figures: &[
            (What::Milliseconds, Budget::AtMost(1000.0), "8460 ms"),
            (What::MutatingCalls, Budget::AtMost(112.0), "168 calls"),
        ],
    },
    Case {
        name: "no change",
        before: &[&["--layout", "7x1g.10gb"]],
        change: &["--layout", "7x1g.10gb"],
        runs: 21,
        figures: &[
            (What::Milliseconds, Budget::AtMost(10.0), "650-890 ms"),
            (What::MutatingCalls, Budget::Exactly(0.0), ""),
        ],
    },
    Case {
        name: "layout that does not fit",
        before: &[&["--layout", "7x1g.10gb"]],
        change: &["--layout", "2x4g.40gb"],
        runs: 5,
        figures: &[(What::MutatingCalls, Budget::Exactly(0.0), "14732 calls")],
    },
    Case {
        name: "MIG off on GPU 0 of 8 full ones",
        before: &[&["--layout", "7x1g.10gb"]],
        change: &["--gpu", "0", "--layout", "off"],
        runs: 1,
        figures: &[
            (What::Destroyed, Budget::Exactly(7.0), "56 slices"),
            (What::Untouched, Budget::Exactly(49.0), "0 slices"),
        ],
    },
    Case {
        name: "one more 1g where it fits",
        before: &[&["--layout", "3g.40gb,1x1g.10gb"]],
        change: &["--gpu", "0", "--layout", "3g.40gb,2x1g.10gb"],
        runs: 1,
        figures: &[
            (What::Created, Budget::Exactly(1.0), ""),
            (What::Destroyed, Budget::Exactly(0.0), ""),
            (What::MutatingCalls, Budget::Exactly(2.0), ""),
        ],
    },
];

/// What came of a change.
struct Outcome {
    time: Duration,
    mutating_calls: u64,
    before: BTreeSet<String>,
    after: BTreeSet<String>,
}

/// A folder that is gone afterwards.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.0);
    }
}

/// The figures of every case, and the size of the binary.
///
/// # Errors
/// If the binary cannot be run, fails where it must not, or prints something else than expected.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let binary = binary()?;
    let folder = std::env::temp_dir().join(format!("slicewright-bench-{}", std::process::id()));
    let folder = Folder(folder);
    let mut figures = Vec::new();
    for (number, case) in CASES.iter().enumerate() {
        let outcome = case.run(&binary, &folder.0.join(number.to_string()))?;
        figures.extend(
            case.figures
                .iter()
                .map(|figure| case.figure(&outcome, figure)),
        );
    }
    figures.push(Figure {
        name: "size of the binary".to_owned(),
        budget: Budget::AtMost(15.0),
        measured: fs::metadata(&binary)?.len() as f64 / f64::from(1 << 20),
        unit: "MiB",
        runs: 1,
        original: "",
    });
    Ok(figures)
}

/// The release binary: cargo puts this program into a folder beside it.
pub fn binary() -> Result<PathBuf, Box<dyn Error>> {
    let own = std::env::current_exe()?;
    let folder = own
        .parent()
        .and_then(Path::parent)
        .ok_or("this program is nowhere")?;
    Ok(folder.join("slicewright"))
}

impl Case {
    fn run(&self, binary: &Path, folder: &Path) -> Result<Outcome, Box<dyn Error>> {
        let start = folder.join("start");
        fs::create_dir_all(&start)?;
        let sim = ["sim", "create", SPEC, WORLD, "--latency", LATENCY];
        succeed(slicewright(binary, &start, &sim)?)?;
        for layout in self.before {
            succeed(apply(binary, &start, layout)?)?;
        }
        let before = slices(binary, &start)?;
        let mut times = Vec::new();
        let mut last = None;
        for run in 0..self.runs {
            let copied = folder.join(run.to_string());
            copy(&start, &copied)?;
            let begun = Instant::now();
            let output = apply(binary, &copied, self.change)?;
            times.push(begun.elapsed());
            last = Some((output, copied));
        }
        let (output, copied) = last.ok_or("a case without runs")?;
        let answer: Value = serde_json::from_slice(&output.stdout)?;
        // A refusal counts no calls: that there was none shows in the world, which keeps its state.
        let untouched = || fs::read(start.join(WORLD)).ok() == fs::read(copied.join(WORLD)).ok();
        let mutating = answer["calls"]["mutating"].as_u64();
        let mutating = mutating.or_else(|| untouched().then_some(0));
        Ok(Outcome {
            time: median(times),
            mutating_calls: mutating.ok_or("the answer does not count calls")?,
            before,
            after: slices(binary, &copied)?,
        })
    }

    fn figure(&self, outcome: &Outcome, figure: &(What, Budget, &'static str)) -> Figure {
        let (what, budget, original) = *figure;
        let Outcome { before, after, .. } = outcome;
        let (measured, name, unit) = match what {
            What::Milliseconds => (outcome.time.as_secs_f64() * 1e3, "whole process", "ms"),
            What::MutatingCalls => (outcome.mutating_calls as f64, "mutating", "calls"),
            What::Created => (after.difference(before).count() as f64, "created", "slices"),
            What::Destroyed => (
                before.difference(after).count() as f64,
                "destroyed",
                "slices",
            ),
            What::Untouched => (
                after.intersection(before).count() as f64,
                "untouched",
                "slices",
            ),
        };
        Figure {
            name: format!("{}: {name}", self.name),
            budget,
            measured,
            unit,
            runs: self.runs,
            original,
        }
    }
}

fn slicewright(binary: &Path, folder: &Path, arguments: &[&str]) -> std::io::Result<Output> {
    Command::new(binary)
        .args(arguments)
        .current_dir(folder)
        .output()
}

fn apply(binary: &Path, folder: &Path, layout: &[&str]) -> std::io::Result<Output> {
    let arguments = ["host", "apply", "--sim", WORLD, "-o", "json"];
    slicewright(binary, folder, &[&arguments, layout].concat())
}

/// The UUIDs of all slices.
fn slices(binary: &Path, folder: &Path) -> Result<BTreeSet<String>, Box<dyn Error>> {
    let listing = ["host", "list", "--sim", WORLD, "-o", "nvidia-smi"];
    let listing = succeed(slicewright(binary, folder, &listing)?)?;
    let slices = listing
        .lines()
        .filter(|line| line.trim_start().starts_with("MIG "));
    Ok(slices
        .map(|line| line.trim().to_owned())
        .filter_map(|line| Some(line.split_once("UUID")?.1.to_owned()))
        .collect())
}

fn succeed(output: Output) -> Result<String, Box<dyn Error>> {
    if output.status.success() {
        return Ok(String::from_utf8(output.stdout)?);
    }
    Err(String::from_utf8_lossy(&output.stderr).into())
}

/// Copies a folder with all in it.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        match entry.file_type()?.is_dir() {
            true => copy(&entry.path(), &target)?,
            false => _ = fs::copy(entry.path(), target)?,
        }
    }
    Ok(())
}
