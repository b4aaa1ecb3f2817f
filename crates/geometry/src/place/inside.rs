// SPDX-License-Identifier: Apache-2.0
//! Compute instances inside GPU instances: which stay, where new ones go, and how the wanted ones
//! are spread over several GPU instances of one profile.

use units::Placement;

use super::Present;
use crate::board::Profile;
use crate::layout::ComputeSpec;

/// How many compute instances of each wanted size, in the order of the need.
pub(super) type Counts = Vec<u64>;

/// The best way to give one GPU instance certain compute instances.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inside {
    /// Those that stay, as indices into the present one's `compute`.
    pub keep: Vec<usize>,
    /// Slices and place of those that come; `None` where the driver must choose.
    pub create: Vec<(u8, Option<Placement>)>,
    /// How many of `keep` are in use.
    pub busy: u32,
}

/// At most so many compute instances are looked at in one GPU instance; no board has more slices.
const MOST: usize = 8;

/// Fits exactly `counts` of the `sizes` (slices, largest first) into a GPU instance of the profile
/// such that the most compute instances in use stay, then the most at all; `None` if impossible.
pub(super) fn fit(
    profile: &Profile,
    present: Option<&Present>,
    sizes: &[u8],
    counts: &[u64],
) -> Option<Inside> {
    let compute: &[ComputeSpec] = present.map_or(&[], |present| &present.spec.compute);
    let compute = &compute[..compute.len().min(MOST)];
    let in_use = |at: usize| present.is_some_and(|p| p.busy.get(at) == Some(&true));
    let mut best: Option<Inside> = None;
    for mask in 0..1_u32 << compute.len() {
        let keep: Vec<usize> = (0..compute.len())
            .filter(|at| mask >> at & 1 == 1)
            .collect();
        let busy = keep.iter().filter(|at| in_use(**at)).count() as u32;
        let rank = |inside: &Inside| (inside.busy, inside.keep.len());
        if best
            .as_ref()
            .is_some_and(|best| rank(best) >= (busy, keep.len()))
        {
            continue;
        }
        let kept: Vec<&ComputeSpec> = keep.iter().map(|at| &compute[*at]).collect();
        if let Some(create) = complete(profile, &kept, sizes, counts) {
            best = Some(Inside { keep, create, busy });
        }
    }
    best
}

/// What must come beside `kept` so that there are exactly `counts`, and where.
fn complete(
    profile: &Profile,
    kept: &[&ComputeSpec],
    sizes: &[u8],
    counts: &[u64],
) -> Option<Vec<(u8, Option<Placement>)>> {
    let total: u64 = counts
        .iter()
        .zip(sizes)
        .map(|(n, size)| n * u64::from(*size))
        .sum();
    if total > u64::from(profile.slices) {
        return None;
    }
    let mut missing = Vec::new();
    let mut matched = 0;
    for (&size, &count) in sizes.iter().zip(counts) {
        let have = kept
            .iter()
            .filter(|c| c.profile.compute_slices() == size)
            .count();
        let most = profile.compute_of(size)?.max_instances;
        let lacking = count
            .checked_sub(have as u64)
            .filter(|_| count <= u64::from(most))?;
        matched += have;
        missing.extend((0..lacking).map(|_| size));
    }
    if matched != kept.len() {
        return None;
    }
    let places: Option<Vec<Placement>> = kept.iter().map(|compute| compute.placement).collect();
    let Some(places) = places else {
        // The driver does not tell where the present ones are: it has to choose for the others.
        return Some(missing.into_iter().map(|size| (size, None)).collect());
    };
    let taken = places.iter().fold(0, |mask, place| mask | place.mask());
    let mut found = Vec::new();
    seat(profile, &missing, taken, &mut found).then_some(found)
}

/// Finds free places for compute instances of these sizes, lowest first.
pub(super) fn seat(
    profile: &Profile,
    sizes: &[u8],
    taken: u64,
    found: &mut Vec<(u8, Option<Placement>)>,
) -> bool {
    let Some((&size, rest)) = sizes.split_first() else {
        return true;
    };
    let places = profile
        .compute_of(size)
        .map_or(&[][..], |compute| &compute.placements);
    for place in places.iter().filter(|place| place.mask() & taken == 0) {
        found.push((size, Some(*place)));
        if seat(profile, rest, taken | place.mask(), found) {
            return true;
        }
        found.pop();
    }
    false
}

/// Spreads exactly `counts` over these GPU instances of one profile (`None`: a new one), each of
/// which gets at least one: the most in use stay, then the most at all, then the first GPU
/// instances are filled most.
pub(super) fn spread(
    profile: &Profile,
    instances: &[Option<&Present>],
    sizes: &[u8],
    counts: &Counts,
) -> Option<Vec<Inside>> {
    let (first, rest) = instances.split_first()?;
    if rest.is_empty() {
        return fit(profile, *first, sizes, counts).map(|inside| vec![inside]);
    }
    let rank = |insides: &[Inside]| {
        let busy: u32 = insides.iter().map(|inside| inside.busy).sum();
        let kept: usize = insides.iter().map(|inside| inside.keep.len()).sum();
        (busy, kept)
    };
    let mut best: Option<Vec<Inside>> = None;
    for part in parts(sizes, counts, profile.slices) {
        let Some(inside) = fit(profile, *first, sizes, &part) else {
            continue;
        };
        let left: Counts = counts
            .iter()
            .zip(&part)
            .map(|(all, part)| all - part)
            .collect();
        let Some(others) = spread(profile, rest, sizes, &left) else {
            continue;
        };
        let insides: Vec<Inside> = std::iter::once(inside).chain(others).collect();
        if best.as_ref().is_none_or(|best| rank(&insides) > rank(best)) {
            best = Some(insides);
        }
    }
    best
}

/// Every choice of at least one and at most `capacity` slices' worth out of `counts`: most of the
/// largest size first.
pub(super) fn parts(sizes: &[u8], counts: &[u64], capacity: u8) -> Vec<Counts> {
    let mut parts = vec![(Vec::new(), u64::from(capacity))];
    for (&size, &count) in sizes.iter().zip(counts) {
        let mut longer = Vec::new();
        for (part, left) in parts {
            let most = count.min(left / u64::from(size.max(1)));
            for take in (0..=most).rev() {
                let mut part: Counts = part.clone();
                part.push(take);
                longer.push((part, left - take * u64::from(size)));
            }
        }
        parts = longer;
    }
    let parts = parts.into_iter().map(|(part, _)| part);
    parts
        .filter(|part| part.iter().any(|take| *take > 0))
        .collect()
}
