// SPDX-License-Identifier: Apache-2.0
//! Recorded layouts: put back exactly, or refused with the reason.

#[cfg(test)]
mod support;

#[cfg(test)]
mod tests {
    use geometry::Layout;
    use geometry::place::{PlaceError, Wanted, place};
    use units::Placement;

    use super::support::{board, name, present, show};

    const H100: &str = "H100-80GB-SXM";

    fn layout(key: &str, text: &str) -> Layout {
        let specs = present(&board(key), text)
            .into_iter()
            .map(|present| present.spec);
        Layout {
            instances: specs.collect(),
        }
    }

    fn check(key: &str, there: &str, wanted: &str, expected: &str) {
        let board = board(key);
        let present = present(&board, there);
        let answer = match place(&board, &present, &Wanted::Exact(layout(key, wanted))) {
            Ok(placed) => show(&present, &placed),
            Err(error) => error.to_string(),
        };
        assert_eq!(answer, expected, "{key}: {there} -> {wanted}");
    }

    #[test]
    fn everything_goes_where_it_was() {
        check(
            H100,
            "",
            "3g.40gb@4 1g.10gb@2",
            "create 1g.10gb@2 3g.40gb@4",
        );
        check(
            H100,
            "1g.10gb@2* 1g.10gb@3",
            "3g.40gb@4 1g.10gb@2",
            "keep 1g.10gb@2 / destroy 1g.10gb@3 / create 3g.40gb@4",
        );
        check(
            H100,
            "1g.10gb@6",
            "1g.10gb@2",
            "destroy 1g.10gb@6 / create 1g.10gb@2",
        );
        check(H100, "1g.10gb@6", "", "destroy 1g.10gb@6");
    }

    #[test]
    fn compute_instances_too() {
        check(
            "A100-40GB",
            "3g.20gb@0[1c 1c* 1c]",
            "3g.20gb@0[2c 1c]",
            "keep 3g.20gb@0[-1c@0 -1c@1 +2c@0]",
        );
        check(
            "A100-40GB",
            "3g.20gb@0[1c]",
            "3g.20gb@0[]",
            "keep 3g.20gb@0[-1c@0]",
        );
        check("A100-40GB", "", "3g.20gb@0[]", "create 3g.20gb@0[]");
    }

    #[test]
    fn an_unknown_place_inside_matches_any() {
        let board = board("A100-40GB");
        let mut there = present(&board, "3g.20gb@0[1c 1c]");
        there[0]
            .spec
            .compute
            .iter_mut()
            .for_each(|compute| compute.placement = None);
        let wanted = Wanted::Exact(layout("A100-40GB", "3g.20gb@0[1c 1c 1c]"));
        let placed = place(&board, &there, &wanted).unwrap();
        assert_eq!(placed.keep[0].destroy_compute, Vec::<usize>::new());
        assert_eq!(placed.keep[0].create_compute.len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        check(
            H100,
            "",
            "4g.40gb@0 3g.40gb@0",
            "4g.40gb cannot be at 0:4 of H100-80GB-SXM: another instance takes part of that place",
        );
        check(
            H100,
            "",
            "1g.10gb+me@0 1g.10gb+me@1",
            "1g.10gb+me cannot be at 1:1 of H100-80GB-SXM: the board takes no more of that profile",
        );
        check(
            "A30",
            "",
            "1g.6gb+me@0 2g.12gb+me@2",
            "2g.12gb+me cannot be at 2:2 of A30: other instances take the media engines that it needs",
        );
        check(
            "A100-40GB",
            "",
            "3g.20gb@0[2c 2c]",
            "2c.3g.20gb cannot be at 2:2 of A100-40GB: the profile has no such place",
        );
        let mut moved = layout(H100, "2g.20gb@4");
        moved.instances[0].placement = Placement::new(6, 2);
        let error = place(&board(H100), &[], &Wanted::Exact(moved)).unwrap_err();
        assert!(matches!(
            error,
            PlaceError::Illegal {
                reason: "the profile has no such place",
                ..
            }
        ));
    }

    #[test]
    fn a_layout_of_another_board_is_refused() {
        check("A30", "", "1g.6gb@0", "create 1g.6gb@0");
        let foreign = layout("A30", "1g.6gb@0");
        let error = place(&board("A100-40GB"), &[], &Wanted::Exact(foreign)).unwrap_err();
        let PlaceError::NotOffered { profile, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(profile, name("1g.6gb"));
    }
}
