// SPDX-License-Identifier: Apache-2.0
//! The model's conditions and those that the executor asks of real hardware say the same.

use plan::testing::{Choices, inventory, wish};
use plan::{Condition, Policy, plan};
use proptest::prelude::*;

use crate::model::State;

proptest! {
    #[test]
    fn conditions_mean_the_same(list in prop::collection::vec(any::<u16>(), 0..120)) {
        let mut choices = Choices::new(&list);
        let inventory = inventory(&mut choices);
        let wish = wish(&inventory, &mut choices);
        let policy = Policy { ignore_holders: true, ..Policy::default() };
        let Ok(plan) = plan(&inventory, &wish, &policy) else { return Ok(()); };
        let steps = plan.gpus.iter().flat_map(|gpu| &gpu.steps);
        let mut conditions: Vec<&Condition> =
            steps.flat_map(|step| step.requires.iter().chain([&step.check])).collect();
        conditions.extend([&Condition::NothingPending, &Condition::Idle]);
        for gpu in &inventory.gpus {
            let state = State::of(gpu, gpu.is_busy());
            for condition in &conditions {
                prop_assert_eq!(state.holds(condition), condition.holds(gpu), "{:?}", condition);
            }
        }
    }
}
