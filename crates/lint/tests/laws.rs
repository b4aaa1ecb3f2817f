// SPDX-License-Identifier: Apache-2.0
//! The planner and the linter judge each other on random machines and wishes.
#![allow(clippy::unwrap_used)]

use geometry::inventory::Inventory;
use plan::testing::{Choices, inventory, wish};
use plan::{Action, GpuWish, Policy, Wish, difference, plan};
use proptest::prelude::*;
use units::{Mode, ProfileName};

fn machine_and_wish(list: &[u16]) -> (Inventory, Wish) {
    let mut choices = Choices::new(list);
    let inventory = inventory(&mut choices);
    let wish = wish(&inventory, &mut choices);
    (inventory, wish)
}

fn policies() -> impl Iterator<Item = Policy> {
    [(true, true), (true, false), (false, true), (false, false)]
        .into_iter()
        .map(|(reset, ignore_holders)| Policy {
            reset,
            ignore_holders,
        })
}

/// What a GPU had under a driver that called its profiles otherwise comes back after an update.
#[test]
fn a_record_with_the_names_of_another_driver_comes_back_under_those_of_this_one() {
    let [three, one] = ["3g.40gb", "1c.3g.40gb"].map(|name| name.parse().unwrap());
    let board = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    let empty = plan::testing::gpu(board, 0, Mode::On);
    let mut before = empty.clone();
    plan::testing::put(&mut before, &three, 4, &[(one, 1)]);
    let now = before.layout();
    let mut recorded = now.clone();
    recorded.instances[0].profile = "3g.39gb".parse().unwrap();
    recorded.instances[0].compute[0].profile = "1c.3g.39gb".parse().unwrap();
    let wish = Wish {
        gpus: [(0, GpuWish::Exact(recorded))].into(),
        warnings: Vec::new(),
    };
    let inventory = plan::testing::machine(vec![empty]);
    let plan = plan(&inventory, &wish, &Policy::default()).unwrap();
    assert_eq!(lint::check(&inventory, &plan), []);
    assert_eq!(plan.gpus[0].after, now);
}

/// A checkpoint does not tell where compute instances were.
#[test]
fn slices_without_a_place_get_one() {
    let [one, two] = ["1c.3g.40gb", "2c.3g.40gb"].map(|name| name.parse().unwrap());
    let three = "3g.40gb".parse().unwrap();
    let board = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    let empty = plan::testing::gpu(board, 0, Mode::On);
    let (mut all, mut part) = (empty.clone(), empty.clone());
    plan::testing::put(&mut part, &three, 4, &[(ProfileName::clone(&one), 2)]);
    plan::testing::put(&mut all, &three, 4, &[(two, 0), (one, 2)]);
    let placed = all.layout();
    let mut recorded = placed.clone();
    for compute in &mut recorded.instances[0].compute {
        compute.placement = None;
    }
    let wish = Wish {
        gpus: [(0, GpuWish::Exact(recorded))].into(),
        warnings: Vec::new(),
    };
    for there in [empty, part, all] {
        let inventory = plan::testing::machine(vec![there]);
        let plan = plan(&inventory, &wish, &Policy::default()).unwrap();
        assert_eq!(lint::check(&inventory, &plan), []);
        assert_eq!(plan.gpus[0].after, placed);
    }
}

/// A driver may tell of more engines than the catalogue has.
#[test]
fn what_one_instance_is_said_to_have_it_may_have() {
    let mut board = geometry::catalogue::by_key("H100-80GB-SXM").unwrap();
    board.engines = geometry::Engines::default();
    let inventory = plan::testing::machine(vec![plan::testing::gpu(board, 0, Mode::On)]);
    for layout in ["7g.80gb", "1g.10gb+me,6x1g.10gb"] {
        let wish = plan::parse_layout(layout).unwrap();
        let wish = plan::resolve_layout(&[0], &wish, &inventory).unwrap();
        let plan = plan(&inventory, &wish, &Policy::default()).unwrap();
        assert_eq!(lint::check(&inventory, &plan), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_plan_is_sound(list in prop::collection::vec(any::<u16>(), 0..120)) {
        let (inventory, wish) = machine_and_wish(&list);
        for policy in policies() {
            if let Ok(plan) = plan(&inventory, &wish, &policy) {
                prop_assert_eq!(lint::check(&inventory, &plan), []);
            }
        }
    }

    #[test]
    fn every_plan_leads_to_the_wish(list in prop::collection::vec(any::<u16>(), 0..120)) {
        let (mut inventory, wish) = machine_and_wish(&list);
        let policy = Policy { ignore_holders: true, ..Policy::default() };
        let Ok(made) = plan(&inventory, &wish, &policy) else { return Ok(()); };
        for made in &made.gpus {
            let at = inventory.gpus.iter_mut().find(|gpu| gpu.index == made.index);
            let gpu = at.unwrap();
            gpu.mode = Some(made.mode_after);
            gpu.instances.clear();
            for spec in &made.after.instances {
                let compute: Vec<_> = spec.compute.iter()
                    .map(|compute| (compute.profile.clone(), compute.placement.unwrap().start))
                    .collect();
                plan::testing::put(gpu, &spec.profile, spec.placement.start, &compute);
            }
        }
        prop_assert_eq!(difference(&inventory, &wish), []);
        let again = plan(&inventory, &wish, &policy).unwrap();
        prop_assert!(again.is_empty(), "{:?}", again);
    }

    #[test]
    fn nobody_is_hurt_unasked(list in prop::collection::vec(any::<u16>(), 0..120)) {
        let (inventory, wish) = machine_and_wish(&list);
        let Ok(made) = plan(&inventory, &wish, &Policy::default()) else { return Ok(()); };
        for made in &made.gpus {
            prop_assert_eq!(&made.holders, &[]);
            let gpu = inventory.gpus.iter().find(|gpu| gpu.index == made.index).unwrap();
            for instance in gpu.instances.iter().filter(|instance| instance.is_busy()) {
                let stays = made.keep.iter().any(|keep| keep.placement == instance.placement);
                prop_assert!(stays, "{:?} is destroyed", instance);
            }
        }
    }

    #[test]
    fn mode_alone_touches_no_instance(list in prop::collection::vec(any::<u16>(), 0..120)) {
        let (inventory, wish) = machine_and_wish(&list);
        let wish = wish.mode_only();
        for policy in policies() {
            let Ok(made) = plan(&inventory, &wish, &policy) else { continue; };
            for gpu in made.gpus.iter().filter(|gpu| wish.gpus[&gpu.index] == GpuWish::On) {
                let touched = gpu.steps.iter().find(|step| {
                    !matches!(step.action, Action::SetMode { .. } | Action::Reset)
                });
                prop_assert_eq!(touched, None);
            }
        }
    }
}
