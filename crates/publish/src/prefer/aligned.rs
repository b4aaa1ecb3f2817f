// SPDX-License-Identifier: Apache-2.0
//! Whole GPUs: the set with the best links.
//!
//! GPUs that are connected alike are interchangeable, so the search goes over how many to take of
//! each such class, not over sets. That is exact: 16 GPUs of which no two are alike have 65,536
//! sets at most.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::links::Links;
use crate::resource::Device;

/// Most steps of one search. No machine of 16 GPUs takes so many; on larger ones of which no two
/// GPUs are alike, the best set found by then is taken.
const MOST_STEPS: u32 = 200_000;

/// GPUs that are interchangeable.
struct Class {
    /// Places in the list of all, required ones first.
    members: Vec<usize>,
    required: usize,
    numa: Option<u32>,
    /// Sum of one member's scores with all others.
    degree: u32,
}

/// What makes one choice better than another, the most important first.
type Rank = (u32, Reverse<usize>, Reverse<u32>);

struct Search<'a> {
    scores: &'a [Vec<u32>],
    classes: &'a [Class],
    size: usize,
    steps: u32,
    best: Option<(Rank, Vec<usize>)>,
}

/// The best `size` of the devices that contain the required ones; none if that cannot be.
pub(super) fn choose<'a>(
    links: &Links,
    required: &[&'a Device],
    free: &[&'a Device],
    size: usize,
) -> Vec<&'a Device> {
    let all: Vec<&Device> = required.iter().chain(free).copied().collect();
    if required.len() > size || all.len() < size {
        return Vec::new();
    }
    let row = |one: &&Device| {
        let score = |other: &&Device| match one.hardware.gpu == other.hardware.gpu {
            true => 0,
            false => links.score(&one.hardware.gpu, &other.hardware.gpu),
        };
        all.iter().map(score).collect()
    };
    let scores: Vec<Vec<u32>> = all.iter().map(row).collect();
    let classes = classes(&all, required.len(), &scores);
    let mut search = Search {
        scores: &scores,
        classes: &classes,
        size,
        steps: 0,
        best: None,
    };
    search.descend(&mut vec![0; classes.len()], 0, 0, 0);
    let counts = search.best.map(|(_, counts)| counts).unwrap_or_default();
    let chosen = classes.iter().zip(counts);
    let mut places: Vec<usize> = chosen
        .flat_map(|(class, count)| class.members.iter().copied().take(count))
        .collect();
    places.sort_unstable();
    places.into_iter().map(|place| all[place]).collect()
}

fn classes(all: &[&Device], required: usize, scores: &[Vec<u32>]) -> Vec<Class> {
    let alike = |one: usize, other: usize| {
        all[one].hardware.numa_node == all[other].hardware.numa_node
            && (0..all.len())
                .filter(|place| ![one, other].contains(place))
                .all(|place| scores[one][place] == scores[other][place])
    };
    let mut classes: Vec<Class> = Vec::new();
    for place in 0..all.len() {
        let found = classes
            .iter_mut()
            .find(|class| alike(class.members[0], place));
        let is_required = usize::from(place < required);
        match found {
            Some(class) => {
                class.members.push(place);
                class.required += is_required;
            }
            None => classes.push(Class {
                members: vec![place],
                required: is_required,
                numa: all[place].hardware.numa_node,
                degree: scores[place].iter().sum(),
            }),
        }
    }
    classes.sort_by_key(|class| all[class.members[0]].hardware.gpu_index);
    classes
}

impl Search<'_> {
    /// Tries every count of the class `at` and of those behind it. `taken` are in `counts` already,
    /// and score `score` among themselves.
    fn descend(&mut self, counts: &mut Vec<usize>, at: usize, taken: usize, score: u32) {
        self.steps += 1;
        if self.best.is_some() && self.steps > MOST_STEPS {
            return;
        }
        let Some(class) = self.classes.get(at) else {
            return self.judge(counts, score);
        };
        let behind = &self.classes[at + 1..];
        let room: usize = behind.iter().map(|class| class.members.len()).sum();
        let owed: usize = behind.iter().map(|class| class.required).sum();
        let missing = self.size - taken;
        let most = class.members.len().min(missing.saturating_sub(owed));
        let least = class.required.max(missing.saturating_sub(room));
        for count in (least..=most).rev() {
            counts[at] = count;
            let gain = self.gain(counts, at);
            self.descend(counts, at + 1, taken + count, score + gain);
        }
        counts[at] = 0;
    }

    /// What the members taken of one class score among themselves and with those before.
    fn gain(&self, counts: &[usize], at: usize) -> u32 {
        let members = &self.classes[at].members;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let count = number(counts[at]);
        let inside = match members.as_slice() {
            [one, other, ..] => self.scores[*one][*other] * (count * count.saturating_sub(1) / 2),
            _ => 0,
        };
        let with = |before: usize| {
            let score = self.scores[members[0]][self.classes[before].members[0]];
            score * count * number(counts[before])
        };
        inside + (0..at).map(with).sum::<u32>()
    }

    fn judge(&mut self, counts: &[usize], score: u32) {
        let taken = || {
            self.classes
                .iter()
                .zip(counts)
                .filter(|(_, count)| **count > 0)
        };
        let nodes: BTreeSet<Option<u32>> = taken().map(|(class, _)| class.numa).collect();
        let degree = |(class, count): (&Class, &usize)| {
            class.degree * u32::try_from(*count).unwrap_or(u32::MAX)
        };
        let rank = (
            score,
            Reverse(nodes.len()),
            Reverse(taken().map(degree).sum()),
        );
        if self.best.as_ref().is_none_or(|(best, _)| rank > *best) {
            self.best = Some((rank, counts.to_vec()));
        }
    }
}
