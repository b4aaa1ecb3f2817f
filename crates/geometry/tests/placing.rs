// SPDX-License-Identifier: Apache-2.0
//! What the placer decides, case by case.

#[cfg(test)]
mod support;

use geometry::place::{PlaceError, Wanted, place};
use support::{board, name, present, show, slices};

fn check(key: &str, there: &str, wanted: &str, expected: &str) {
    let board = board(key);
    let present = present(&board, there);
    let answer = match place(&board, &present, &Wanted::Slices(slices(wanted))) {
        Ok(placed) => show(&present, &placed),
        Err(PlaceError::DoesNotFit { largest, .. }) => {
            let part = |part: &std::collections::BTreeMap<units::ProfileName, u32>| {
                let words: Vec<String> = part.iter().map(|(p, n)| format!("{n}x{p}")).collect();
                words.join(" ")
            };
            format!(
                "no: {}",
                largest.iter().map(part).collect::<Vec<_>>().join(" | ")
            )
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(answer, expected, "{key}: {there} -> {wanted}");
}

const H100: &str = "H100-80GB-SXM";

#[test]
fn an_empty_gpu_is_filled_so_that_large_profiles_still_fit() {
    check(H100, "", "1g.10gb", "create 1g.10gb@6");
    check(H100, "", "2x1g.10gb", "create 1g.10gb@4 1g.10gb@5");
    check(H100, "", "1g.20gb", "create 1g.20gb@6");
    check(H100, "", "3g.40gb", "create 3g.40gb@4");
    check(H100, "", "2x3g.40gb", "create 3g.40gb@0 3g.40gb@4");
    check(H100, "", "4g.40gb 3g.40gb", "create 4g.40gb@0 3g.40gb@4");
    check("A30", "", "1g.6gb", "create 1g.6gb@0");
    check(
        "RTX-PRO-6000-SE",
        "",
        "2x1g.24gb",
        "create 1g.24gb@0 1g.24gb@3",
    );
}

#[test]
fn what_the_driver_refuses_in_some_order_is_placed() {
    check(
        H100,
        "",
        "2x1g.10gb 2g.20gb 3g.40gb",
        "create 1g.10gb@0 1g.10gb@1 2g.20gb@2 3g.40gb@4",
    );
    check(
        H100,
        "",
        "6x1g.10gb 1g.20gb",
        "create 1g.10gb@0 1g.10gb@1 1g.10gb@2 1g.10gb@3 1g.10gb@4 1g.10gb@5 1g.20gb@6",
    );
}

#[test]
fn what_is_wanted_already_stays() {
    check(
        H100,
        "1g.10gb@0 1g.10gb@1 3g.40gb@4",
        "1g.10gb 3g.40gb",
        "keep 1g.10gb@0 3g.40gb@4 / destroy 1g.10gb@1",
    );
    check(
        H100,
        "1g.10gb@1* 1g.10gb@0",
        "1g.10gb",
        "keep 1g.10gb@1 / destroy 1g.10gb@0",
    );
    check(
        H100,
        "1g.10gb@3",
        "4x1g.10gb 3g.40gb",
        "keep 1g.10gb@3 / create 1g.10gb@0 1g.10gb@1 1g.10gb@2 3g.40gb@4",
    );
    check(H100, "", "", "");
    check(H100, "1g.10gb@3*", "", "destroy 1g.10gb@3");
}

#[test]
fn of_two_that_cannot_both_stay_the_one_in_use_does() {
    // 4g needs the left half: of the small ones only those on the right can stay.
    check(
        H100,
        "1g.10gb@0 1g.10gb@6",
        "4g.40gb 1g.10gb",
        "keep 1g.10gb@6 / destroy 1g.10gb@0 / create 4g.40gb@0",
    );
    // 3g fits beside either; the one in use decides where.
    check(
        H100,
        "1g.10gb@0 1g.10gb@1 1g.10gb@4*",
        "1g.10gb 3g.40gb",
        "keep 1g.10gb@4 / destroy 1g.10gb@0 1g.10gb@1 / create 3g.40gb@0",
    );
    check(
        H100,
        "1g.10gb@0 1g.10gb@1 1g.10gb@4",
        "2x1g.10gb 3g.40gb",
        "keep 1g.10gb@0 1g.10gb@1 / destroy 1g.10gb@4 / create 3g.40gb@4",
    );
}

#[test]
fn names_that_drivers_have_used_mean_the_same() {
    check("A100-80GB", "3g.40gb@4", "3g.39gb", "keep 3g.40gb@4");
    check(
        "A100-80GB",
        "",
        "3g.39gb 3g.40gb",
        "create 3g.40gb@0 3g.40gb@4",
    );
}

#[test]
fn compute_instances_of_one_profile_fill_one_gpu_instance_first() {
    check(
        "A100-40GB",
        "",
        "3x1c.3g.20gb",
        "create 3g.20gb@4[1c@0 1c@1 1c@2]",
    );
    check(
        "A100-40GB",
        "",
        "4x1c.3g.20gb",
        "create 3g.20gb@0[1c@0 1c@1 1c@2] 3g.20gb@4[1c@0]",
    );
    check(
        "A100-40GB",
        "",
        "2c.4g.20gb 2x1c.4g.20gb",
        "create 4g.20gb@0[2c@0 1c@2 1c@3]",
    );
    check(
        "A100-40GB",
        "",
        "2x2c.3g.20gb 2x1c.3g.20gb",
        "create 3g.20gb@0[2c@0 1c@2] 3g.20gb@4[2c@0 1c@2]",
    );
    check(
        "A100-40GB",
        "",
        "3g.20gb 1c.3g.20gb",
        "create 3g.20gb@0 3g.20gb@4[1c@0]",
    );
}

#[test]
fn running_compute_instances_stay_where_they_are() {
    check(
        "A100-40GB",
        "3g.20gb@0[1c*] 3g.20gb@4[1c*]",
        "2x1c.3g.20gb",
        "keep 3g.20gb@0 3g.20gb@4",
    );
    check(
        "A100-40GB",
        "3g.20gb@0[1c 1c* 1c]",
        "1c.3g.20gb",
        "keep 3g.20gb@0[-1c@0 -1c@2]",
    );
    check(
        "A100-40GB",
        "3g.20gb@0[1c 1c* 1c]",
        "2x1c.3g.20gb",
        "keep 3g.20gb@0[-1c@2]",
    );
    check(
        "A100-40GB",
        "4g.20gb@0[1c 1c* 1c 1c]",
        "1c.4g.20gb 2c.4g.20gb",
        "keep 4g.20gb@0[-1c@0 -1c@2 -1c@3 +2c@2]",
    );
    check(
        "A100-40GB",
        "3g.20gb@4[1c 1c 1c] 3g.20gb@0[1c]",
        "3x1c.3g.20gb",
        "keep 3g.20gb@4 / destroy 3g.20gb@0",
    );
    check(
        "A100-40GB",
        "3g.20gb@4",
        "3x1c.3g.20gb",
        "keep 3g.20gb@4[-3c@0 +1c@0 +1c@1 +1c@2]",
    );
}

#[test]
fn an_orphan_is_completed_or_goes() {
    check(H100, "3g.40gb@0[]", "3g.40gb", "keep 3g.40gb@0[+3c@0]");
    check(
        H100,
        "3g.40gb@0[]",
        "1g.10gb",
        "destroy 3g.40gb@0 / create 1g.10gb@6",
    );
    check(
        H100,
        "3g.40gb@0[] 3g.40gb@4*",
        "3g.40gb",
        "keep 3g.40gb@4 / destroy 3g.40gb@0",
    );
}

#[test]
fn what_cannot_fit_is_told_with_what_does() {
    check(H100, "", "8x1g.10gb", "no: 7x1g.10gb");
    check(H100, "", "2x4g.40gb", "no: 1x4g.40gb");
    check(
        H100,
        "",
        "1000x1g.10gb 1000x7g.80gb",
        "no: 7x1g.10gb | 1x7g.80gb",
    );
    check(
        H100,
        "",
        "2x3g.40gb 2x1g.10gb",
        "no: 2x1g.10gb 1x3g.40gb | 2x3g.40gb",
    );
    check(H100, "", "2x1g.10gb+me", "no: 1x1g.10gb+me");
    check(
        "A30",
        "",
        "1g.6gb+me 2g.12gb+me",
        "no: 1x2g.12gb+me | 1x1g.6gb+me",
    );
    check(
        "RTX-PRO-6000-SE",
        "",
        "1g.24gb+me.all 1g.24gb",
        "no: 1x1g.24gb+me.all | 1x1g.24gb",
    );
    check("A100-40GB", "", "7x1c.3g.20gb", "no: 6x1c.3g.20gb");
    check(
        "A100-40GB",
        "",
        "3x2c.3g.20gb 9x1c.3g.20gb",
        "no: 6x1c.3g.20gb | 4x1c.3g.20gb 1x2c.3g.20gb | 2x1c.3g.20gb 2x2c.3g.20gb",
    );
}

#[test]
fn a_media_instance_takes_only_one_without_media_beside_it() {
    check(
        "RTX-PRO-6000-SE",
        "",
        "1g.24gb+me.all 3x1g.24gb-me",
        "create 1g.24gb+me.all@0 1g.24gb-me@3 1g.24gb-me@6 1g.24gb-me@9",
    );
}

#[test]
fn unknown_names_are_answered_with_the_nearest() {
    let nearest = |key: &str, wanted: &str| {
        let board = board(key);
        match place(&board, &[], &Wanted::Slices(slices(wanted))) {
            Err(PlaceError::NotOffered {
                nearest, offered, ..
            }) => {
                assert_eq!(offered.len(), board.profiles.len());
                nearest.map(|name| name.to_string()).unwrap_or_default()
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(nearest(H100, "1g.5gb"), "1g.10gb");
    assert_eq!(nearest(H100, "1g.18gb"), "1g.20gb");
    assert_eq!(nearest(H100, "1g.5gb+me"), "1g.10gb+me");
    assert_eq!(nearest(H100, "1g.10gb+gfx"), "1g.10gb");
    assert_eq!(nearest(H100, "5g.40gb"), "3g.40gb");
    assert_eq!(nearest(H100, "1c.3g.20gb"), "1c.3g.40gb");
    assert_eq!(nearest(H100, "3c.4g.40gb"), "2c.4g.40gb");
    assert_eq!(nearest("A30", "7g.40gb"), "4g.24gb");
}

#[test]
fn boards_without_tables_are_refused_unless_nothing_is_wanted() {
    check(
        "RTX-PRO-5000",
        "",
        "1g.24gb",
        "the placements of RTX-PRO-5000 are not known: its placements and driver ids are not published",
    );
    check(
        "T4",
        "",
        "1g.24gb",
        "the placements of T4 are not known: it has no MIG",
    );
    check("RTX-PRO-5000", "", "", "");
}

#[test]
fn counts_of_zero_are_as_if_absent() {
    let mut wanted = slices("1g.10gb");
    wanted.insert(name("9g.99gb"), 0);
    let placed = place(&board(H100), &[], &Wanted::Slices(wanted)).unwrap();
    assert_eq!(show(&[], &placed), "create 1g.10gb@6");
}
