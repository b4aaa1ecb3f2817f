// SPDX-License-Identifier: Apache-2.0
//! Every figure of `data/mig-enumeration.txt` that is about geometry, reproduced. The file was
//! made by an independent program.

use std::collections::{BTreeMap, BTreeSet};

use geometry::catalogue::{boards, by_key};
use geometry::enumerate::{Layouts, Multiset};
use geometry::rules::{Conflict, conflict};
use geometry::{Board, Profile};
use units::Placement;

const FIGURES: &str = include_str!("../../../data/mig-enumeration.txt");

/// The file's word for a profile: `1g`, `1g.2x` for double memory, `2g+me`.
fn kind(board: &Board, profile: &Profile) -> String {
    let slices = profile.slices;
    let size = profile.placements.first().map_or(0, |place| place.size);
    let is_double = board.placement_units == 8 && slices == 1 && size == 2;
    let double = if is_double { ".2x" } else { "" };
    format!("{slices}g{double}{}", profile.name.attributes())
}

/// The profiles of a group of the file, in the order in which the file's program went.
fn group<'b>(board: &'b Board, group: &str) -> Vec<&'b Profile> {
    let order = ["", "+me", ".2x", "+gfx", "+me.all", "-me"];
    let order = (1..8).flat_map(|slices| order.map(|rest| format!("{slices}g{rest}")));
    let wanted = |kind: &str| match group.split(' ').next().unwrap_or_default() {
        "base" if group.contains("+ 1g.2x") => !kind.contains("me"),
        "base" => !kind.contains(['.', '+', '-']),
        "compute" => !kind.contains("gfx"),
        _ => true,
    };
    let find = |word: String| board.profiles.iter().find(|p| kind(board, p) == word);
    order.filter(|word| wanted(word)).filter_map(find).collect()
}

/// `3g + 2x2g` as counts of kinds.
fn parse(line: &str) -> BTreeMap<String, u8> {
    let word = |word: &str| match word.split_once('x') {
        Some((count, kind)) if count.parse::<u8>().is_ok() => {
            (kind.to_owned(), count.parse().unwrap_or(0))
        }
        _ => (word.to_owned(), 1),
    };
    line.split(" + ").map(|part| word(part.trim())).collect()
}

fn by_kind(board: &Board, profiles: &[&Profile], counts: &Multiset) -> BTreeMap<String, u8> {
    let pairs = profiles.iter().zip(counts).filter(|(_, count)| **count > 0);
    pairs
        .map(|(profile, count)| (kind(board, profile), *count))
        .collect()
}

