// SPDX-License-Identifier: Apache-2.0
//! Event sets: who waits for what, and how far they have read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::code::{Answer, INVALID_ARGUMENT};
use crate::world::{Event, World};

/// The event sets of one process.
#[derive(Debug, Default)]
pub struct EventSets(Mutex<Sets>);

#[derive(Debug, Default)]
struct Sets {
    last: u32,
    sets: BTreeMap<u32, Set>,
}

#[derive(Debug, Default)]
struct Set {
    /// Types that are waited for, a bit mask by GPU, and the last event that was seen of it.
    wanted: BTreeMap<u32, (u64, u32)>,
}

impl EventSets {
    fn sets(&self) -> MutexGuard<'_, Sets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a set and answers its number.
    pub fn create(&self) -> u32 {
        let mut sets = self.sets();
        sets.last += 1;
        let number = sets.last;
        sets.sets.insert(number, Set::default());
        number
    }

    /// Forgets a set.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is none.
    pub fn free(&self, number: u32) -> Answer<()> {
        self.sets()
            .sets
            .remove(&number)
            .map(drop)
            .ok_or(INVALID_ARGUMENT)
    }

    /// Waits for these types of a GPU from now on, beside those that the set waits for already.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such set.
    pub fn register(&self, number: u32, world: &World, gpu: u32, types: u64) -> Answer<()> {
        let mut sets = self.sets();
        let set = sets.sets.get_mut(&number).ok_or(INVALID_ARGUMENT)?;
        let wanted = set.wanted.entry(gpu).or_insert((0, world.next_serial));
        wanted.0 |= types;
        Ok(())
    }

    /// The next event that the set waits for, if it has happened; it is then taken.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if there is no such set.
    pub fn next(
        &self,
        number: u32,
        world: &World,
        kind: impl Fn(&Event) -> u64,
    ) -> Answer<Option<Event>> {
        let mut sets = self.sets();
        let set = sets.sets.get_mut(&number).ok_or(INVALID_ARGUMENT)?;
        for event in &world.events {
            if let Some((types, seen)) = set.wanted.get_mut(&event.gpu)
                && event.serial > *seen
            {
                *seen = event.serial;
                if kind(event) & *types != 0 {
                    return Ok(Some(event.clone()));
                }
            }
        }
        Ok(None)
    }
}
