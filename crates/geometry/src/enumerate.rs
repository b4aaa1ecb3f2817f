// SPDX-License-Identifier: Apache-2.0
//! All layouts of a board, counted.
//!
//! A placement set is instances with their places; a multiset only says how many of each profile.
//! The hardest board has 2,318 placement sets, so plain enumeration is enough.

use std::collections::BTreeSet;

use units::Placement;

use crate::board::{Board, Profile};
use crate::rules::conflict;

/// How many instances of each chosen profile, in the order in which they were chosen.
pub type Multiset = Vec<u8>;

/// A set of instances: bit n is [`Layouts::places`]`[n]`.
type Bits = u64;

/// The legal placement sets that use some of a board's profiles.
#[derive(Clone, Debug)]
pub struct Layouts<'b> {
    profiles: Vec<&'b Profile>,
    /// Every place of every chosen profile; the number is the profile's.
    places: Vec<(usize, Placement)>,
    sets: BTreeSet<Bits>,
}

impl<'b> Layouts<'b> {
    /// Every legal placement set of these profiles, the empty one too. At most 64 places in all
    /// are looked at; no board has more than 30.
    pub fn of(board: &'b Board, profiles: &[&'b Profile]) -> Self {
        let all = profiles.iter().enumerate();
        let places = all.flat_map(|(number, profile)| {
            let places = profile.placements.iter();
            places.map(move |place| (number, *place))
        });
        let mut layouts = Self {
            profiles: profiles.to_vec(),
            places: places.take(64).collect(),
            sets: BTreeSet::new(),
        };
        layouts.extend(board, 0, 0);
        layouts
    }

    fn extend(&mut self, board: &Board, set: Bits, from: usize) {
        self.sets.insert(set);
        for at in from..self.places.len() {
            let (number, place) = self.places[at];
            let others = self.members(set);
            if conflict(board, others, self.profiles[number], place).is_none() {
                self.extend(board, set | 1 << at, at + 1);
            }
        }
    }

    /// Without the sets that `forbidden` says yes to. Whatever contains a forbidden set must be
    /// forbidden too, as a driver's rule is.
    #[must_use]
    pub fn without(mut self, forbidden: impl Fn(&[(&Profile, Placement)]) -> bool) -> Self {
        let sets = std::mem::take(&mut self.sets);
        let stays = |set: &Bits| !forbidden(&self.members(*set).collect::<Vec<_>>());
        self.sets = sets.into_iter().filter(stays).collect();
        self
    }

    fn members(&self, set: Bits) -> impl Iterator<Item = (&'b Profile, Placement)> + Clone {
        let chosen = move |at: &usize| set >> at & 1 == 1;
        let places = (0..self.places.len()).filter(chosen);
        places.map(|at| (self.profiles[self.places[at].0], self.places[at].1))
    }

    fn counts(&self, set: Bits) -> Multiset {
        let mut counts = vec![0; self.profiles.len()];
        for (at, (number, _)) in self.places.iter().enumerate() {
            counts[*number] += (set >> at & 1) as u8;
        }
        counts
    }

    /// Every placement set but the empty one, each by rising start.
    pub fn sets(&self) -> Vec<Vec<(&'b Profile, Placement)>> {
        let sets = self.sets.iter().filter(|set| **set != 0);
        sets.map(|set| self.by_start(*set)).collect()
    }

    /// The placement sets to which nothing can be added, each by rising start.
    pub fn maximal_sets(&self) -> Vec<Vec<(&'b Profile, Placement)>> {
        let maximal = self.maximal_bits();
        maximal.map(|set| self.by_start(set)).collect()
    }

    fn by_start(&self, set: Bits) -> Vec<(&'b Profile, Placement)> {
        let mut members: Vec<(&Profile, Placement)> = self.members(set).collect();
        members.sort_by_key(|(_, place)| *place);
        members
    }

    fn maximal_bits(&self) -> impl Iterator<Item = Bits> {
        let grows = |set: Bits| {
            let mut more = (0..self.places.len()).map(|at| set | 1 << at);
            more.any(|more| more != set && self.sets.contains(&more))
        };
        self.sets.iter().copied().filter(move |set| !grows(*set))
    }

    /// Every multiset but the empty one.
    pub fn multisets(&self) -> BTreeSet<Multiset> {
        let sets = self.sets.iter().filter(|set| **set != 0);
        sets.map(|set| self.counts(*set)).collect()
    }

    /// The multisets of the maximal placement sets. Some of them can be extended from another
    /// placement.
    pub fn multisets_of_maximal_sets(&self) -> BTreeSet<Multiset> {
        self.maximal_bits().map(|set| self.counts(set)).collect()
    }

    /// The multisets that no other contains.
    pub fn maximal_multisets(&self) -> BTreeSet<Multiset> {
        let all = self.multisets();
        let grows = |counts: &Multiset| {
            (0..counts.len()).any(|at| {
                let mut more = counts.clone();
                more[at] += 1;
                all.contains(&more)
            })
        };
        all.iter()
            .filter(|counts| !grows(counts))
            .cloned()
            .collect()
    }
}
