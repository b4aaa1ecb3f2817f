// SPDX-License-Identifier: Apache-2.0
//! The tutorial: every kubectl line that people are taught, as they type it.

use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, write_file};

/// The lines, with the checks between them.
const SCRIPT: &str = include_str!("tutorial.sh");
/// How many of them there are.
const LINES: usize = 111;
/// The longest that it may take, in seconds; it takes one to two minutes.
const LONGEST: u32 = 400;

/// Runs the script and says how many kubectl lines ran.
pub fn as_typed(cluster: &Cluster) -> Outcome {
    let scratch = cluster.folder().join("tutorial");
    let script = scratch.join("tutorial.sh");
    let count = scratch.join("count");
    write_file(&script, SCRIPT)?;
    write_file(&count, "")?;
    let run = cluster.script(
        LONGEST,
        &script,
        &[("COUNT", &count), ("SCRATCH", &scratch)],
    );
    let ran = std::fs::read_to_string(&count).unwrap_or_default();
    let ran = ran.lines().count();
    println!("tutorial: {ran} kubectl lines ran");
    run.map_err(Failure::from)?;
    check(ran == LINES, || {
        format!("{ran} kubectl lines ran, not {LINES}")
    })
}