/// The lines of a section of the file, from its title on.
fn section(title: &str) -> Vec<&'static str> {
    let lines = FIGURES
        .lines()
        .skip_while(|line| !line.contains(title))
        .skip(1);
    let lines = lines.take_while(|line| !line.is_empty() && !line.starts_with("=="));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(key: &str) -> Board {
        by_key(key).unwrap()
    }

    fn number(line: &str, name: &str) -> usize {
        let (_, rest) = line.split_once(&format!("{name}=")).unwrap();
        rest.split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    fn counts_of_every_board() {
        let mut seen = BTreeSet::new();
        for line in section("== counts") {
            let (head, keys) = (&line[..44], line.split_whitespace().last().unwrap());
            let name = head[6..].split("sets=").next().unwrap().trim();
            for key in keys.split(',') {
                let board = board(key);
                let layouts = Layouts::of(&board, &group(&board, name));
                let of = format!("{key} {name}");
                assert_eq!(layouts.sets().len(), number(line, "sets"), "{of}");
                assert_eq!(
                    layouts.maximal_sets().len(),
                    number(line, " maximal"),
                    "{of}"
                );
                assert_eq!(layouts.multisets().len(), number(line, "multisets"), "{of}");
                assert_eq!(
                    layouts.multisets_of_maximal_sets().len(),
                    number(line, "maxMS"),
                    "{of}"
                );
                assert_eq!(
                    layouts.maximal_multisets().len(),
                    number(line, "inclMaxMS"),
                    "{of}"
                );
                seen.insert(board.key.clone());
            }
        }
        let known = boards()
            .into_iter()
            .filter(|board| board.placement_units > 0);
        assert_eq!(seen, known.map(|board| board.key).collect());
    }

    #[test]
    fn the_nineteen_maximal_placement_sets() {
        let board = board("A100-40GB");
        let profiles = group(&board, "base");
        let layouts = Layouts::of(&board, &profiles);
        let show = |(profile, place): &(&Profile, Placement)| {
            format!("{}@{}", kind(&board, profile), place.start)
        };
        let sets = layouts.maximal_sets();
        let ours: BTreeSet<String> = sets
            .iter()
            .map(|set| set.iter().map(show).collect::<Vec<_>>().join(" "))
            .collect();
        let lines = section("== A100 base: maximal placement sets");
        let theirs = lines.iter().filter(|line| line.contains('@'));
        let theirs: BTreeSet<String> = theirs
            .map(|line| line.split_once(' ').unwrap().1.to_owned())
            .collect();
        assert_eq!(theirs.len(), 19);
        assert_eq!(ours, theirs);

        let maximal = layouts.maximal_multisets();
        let ours: BTreeSet<(BTreeMap<String, u8>, bool)> = layouts
            .multisets_of_maximal_sets()
            .iter()
            .map(|counts| (by_kind(&board, &profiles, counts), maximal.contains(counts)))
            .collect();
        let theirs = lines
            .iter()
            .filter_map(|line| line.strip_suffix(')')?.split_once('('));
        let theirs = theirs.filter(|(_, how)| !how.contains("forbidden"));
        let theirs: BTreeSet<_> = theirs
            .map(|(set, how)| (parse(set), how == "inclusion-maximal"))
            .collect();
        assert_eq!(theirs.len(), 14);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn before_r510_one_fewer() {
        let board = board("A100-40GB");
        let profiles = group(&board, "base");
        let layouts = Layouts::of(&board, &profiles).without(|set| {
            let has = |slices: u8| set.iter().any(|(profile, _)| profile.slices == slices);
            has(4) && has(3)
        });
        let line = FIGURES
            .lines()
            .find(|line| line.starts_with("pre-R510"))
            .unwrap();
        assert!(line.contains("maximal 18 multisets 13 inclusion-maximal 11"));
        assert_eq!(layouts.maximal_sets().len(), 18);
        assert_eq!(layouts.multisets_of_maximal_sets().len(), 13);
        let list = line.split_once('[').unwrap().1.trim_end_matches(']');
        let theirs: BTreeSet<_> = list
            .split(", ")
            .map(|set| parse(set.trim_matches('\'')))
            .collect();
        let ours = layouts.maximal_multisets();
        let ours: BTreeSet<_> = ours
            .iter()
            .map(|set| by_kind(&board, &profiles, set))
            .collect();
        assert_eq!(ours.len(), 11);
        assert_eq!(ours, theirs);
    }

    #[test]
    fn four_and_three_stand_side_by_side() {
        let board = board("H100-80GB-SXM");
        let sets = Layouts::of(&board, &group(&board, "base")).maximal_sets();
        let both = |set: &&Vec<(&Profile, Placement)>| {
            set.iter().map(|(profile, _)| profile.slices).eq([4, 3])
        };
        assert_eq!(sets.iter().filter(both).count(), 1);
    }

    #[test]
    fn lists_of_maximal_multisets() {
        for (title, key, name, count) in [
            (
                "== A100 base + 1g.2x maximal",
                "A100-40GB",
                "base + 1g.2x",
                28,
            ),
            ("== A30 all maximal", "A30", "all", 8),
            (
                "== RTX PRO 6000 compute maximal",
                "RTX-PRO-6000-SE",
                "compute",
                27,
            ),
        ] {
            let board = board(key);
            let profiles = group(&board, name);
            let ours = Layouts::of(&board, &profiles).maximal_multisets();
            let ours: BTreeSet<_> = ours
                .iter()
                .map(|set| by_kind(&board, &profiles, set))
                .collect();
            let theirs: BTreeSet<_> = section(title).into_iter().map(parse).collect();
            assert_eq!(theirs.len(), count);
            assert_eq!(ours, theirs, "{title}");
        }
    }

    /// Counts why the file's program could not extend a set, in its order.
    fn rejections(board: &Board, profiles: &[&Profile]) -> BTreeMap<String, usize> {
        let places: Vec<(&Profile, Placement)> = profiles
            .iter()
            .flat_map(|profile| profile.placements.iter().map(|place| (*profile, *place)))
            .collect();
        let mut counts = BTreeMap::new();
        let mut open = vec![(Vec::new(), 0)];
        while let Some((set, from)) = open.pop() {
            for at in from..places.len() {
                let (profile, place) = places[at];
                let others = set.iter().map(|at: &usize| places[*at]);
                let reason = match conflict(board, others, profile, place) {
                    None => {
                        open.push(([set.as_slice(), &[at]].concat(), at + 1));
                        continue;
                    }
                    Some(Conflict::Overlap) => "overlap".to_owned(),
                    Some(Conflict::Count) => "count".to_owned(),
                    Some(Conflict::Engine(kind)) => format!("engine:{kind}"),
                    Some(Conflict::Place) => "place".to_owned(),
                };
                *counts.entry(reason).or_insert(0) += 1;
            }
        }
        counts
    }

    #[test]
    fn rejections_and_sums() {
        for line in section("== rejection reasons") {
            let (head, rest) = line.split_once(" {").unwrap();
            let (reasons, sums) = rest.split_once("} SM ").unwrap();
            let (key, name) = head.split_once(' ').unwrap();
            let board = board(key);
            let profiles = group(&board, name);
            let theirs: BTreeMap<String, usize> = reasons
                .split(", ")
                .map(|pair| pair.split_once("': ").unwrap())
                .map(|(reason, count)| (reason[1..].to_owned(), count.parse().unwrap()))
                .collect();
            assert_eq!(rejections(&board, &profiles), theirs, "{head}");

            let sets = Layouts::of(&board, &profiles).sets();
            let most = |of: fn(&Profile) -> u64| {
                let sum = |set: &Vec<(&Profile, Placement)>| set.iter().map(|(p, _)| of(p)).sum();
                sets.iter().map(sum).max().unwrap_or(0u64)
            };
            let sms = most(|profile| profile.sm_count.unwrap().into());
            let memory = most(|profile| profile.memory_mib.unwrap());
            let slices = most(|profile| profile.slices.into());
            assert!(slices <= u64::from(board.compute_slices), "{head}");
            let words: Vec<&str> = sums.split_whitespace().collect();
            assert_eq!(
                [words[0], words[4]],
                [sms.to_string(), memory.to_string()],
                "{head}"
            );
            let total = board
                .memory_mib
                .map_or("None".to_owned(), |mib| mib.to_string());
            assert_eq!(words[6], total, "{head}");
        }
    }

    #[test]
    fn sets_that_strand_a_profile() {
        let lines = section("== fragmentation");
        for (line, key, name) in [
            (lines[0], "A100-40GB", "base"),
            (lines[1], "A100-40GB", "base + 1g.2x"),
            (lines[2], "A30", "base"),
            (lines[3], "RTX-PRO-6000-SE", "base"),
        ] {
            let board = board(key);
            let profiles = group(&board, name);
            let layouts = Layouts::of(&board, &profiles);
            let multisets = layouts.multisets();
            let mut sets = layouts.sets();
            sets.push(Vec::new());
            let mut fragmented = BTreeSet::new();
            let mut parts = Vec::new();
            for (number, profile) in profiles.iter().enumerate() {
                let (mut stranded, mut possible) = (0, 0);
                for (at, set) in sets.iter().enumerate() {
                    let mut more: Multiset = vec![0; profiles.len()];
                    for member in set.iter().map(|(member, _)| member).chain([profile]) {
                        more[profiles.iter().position(|p| p == member).unwrap()] += 1;
                    }
                    if !multisets.contains(&more) {
                        continue;
                    }
                    possible += 1;
                    let free = |place: &&Placement| {
                        conflict(&board, set.iter().copied(), profile, **place).is_none()
                    };
                    if profile.placements.iter().find(free).is_none() {
                        stranded += 1;
                        fragmented.insert(at);
                    }
                }
                parts.push(format!(
                    "'{}': '{stranded}/{possible}'",
                    kind(&board, profiles[number])
                ));
            }
            let ours = format!(
                "sets {} fragmented {} {{{}}}",
                sets.len(),
                fragmented.len(),
                parts.join(", ")
            );
            assert!(line.ends_with(&ours), "{line}\n{ours}");
        }
    }
}
