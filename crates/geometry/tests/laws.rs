// SPDX-License-Identifier: Apache-2.0
//! Laws of the placer, against a second, plain implementation that tries everything.

#[cfg(test)]
#[path = "support/naive.rs"]
mod naive;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use geometry::place::{PlaceError, Placed, Present, Wanted, place};
    use geometry::{Board, Layout, Profile, catalogue};
    use proptest::prelude::*;
    use proptest::sample::Index;
    use units::{Placement, ProfileName};

    use super::naive::{self, Score, Slices};

    static BOARDS: LazyLock<Vec<Board>> = LazyLock::new(|| {
        let keys = ["A30", "H100-80GB-SXM", "RTX-PRO-6000-SE", "A100-40GB"];
        keys.iter()
            .map(|key| catalogue::by_key(key).unwrap())
            .collect()
    });

    type Sets = Vec<Vec<(&'static Profile, Placement)>>;
    static SETS: LazyLock<Vec<Sets>> =
        LazyLock::new(|| BOARDS.iter().map(naive::all_sets).collect());

    /// A board, what is on it, and what is wanted.
    #[derive(Clone, Debug)]
    struct Case {
        board: usize,
        present: Vec<Present>,
        wanted: Slices,
    }

    /// One random choice: a profile, a place, how to fill it, what is in use.
    type Choice = (Index, Index, Vec<(Index, Index, bool)>);

    fn choice() -> impl Strategy<Value = Choice> {
        let inside = prop::collection::vec(any::<(Index, Index, bool)>(), 0..4);
        (any::<Index>(), any::<Index>(), inside)
    }

    fn present(board: &Board, choices: &[Choice]) -> Vec<Present> {
        let mut set: Vec<(&Profile, Placement)> = Vec::new();
        let mut present = Vec::new();
        for (profile, place, inside) in choices {
            let profile = profile.get(&board.profiles);
            let place = *place.get(&profile.placements);
            if !naive::legal(board, &[set.as_slice(), &[(profile, place)]].concat()) {
                continue;
            }
            set.push((profile, place));
            let mut parts: Vec<(u8, Placement, bool)> = Vec::new();
            for (compute, place, busy) in inside {
                // Half of the instances have one slice of full size, as most have.
                let compute = match inside.len() % 2 {
                    0 => compute.get(&profile.compute),
                    _ => profile.full_compute().unwrap(),
                };
                let place = *place.get(&compute.placements);
                if parts.iter().all(|(_, other, _)| !other.overlaps(place)) {
                    parts.push((compute.slices, place, *busy));
                }
            }
            parts.sort_by_key(|(_, place, _)| *place);
            let busy = parts.iter().map(|(_, _, busy)| *busy).collect();
            let parts: Vec<(u8, Placement)> = parts.iter().map(|(s, p, _)| (*s, *p)).collect();
            present.push(Present {
                spec: naive::instance(profile, place, &parts),
                busy,
            });
        }
        present
    }

    fn case() -> impl Strategy<Value = Case> {
        let wanted = prop::collection::vec(any::<(Index, Index, bool)>(), 0..6);
        let there = prop::collection::vec(choice(), 0..9);
        (0..BOARDS.len(), there, wanted).prop_map(|(at, choices, words)| {
            let board = &BOARDS[at];
            let mut wanted = Slices::new();
            for (profile, compute, partial) in words {
                let profile = profile.get(&board.profiles);
                let slices = match partial {
                    true => compute.get(&profile.compute).slices,
                    false => profile.slices,
                };
                let name = profile.name.with_compute(slices).unwrap();
                *wanted.entry(name).or_insert(0) += 1;
            }
            Case {
                board: at,
                present: present(board, &choices),
                wanted,
            }
        })
    }

    /// Something near what is there is wanted: some slices fewer, some more.
    fn nearby() -> impl Strategy<Value = Case> {
        (case(), any::<u16>()).prop_map(|(mut case, dropped)| {
            let compute = case
                .present
                .iter()
                .flat_map(|present| &present.spec.compute);
            for (at, compute) in compute.enumerate() {
                if dropped >> (at % 16) & 1 == 0 {
                    *case.wanted.entry(compute.profile.clone()).or_insert(0) += 1;
                }
            }
            case
        })
    }

    fn answer(case: &Case) -> Result<Placed, PlaceError> {
        let wanted = Wanted::Slices(case.wanted.clone());
        place(&BOARDS[case.board], &case.present, &wanted)
    }

    fn best(case: &Case, wanted: &Slices) -> Option<Score> {
        naive::best(
            &BOARDS[case.board],
            &SETS[case.board],
            &case.present,
            wanted,
        )
    }

    fn check(case: &Case) -> Result<(), TestCaseError> {
        let board = &BOARDS[case.board];
        match answer(case) {
            Ok(placed) => {
                let layout = naive::outcome(&case.present, &placed);
                prop_assert!(naive::legal_layout(board, &layout));
                prop_assert_eq!(
                    &Layout {
                        instances: layout.clone()
                    }
                    .slices(),
                    &case.wanted
                );
                let score = naive::score(board, &case.present, &layout);
                prop_assert_eq!(Some(score), best(case, &case.wanted));
                let touched = placed.keep.len() + placed.destroy.len();
                prop_assert_eq!(touched, case.present.len());
            }
            Err(PlaceError::DoesNotFit { largest, .. }) => {
                prop_assert_eq!(best(case, &case.wanted), None);
                prop_assert!(largest.len() <= 5);
                let sizes: Vec<u32> = largest.iter().map(|part| part.values().sum()).collect();
                prop_assert!(sizes.is_sorted_by(|a, b| a >= b));
                for part in &largest {
                    prop_assert!(best(case, part).is_some());
                    for (name, count) in &case.wanted {
                        let mut more = part.clone();
                        *more.entry(name.clone()).or_insert(0) += 1;
                        let wanted = more[name] <= *count;
                        prop_assert!(!wanted || best(case, &more).is_none(), "{part:?}: {name}");
                    }
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]

        #[test]
        fn an_answer_is_legal_and_the_best_and_a_refusal_is_true(case in case()) {
            check(&case)?;
        }

        #[test]
        fn so_it_is_when_little_changes(case in nearby()) {
            check(&case)?;
        }
    }

    proptest! {
        #[test]
        fn order_of_input_never_matters(case in nearby(), turn in any::<Index>()) {
            let mut turned = case.clone();
            if !turned.present.is_empty() {
                let by = turn.index(turned.present.len());
                turned.present.rotate_left(by);
                turned.present.reverse();
            }
            match (answer(&case), answer(&turned)) {
                (Ok(one), Ok(other)) => {
                    prop_assert_eq!(&one.create, &other.create);
                    let specs = |case: &Case, list: &[usize]| -> Vec<_> {
                        list.iter().map(|at| case.present[*at].spec.clone()).collect()
                    };
                    prop_assert_eq!(specs(&case, &one.destroy), specs(&turned, &other.destroy));
                    prop_assert_eq!(
                        naive::outcome(&case.present, &one),
                        naive::outcome(&turned.present, &other)
                    );
                }
                (one, other) => prop_assert_eq!(one.err(), other.err()),
            }
            prop_assert_eq!(answer(&case), answer(&case));
        }

        #[test]
        fn a_recorded_layout_comes_back_exactly(from in case(), to in nearby()) {
            let to_present = &to.present;
            let Ok(placed) = answer(&to) else { return Ok(()); };
            let layout = Layout { instances: naive::outcome(to_present, &placed) };
            let board = &BOARDS[to.board];
            let present: &[Present] = if from.board == to.board { &from.present } else { &[] };
            let wanted = Wanted::Exact(layout.clone());
            let exact = place(board, present, &wanted).unwrap();
            prop_assert_eq!(&naive::outcome(present, &exact), &layout.instances);
            // What is there at its place stays.
            for kept in &layout.instances {
                let there = present.iter().any(|p| {
                    p.spec.placement == kept.placement && p.spec.driver_id == kept.driver_id
                });
                prop_assert_eq!(there, !exact.create.iter().any(|new| new.placement == kept.placement));
            }
            let idle = layout.instances.into_iter().map(|spec| Present { spec, busy: Vec::new() });
            let idle: Vec<Present> = idle.collect();
            let again = place(board, &idle, &wanted).unwrap();
            prop_assert!(again.create.is_empty() && again.destroy.is_empty());
            prop_assert!(again.keep.iter().all(|kept| kept.destroy_compute.is_empty()
                && kept.create_compute.is_empty()));
        }

        #[test]
        fn a_name_is_offered_or_answered_with_the_nearest(
            at in any::<Index>(), slices in 1..9_u8, memory in 1..200_u16, compute in 1..9_u8,
            attribute in prop::sample::select(vec!["", "+me", "-me", "+gfx", "+me.all"]),
        ) {
            let board = at.get(&BOARDS);
            let text = format!("{}c.{slices}g.{memory}gb{attribute}", compute.min(slices));
            let name: ProfileName = text.parse().unwrap();
            let wanted = Wanted::Slices([(name.clone(), 1)].into());
            match place(board, &[], &wanted) {
                Ok(placed) => {
                    let made = &placed.create[0].compute[0].profile;
                    prop_assert_eq!(made.gpu_slices(), slices);
                    prop_assert_eq!(made.compute_slices(), name.compute_slices());
                    prop_assert_eq!(made.attributes(), name.attributes());
                    prop_assert!(made.memory_gb().abs_diff(memory) * 10 <= made.memory_gb());
                }
                Err(PlaceError::NotOffered { nearest, .. }) => {
                    let nearest = *nearest.unwrap();
                    let like = |p: &&Profile| p.slices == slices;
                    let exact = |p: &&Profile| like(p) && p.name.attributes() == name.attributes();
                    prop_assert!(board.profiles.iter().any(|p| p.name == nearest.gpu_instance()));
                    if board.profiles.iter().any(|p| like(&p)) {
                        prop_assert_eq!(nearest.gpu_slices(), slices);
                    }
                    if board.profiles.iter().any(|p| exact(&p)) {
                        prop_assert_eq!(nearest.attributes(), name.attributes());
                    }
                    let wanted = Wanted::Slices([(nearest, 1)].into());
                    prop_assert!(place(board, &[], &wanted).is_ok());
                }
                Err(other) => prop_assert!(false, "{other}"),
            }
        }
    }
}
