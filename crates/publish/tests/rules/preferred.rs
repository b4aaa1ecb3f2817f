// SPDX-License-Identifier: Apache-2.0
//! Preferred allocation beyond the recorded cases.

use config::deviceplugin::AllocationPolicy;
use publish::{Ancestor, Link, Links, PreferenceRequest, Resource, preferred, resources};
use units::Code;

use super::machine::{gpu_uuid, node, whole};

/// Links of GPUs in groups of `group`, with so many NVLinks between neighbours `0-1`, `2-3`, ...
fn links(count: u32, group: u32, nvlinks: u32) -> Links {
    let pairs = (0..count).flat_map(|one| (one + 1..count).map(move |other| (one, other)));
    Links::new(pairs.map(|(one, other)| Link {
        one: gpu_uuid(one),
        other: gpu_uuid(other),
        ancestor: match one / group == other / group {
            true => Ancestor::MultipleSwitches,
            false => Ancestor::System,
        },
        nvlinks: if one / 2 == other / 2 { nvlinks } else { 0 },
    }))
}

fn choose(
    resource: &Resource,
    links: &Links,
    policy: AllocationPolicy,
    available: &[usize],
    required: &[usize],
    size: usize,
) -> Result<Vec<usize>, Code> {
    let id = |place: &usize| resource.devices[*place].id.clone();
    let available: Vec<String> = available.iter().map(id).collect();
    let required: Vec<String> = required.iter().map(id).collect();
    let request = PreferenceRequest {
        available: &available,
        required: &required,
        size,
    };
    let place = |id: String| resource.devices.iter().position(|it| it.id == id).unwrap();
    let chosen = preferred(resource, links, policy, &request);
    let chosen = chosen.map_err(|refusal| refusal.code)?;
    Ok(chosen.into_iter().map(place).collect())
}

#[test]
fn whole_gpus_go_by_links_and_leave_good_groups() {
    let resource = resources(&whole(8, "")).0.remove(0);
    let choose = |links: &Links, available: &[usize], required: &[usize], size| {
        choose(
            &resource,
            links,
            AllocationPolicy::default(),
            available,
            required,
            size,
        )
        .unwrap()
    };
    let (plain, nvlink) = (links(8, 4, 0), links(8, 4, 2));
    // One GPU is taken from the group that is broken already.
    assert_eq!(choose(&plain, &[0, 1, 2, 3, 5], &[], 1), [5]);
    assert_eq!(choose(&plain, &[0, 1, 2, 3, 4, 5], &[], 2), [4, 5]);
    // Of equal links, fewer NUMA nodes (two GPUs each).
    assert_eq!(choose(&plain, &[0, 2, 3], &[], 2), [2, 3]);
    assert_eq!(choose(&nvlink, &[1, 2, 4, 5], &[], 2), [4, 5]);
    assert_eq!(choose(&nvlink, &[0, 1, 2, 3, 4, 5, 6, 7], &[6], 2), [6, 7]);
    assert_eq!(choose(&nvlink, &[0, 1, 2, 6, 7], &[1, 6], 3), [1, 6, 7]);
    assert_eq!(choose(&plain, &[0, 1], &[], 3), [0; 0]);
    assert_eq!(choose(&plain, &[0, 1], &[0, 1], 1), [0; 0]);
}

#[test]
fn sixteen_unlike_gpus_are_searched_whole() {
    let resource = resources(&whole(16, "")).0.remove(0);
    let pairs = (0..16).flat_map(|one| (one + 1..16).map(move |other| (one, other)));
    let score = |one: u32, other: u32| (one * 7 + other * 13) % 17;
    let links = Links::new(pairs.map(|(one, other)| Link {
        one: gpu_uuid(one),
        other: gpu_uuid(other),
        ancestor: Ancestor::System,
        nvlinks: score(one, other),
    }));
    let all: Vec<usize> = (0..16).collect();
    for size in [4_u32, 8] {
        let sum = |set: &[u32]| -> u32 {
            let with = |(place, one): (usize, &u32)| {
                set[place + 1..]
                    .iter()
                    .map(|other| score(*one, *other))
                    .sum::<u32>()
            };
            set.iter().enumerate().map(with).sum()
        };
        let members = |mask: u32| {
            (0..16)
                .filter(|bit| mask & (1 << bit) != 0)
                .collect::<Vec<u32>>()
        };
        let sets = (0..1_u32 << 16).filter(|mask| mask.count_ones() == size);
        let best = sets.map(|mask| sum(&members(mask))).max().unwrap();
        let policy = AllocationPolicy::default();
        let chosen = choose(&resource, &links, policy, &all, &[], size as usize).unwrap();
        let mut chosen: Vec<u32> = chosen.into_iter().map(|place| place as u32).collect();
        chosen.sort_unstable();
        assert_eq!(sum(&chosen), best);
    }
}

#[test]
fn slices_and_replicas_are_packed_or_spread_over_gpus() {
    let cut: &[&str] = &["1g.10gb"; 3];
    let gpus = [("NVIDIA A100-SXM4-80GB", Some(cut)); 2];
    let settings = "flags: {migStrategy: single}
sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}]}}";
    let (plain, shared) = (
        node(&gpus, "flags: {migStrategy: single}"),
        node(&gpus, settings),
    );
    let (plain, shared) = (
        resources(&plain).0.remove(0),
        resources(&shared).0.remove(0),
    );
    let none = Links::default();
    let (spread, pack) = (AllocationPolicy::Distributed, AllocationPolicy::Packed);
    let all: Vec<usize> = (0..6).collect();
    let choose = |resource, policy, available: &[usize], required: &[usize], size| {
        super::preferred::choose(resource, &none, policy, available, required, size)
    };
    assert_eq!(choose(&plain, spread, &all, &[], 4).unwrap(), [0, 3, 1, 4]);
    assert_eq!(choose(&plain, pack, &all, &[], 4).unwrap(), [0, 1, 2, 3]);
    assert_eq!(
        choose(&plain, spread, &[1, 2, 3, 4, 5], &[], 1).unwrap(),
        [3]
    );
    assert_eq!(
        choose(&plain, pack, &[0, 1, 2, 4, 5], &[], 3).unwrap(),
        [4, 5, 0]
    );
    assert_eq!(choose(&plain, pack, &all, &[4], 3).unwrap(), [4, 3, 5]);
    assert_eq!(
        choose(&plain, pack, &all, &[], 7),
        Err(Code::NotEnoughDevices)
    );
    // Replicas of slices: other GPUs first, then other slices; packed, the same slice.
    let all: Vec<usize> = (0..12).collect();
    assert_eq!(
        choose(&shared, spread, &all, &[], 5).unwrap(),
        [0, 6, 2, 8, 4]
    );
    assert_eq!(choose(&shared, pack, &all, &[], 3).unwrap(), [0, 1, 2]);
    assert_eq!(choose(&shared, pack, &all, &[9], 2).unwrap(), [9, 8]);
}
