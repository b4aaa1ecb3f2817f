// SPDX-License-Identifier: Apache-2.0
//! The search for the best placement: every one is looked at, from unit 0 upwards.
//!
//! GPU instances are intervals of units, so a walk over the units that at each one starts an
//! instance or leaves it free meets every legal layout once, in the order of lowest starts. A GPU
//! has at most 12 units and the wanted counts prune hard: the largest walk is some hundred leaves.

use std::cmp::Reverse;

use units::Placement;

use super::inside::{self, Inside};
use super::need::Need;
use super::{Kept, Placed, Present};
use crate::board::{Board, Profile};
use crate::layout::{ComputeSpec, InstanceSpec};
use crate::rules::Usage;

/// What makes a layout better, most important first: slices in use that stay, slices that stay,
/// GPU instances created, GPU instances in all, profiles that no longer fit anywhere, places that
/// are no longer free.
type Score = (
    u32,
    u32,
    Reverse<u32>,
    Reverse<u32>,
    Reverse<u32>,
    Reverse<u32>,
);

/// A GPU instance of the layout under way: of which need, where, and the present one if it stays.
#[derive(Clone, Copy)]
struct Chosen {
    need: usize,
    placement: Placement,
    present: Option<usize>,
}

/// One need, ready for the walk.
struct Goal<'b> {
    need: &'b Need<'b>,
    sizes: Vec<u8>,
    whole: bool,
    /// How many GPU instances, at least and at most.
    least: u64,
    most: u64,
    chosen: u64,
}

/// A place where an instance could start.
struct Start {
    need: usize,
    placement: Placement,
    present: Option<usize>,
}

/// What stays of a need (slices in use, slices at all) with these instances; `None` if its slices
/// do not fit into them.
struct Known {
    need: usize,
    instances: Vec<Option<usize>>,
    gain: Option<(u32, u32)>,
}

struct Search<'a> {
    present: &'a [Present],
    goals: Vec<Goal<'a>>,
    /// By unit.
    starts: Vec<Vec<Start>>,
    /// Masks of all places, by profile of the board.
    places: Vec<Vec<u64>>,
    budget: Usage,
    chosen: Vec<Chosen>,
    best: Option<(Score, Vec<Chosen>)>,
    /// Answers of [`Search::gain`] for needs with a choice inside.
    known: Vec<Known>,
}

/// The best placement of all needs; `None` if there is none.
pub(super) fn best(board: &Board, present: &[Present], needs: &[Need]) -> Option<Placed> {
    let goals: Option<Vec<Goal>> = needs.iter().map(|need| goal(need, present)).collect();
    let mut search = Search::new(board, present, goals?);
    search.walk(0, 0, Usage::default(), true);
    let (_, chosen) = search.best.take()?;
    search.placed(&chosen)
}

/// Bounds on the number of GPU instances; `None` if no number will do.
fn goal<'b>(need: &'b Need<'b>, present: &[Present]) -> Option<Goal<'b>> {
    let same = |p: &&Present| p.spec.driver_id == need.profile.driver_id;
    let whole = need.is_whole();
    // What is there is possible, whatever the table says.
    let limit = present.iter().filter(same).count() as u64;
    let limit = limit.max(u64::from(need.profile.max_instances));
    let least = need.least_instances();
    (least <= limit).then(|| Goal {
        need,
        sizes: need.slices.iter().map(|(size, _)| *size).collect(),
        whole,
        least,
        most: if whole {
            least
        } else {
            need.count().min(limit)
        },
        chosen: 0,
    })
}

impl<'a> Search<'a> {
    fn new(board: &'a Board, present: &'a [Present], goals: Vec<Goal<'a>>) -> Self {
        let masks = |profile: &Profile| profile.placements.iter().map(|p| p.mask()).collect();
        let there = present
            .iter()
            .filter_map(|p| board.profile(p.spec.driver_id));
        let there = there.fold(Usage::default(), |used, profile| used.plus(profile, 1));
        Self {
            present,
            starts: starts(present, &goals),
            places: board.profiles.iter().map(masks).collect(),
            // What is there is possible, whatever the table says.
            budget: Usage::budget(board).max(there),
            goals,
            chosen: Vec::new(),
            best: None,
            known: Vec::new(),
        }
    }

