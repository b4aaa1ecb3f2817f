// SPDX-License-Identifier: Apache-2.0
//! The planner and the linter judge each other on random machines and wishes.

use geometry::inventory::Inventory;
use plan::testing::{Choices, inventory, wish};
use plan::{Action, GpuWish, Policy, Wish, difference, plan};
use proptest::prelude::*;

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
