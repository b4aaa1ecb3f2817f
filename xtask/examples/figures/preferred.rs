// SPDX-License-Identifier: Apache-2.0
//! Which of 16 GPUs a container had best get, measured in this process.

use std::error::Error;
use std::hint::black_box;
use std::time::{Duration, Instant};

use geometry::catalogue;
use plan::testing::{gpu, machine};
use publish::{Ancestor, Link, Links, Node, PreferenceRequest, preferred, resources};
use units::Mode;

use crate::figure::{Budget, Figure, median};

const GPUS: u32 = 16;
const RUNS: usize = 101;
/// What the original takes for GPUs in groups.
pub const ORIGINAL: &str = "6 s";

/// How many GPUs a container wants.
pub const WANTED: usize = 4;

/// GPUs in four groups behind PCIe switches, as the original was measured with: how two of them are
/// connected.
pub fn in_groups(one: u32, other: u32) -> (Ancestor, u32) {
    match one / 4 == other / 4 {
        true => (Ancestor::MultipleSwitches, 0),
        false => (Ancestor::System, 0),
    }
}

/// In four groups, and such that no two are connected alike.
///
/// # Errors
/// If a choice is not of four.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let unlike = |one: u32, other: u32| (Ancestor::System, (one * 7 + other * 13) % 17);
    Ok(vec![
        measure_one("in four groups", ORIGINAL, in_groups)?,
        measure_one("no two alike", "", unlike)?,
    ])
}

/// A node of 16 GPUs with its resource, and how they are connected.
///
/// # Errors
/// If the board is not in the catalogue.
pub fn node(
    connected: impl Fn(u32, u32) -> (Ancestor, u32),
) -> Result<(Node, Links), Box<dyn Error>> {
    let board = catalogue::by_key("A100-80GB").ok_or("the A100 is not in the catalogue")?;
    let gpus: Vec<_> = (0..GPUS)
        .map(|index| gpu(board.clone(), index, Mode::Off))
        .collect();
    let mut links = Vec::new();
    for (place, one) in gpus.iter().enumerate() {
        for other in &gpus[place + 1..] {
            let (ancestor, nvlinks) = connected(one.index, other.index);
            links.push(Link {
                one: one.uuid.clone(),
                other: other.uuid.clone(),
                ancestor,
                nvlinks,
            });
        }
    }
    let node = Node {
        inventory: Some(machine(gpus)),
        ..Node::default()
    };
    Ok((node, Links::new(links)))
}

fn measure_one(
    how: &str,
    original: &'static str,
    connected: impl Fn(u32, u32) -> (Ancestor, u32),
) -> Result<Figure, Box<dyn Error>> {
    let (node, links) = node(connected)?;
    let (resources, _) = resources(&node);
    let resource = resources.first().ok_or("no resource")?;
    let available: Vec<String> = resource.devices.iter().map(|it| it.id.clone()).collect();
    let request = PreferenceRequest {
        available: &available,
        required: &[],
        size: WANTED,
    };
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let policy = node.config.flags.plugin.shared_devices_allocation_policy;
        let chosen = preferred(black_box(resource), &links, policy, black_box(&request))?;
        times.push(begun.elapsed());
        if chosen.len() != request.size {
            return Err(format!("{chosen:?} are not {WANTED}").into());
        }
    }
    Ok(figure(how, original, times))
}

/// The figure of these times.
pub fn figure(how: &str, original: &'static str, times: Vec<Duration>) -> Figure {
    Figure {
        name: format!("preferred allocation, {WANTED} of {GPUS} GPUs, {how}"),
        budget: Budget::AtMost(1000.0),
        runs: times.len(),
        measured: median(times).as_secs_f64() * 1e6,
        unit: "us",
        original,
    }
}