    /// Tries everything from `unit` on. `fresh`: an instance was added since the last look.
    fn walk(&mut self, unit: usize, occupied: u64, used: Usage, fresh: bool) {
        if fresh && self.goals.iter().all(|goal| goal.chosen >= goal.least) {
            self.look(occupied);
        }
        if unit >= self.starts.len() || !self.can_go_on(unit) {
            return;
        }
        for at in 0..self.starts[unit].len() {
            let Start {
                need,
                placement,
                present,
            } = self.starts[unit][at];
            let goal = &mut self.goals[need];
            let used = used.plus(goal.need.profile, 1);
            if goal.chosen == goal.most || used.over(self.budget).is_some() {
                continue;
            }
            goal.chosen += 1;
            self.chosen.push(Chosen {
                need,
                placement,
                present,
            });
            let next = unit + usize::from(placement.size);
            self.walk(next, occupied | placement.mask(), used, true);
            self.chosen.pop();
            self.goals[need].chosen -= 1;
        }
        self.walk(unit + 1, occupied, used, false);
    }

    /// Whether more may be added, and what must be added still has room from `unit` on.
    fn can_go_on(&self, unit: usize) -> bool {
        let room = self.starts.len() - unit;
        let (mut units, mut open) = (0, false);
        for goal in &self.goals {
            let missing = goal.least.saturating_sub(goal.chosen) as usize;
            let size = goal.need.profile.placements.first().map_or(1, |p| p.size);
            units += missing * usize::from(size);
            open |= goal.chosen < goal.most;
        }
        open && units <= room
    }

    /// Judges the layout chosen, which fulfils all needs if the insides do.
    fn look(&mut self, occupied: u64) {
        let (mut busy, mut kept) = (0, 0);
        for need in 0..self.goals.len() {
            let Some(gain) = self.gain(need) else {
                return;
            };
            busy += gain.0;
            kept += gain.1;
        }
        let created = self.chosen.iter().filter(|c| c.present.is_none()).count();
        let (mut closed, mut blocked) = (0, 0);
        for places in &self.places {
            let taken = places.iter().filter(|mask| *mask & occupied != 0).count();
            blocked += taken as u32;
            closed += u32::from(taken == places.len());
        }
        let score = (
            busy,
            kept,
            Reverse(created as u32),
            Reverse(self.chosen.len() as u32),
            Reverse(closed),
            Reverse(blocked),
        );
        // Lower starts come first, so that the first of equals is the one to take.
        if self.best.as_ref().is_none_or(|(best, _)| score > *best) {
            self.best = Some((score, self.chosen.clone()));
        }
    }

    /// Slices in use and slices at all of one need that stay; `None` if its slices do not fit into
    /// the instances chosen.
    fn gain(&mut self, need: usize) -> Option<(u32, u32)> {
        if self.goals[need].whole {
            let chosen = self.chosen.iter().filter(|c| c.need == need);
            let stay = chosen.filter_map(|c| c.present).filter_map(|at| {
                let present = &self.present[at];
                let size = self.goals[need].need.profile.slices;
                whole_slice(present, size).map(|at| present.busy.get(at) == Some(&true))
            });
            return Some(stay.fold((0, 0), |(busy, kept), used| {
                (busy + u32::from(used), kept + 1)
            }));
        }
        let instances: Vec<Option<usize>> = self.instances(need).map(|c| c.present).collect();
        let is_it = |known: &&Known| known.need == need && known.instances == instances;
        if let Some(known) = self.known.iter().find(is_it) {
            return known.gain;
        }
        let gain = self.insides(need, &self.chosen).map(|insides| {
            let count = |(busy, kept), inside: &Inside| {
                (busy + inside.busy, kept + inside.keep.len() as u32)
            };
            insides.iter().fold((0, 0), count)
        });
        self.known.push(Known {
            need,
            instances,
            gain,
        });
        gain
    }

