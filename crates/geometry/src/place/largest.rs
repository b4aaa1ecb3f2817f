// SPDX-License-Identifier: Apache-2.0
//! The largest parts of what was wanted that do fit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use units::ProfileName;

use super::inside::{self, Counts};
use super::need::Need;
use crate::board::Board;
use crate::rules::Usage;

/// So many layouts are told at most.
const MOST: usize = 5;

/// How many GPU instances of each need.
type Instances = Vec<u8>;

/// The parts of `needs` to which nothing wanted can be added, most slices first, then those with
/// the largest slices; at most five.
pub(super) fn layouts(board: &Board, needs: &[Need]) -> Vec<BTreeMap<ProfileName, u32>> {
    let fitting = fitting(board, needs);
    let grows = |counts: &Instances| {
        (0..counts.len()).any(|at| {
            let mut more = counts.clone();
            more[at] += 1;
            fitting.contains(&more)
        })
    };
    let mut candidates: BTreeSet<Vec<Counts>> = BTreeSet::new();
    for counts in fitting.iter().filter(|counts| !grows(counts)) {
        let mut partial: Vec<Vec<Counts>> = vec![Vec::new()];
        for (need, instances) in needs.iter().zip(counts) {
            let fillings = fillings(need, *instances);
            let longer = |part: &Vec<Counts>| {
                let with = |filling: &Counts| [part, std::slice::from_ref(filling)].concat();
                fillings.iter().map(with).collect::<Vec<_>>()
            };
            partial = partial.iter().flat_map(longer).collect();
        }
        candidates.extend(partial);
    }
    let mut candidates: Vec<Vec<Counts>> = candidates.into_iter().collect();
    candidates.sort_by_cached_key(|candidate| Reverse(rank(needs, candidate)));
    let mut largest: Vec<Vec<Counts>> = Vec::new();
    for candidate in candidates {
        if largest.len() < MOST && !largest.iter().any(|larger| contains(larger, &candidate)) {
            largest.push(candidate);
        }
    }
    largest.iter().map(|layout| named(needs, layout)).collect()
}

/// Slices, then how many of each size from the largest on.
fn rank(needs: &[Need], candidate: &[Counts]) -> (u64, Vec<u64>) {
    let slices = candidate.iter().flatten().sum();
    let mut sizes = BTreeMap::new();
    for (need, counts) in needs.iter().zip(candidate) {
        for ((compute, _), count) in need.slices.iter().zip(counts) {
            *sizes
                .entry((Reverse(*compute), Reverse(&need.profile.name)))
                .or_insert(0) += count;
        }
    }
    (slices, sizes.into_values().collect())
}

fn contains(larger: &[Counts], smaller: &[Counts]) -> bool {
    let pairs = larger.iter().flatten().zip(smaller.iter().flatten());
    pairs.into_iter().all(|(larger, smaller)| larger >= smaller)
}

fn named(needs: &[Need], layout: &[Counts]) -> BTreeMap<ProfileName, u32> {
    let mut named = BTreeMap::new();
    for (need, counts) in needs.iter().zip(layout) {
        for ((compute, _), count) in need.slices.iter().zip(counts) {
            if let (Some(name), 1..) = (need.profile.name.with_compute(*compute), *count) {
                named.insert(name, *count as u32);
            }
        }
    }
    named
}

/// Every number of GPU instances of each need, none larger than wanted, that fits on an empty GPU.
/// Unit by unit: what can be done with the units below is extended by an instance that starts here.
fn fitting(board: &Board, needs: &[Need]) -> BTreeSet<Instances> {
    let most: Instances = needs
        .iter()
        .map(|need| need.count().min(u64::from(need.profile.max_instances)) as u8)
        .collect();
    let budget = Usage::budget(board);
    let in_budget = |counts: &Instances| {
        let used = needs
            .iter()
            .zip(counts)
            .fold(Usage::default(), |used, (need, count)| {
                used.plus(need.profile, u16::from(*count))
            });
        used.over(budget).is_none()
    };
    let units = usize::from(board.placement_units);
    let mut reached = vec![BTreeSet::new(); units + 1];
    reached[0].insert(vec![0; needs.len()]);
    for unit in 0..units {
        let here = std::mem::take(&mut reached[unit]);
        for (at, need) in needs.iter().enumerate() {
            let starts = need.profile.placements.iter();
            for place in starts.filter(|place| usize::from(place.start) == unit) {
                let end = unit + usize::from(place.size);
                if end == unit || end > units {
                    continue;
                }
                for counts in here.iter().filter(|counts| counts[at] < most[at]) {
                    let mut counts = counts.clone();
                    counts[at] += 1;
                    if in_budget(&counts) {
                        reached[end].insert(counts);
                    }
                }
            }
        }
        reached[unit + 1].extend(here);
    }
    reached.pop().unwrap_or_default()
}

/// The most that fits of a need's slices into so many new GPU instances: every choice to which
/// none can be added.
fn fillings(need: &Need, instances: u8) -> Vec<Counts> {
    let sizes: Vec<u8> = need.slices.iter().map(|(size, _)| *size).collect();
    let wanted: Counts = need.slices.iter().map(|(_, count)| *count).collect();
    let mut sums: BTreeSet<Counts> = BTreeSet::from([vec![0; sizes.len()]]);
    for _ in 0..instances {
        let mut more = BTreeSet::new();
        for sum in &sums {
            let left: Counts = wanted.iter().zip(sum).map(|(all, sum)| all - sum).collect();
            for part in inside::parts(&sizes, &left, need.profile.slices) {
                if inside::fit(need.profile, None, &sizes, &part).is_some() {
                    more.insert(sum.iter().zip(&part).map(|(a, b)| a + b).collect());
                }
            }
        }
        sums.extend(more);
    }
    let grows = |sum: &Counts| {
        (0..sum.len()).any(|at| {
            let mut more = sum.clone();
            more[at] += 1;
            sums.contains(&more)
        })
    };
    sums.iter().filter(|sum| !grows(sum)).cloned().collect()
}
