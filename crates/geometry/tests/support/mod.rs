// SPDX-License-Identifier: Apache-2.0
//! Short forms for tests: boards, present instances and wishes as text.

#![allow(dead_code)]

use std::collections::BTreeMap;

use geometry::catalogue;
use geometry::place::{Placed, Present};
use geometry::{Board, ComputeSpec, InstanceSpec};
use units::{Placement, ProfileName};

pub fn board(key: &str) -> Board {
    catalogue::by_key(key).unwrap()
}

pub fn name(text: &str) -> ProfileName {
    text.parse().unwrap()
}

/// `2x1g.10gb 1c.3g.40gb`: counts of slices.
pub fn slices(text: &str) -> BTreeMap<ProfileName, u32> {
    let mut slices = BTreeMap::new();
    for word in text.split_whitespace() {
        let counted = word.split_once('x');
        let counted = counted.and_then(|(count, profile)| Some((count.parse().ok()?, profile)));
        let (count, profile) = counted.unwrap_or((1, word));
        *slices.entry(name(profile)).or_insert(0) += count;
    }
    slices
}

/// `1g.10gb@0 3g.40gb@4* 3g.40gb@0[1c 2c*] 2g.20gb@4[]`: present instances; `*` is in use, brackets
/// list compute instances from the lowest slice on.
pub fn present(board: &Board, text: &str) -> Vec<Present> {
    let mut present = Vec::new();
    let mut rest = text.trim();
    while let Some(at) = rest.find('@') {
        let profile = board.find(&name(&rest[..at])).unwrap();
        rest = &rest[at + 1..];
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let start: u8 = rest[..digits].parse().unwrap();
        rest = &rest[digits..];
        let inside = match rest.strip_prefix('[') {
            Some(list) => {
                let (inside, after) = list.split_once(']').unwrap();
                rest = after;
                inside.to_owned()
            }
            None => {
                let used = rest.starts_with('*');
                rest = rest.strip_prefix('*').unwrap_or(rest);
                format!("{}c{}", profile.slices, if used { "*" } else { "" })
            }
        };
        let placement = *profile
            .placements
            .iter()
            .find(|p| p.start == start)
            .unwrap();
        let (mut compute, mut busy, mut next) = (Vec::new(), Vec::new(), 0);
        for word in inside.split_whitespace() {
            let size: u8 = word
                .trim_end_matches('*')
                .strip_suffix('c')
                .unwrap()
                .parse()
                .unwrap();
            compute.push(ComputeSpec {
                profile: profile.name.with_compute(size).unwrap(),
                driver_id: profile.compute_of(size).unwrap().driver_id,
                placement: Some(Placement::new(next, size)),
            });
            busy.push(word.ends_with('*'));
            next += size;
        }
        let spec = InstanceSpec {
            placement,
            profile: profile.name.clone(),
            driver_id: profile.driver_id,
            compute,
        };
        present.push(Present { spec, busy });
        rest = rest.trim_start();
    }
    present
}

/// `keep 1g.10gb@0 / destroy 3g.40gb@4 / create 2g.20gb@2`; changes inside in brackets.
pub fn show(present: &[Present], placed: &Placed) -> String {
    let compute = |spec: &ComputeSpec| {
        let start = spec
            .placement
            .map_or("?".to_owned(), |p| p.start.to_string());
        format!("{}c@{start}", spec.profile.compute_slices())
    };
    let place = |spec: &InstanceSpec| format!("{}@{}", spec.profile, spec.placement.start);
    let keep = placed.keep.iter().map(|kept| {
        let spec = &present[kept.present].spec;
        let gone = kept
            .destroy_compute
            .iter()
            .map(|at| format!("-{}", compute(&spec.compute[*at])));
        let come = kept
            .create_compute
            .iter()
            .map(|spec| format!("+{}", compute(spec)));
        let changes: Vec<String> = gone.chain(come).collect();
        match changes.is_empty() {
            true => place(spec),
            false => format!("{}[{}]", place(spec), changes.join(" ")),
        }
    });
    let destroy = placed.destroy.iter().map(|at| place(&present[*at].spec));
    let create = placed.create.iter().map(|spec| {
        let inside: Vec<String> = spec.compute.iter().map(compute).collect();
        match spec.compute.iter().any(|c| c.profile.is_partial()) || spec.compute.is_empty() {
            true => format!("{}[{}]", place(spec), inside.join(" ")),
            false => place(spec),
        }
    });
    let parts = [
        ("keep", keep.collect::<Vec<_>>()),
        ("destroy", destroy.collect()),
        ("create", create.collect()),
    ];
    let parts = parts.iter().filter(|(_, list)| !list.is_empty());
    let parts: Vec<String> = parts
        .map(|(what, list)| format!("{what} {}", list.join(" ")))
        .collect();
    parts.join(" / ")
}