    /// The chosen instances of a need: first those that stay, then the new ones, by rising start.
    fn instances(&self, need: usize) -> impl Iterator<Item = &Chosen> {
        instances(&self.chosen, need)
    }

    fn insides(&self, need: usize, chosen: &[Chosen]) -> Option<Vec<Inside>> {
        let Goal {
            need: wanted,
            sizes,
            ..
        } = &self.goals[need];
        let counts = wanted.slices.iter().map(|(_, count)| *count).collect();
        let present: Vec<Option<&Present>> = instances(chosen, need)
            .map(|c| c.present.map(|at| &self.present[at]))
            .collect();
        inside::spread(wanted.profile, &present, sizes, &counts)
    }

    /// The answer that these choices make.
    fn placed(&self, chosen: &[Chosen]) -> Option<Placed> {
        let mut placed = Placed::default();
        for (need, goal) in self.goals.iter().enumerate() {
            let profile = goal.need.profile;
            let insides = self.insides(need, chosen)?;
            for (chosen, inside) in instances(chosen, need).zip(insides) {
                let compute = new_compute(profile, &inside);
                match chosen.present {
                    Some(at) => {
                        let all = 0..self.present[at].spec.compute.len();
                        placed.keep.push(Kept {
                            present: at,
                            destroy_compute: all.filter(|c| !inside.keep.contains(c)).collect(),
                            create_compute: compute,
                        });
                    }
                    None => placed.create.push(InstanceSpec {
                        placement: chosen.placement,
                        profile: profile.name.clone(),
                        driver_id: profile.driver_id,
                        compute,
                    }),
                }
            }
        }
        Some(placed.in_order(self.present))
    }
}

/// Which of the compute instances is the whole GPU instance as one slice.
fn whole_slice(present: &Present, size: u8) -> Option<usize> {
    let mut compute = present.spec.compute.iter();
    compute.position(|compute| compute.profile.compute_slices() == size)
}

fn instances(chosen: &[Chosen], need: usize) -> impl Iterator<Item = &Chosen> {
    let stay = chosen
        .iter()
        .filter(move |c| c.need == need && c.present.is_some());
    stay.chain(
        chosen
            .iter()
            .filter(move |c| c.need == need && c.present.is_none()),
    )
}

fn starts(present: &[Present], goals: &[Goal]) -> Vec<Vec<Start>> {
    let mut starts: Vec<Vec<Start>> = Vec::new();
    for (need, goal) in goals.iter().enumerate() {
        let profile = goal.need.profile;
        let here = |p: &&Present| p.spec.driver_id == profile.driver_id;
        let there = present.iter().filter(here).map(|p| p.spec.placement);
        let mut places: Vec<Placement> = profile.placements.iter().copied().chain(there).collect();
        places.sort();
        places.dedup();
        for placement in places {
            let (start, end) = (
                usize::from(placement.start),
                usize::from(placement.start) + usize::from(placement.size),
            );
            if start == end || end > 64 {
                continue;
            }
            if starts.len() < end {
                starts.resize_with(end, Vec::new);
            }
            let at_place = |p: &Present| here(&p) && p.spec.placement == placement;
            starts[start].push(Start {
                need,
                placement,
                present: present.iter().position(at_place),
            });
        }
    }
    starts
}

fn new_compute(profile: &Profile, inside: &Inside) -> Vec<ComputeSpec> {
    let spec = |(size, placement): &(u8, Option<Placement>)| {
        let compute = profile.compute_of(*size)?;
        Some(ComputeSpec {
            profile: profile.name.with_compute(*size)?,
            driver_id: compute.driver_id,
            placement: *placement,
        })
    };
    inside.create.iter().filter_map(spec).collect()
}
