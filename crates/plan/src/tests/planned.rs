// SPDX-License-Identifier: Apache-2.0
//! What plans do, and how they are reported.

use geometry::Layout;
use geometry::inventory::Gpu;
use units::Mode;

use super::{a_gpu, holder, inventory_of, name, planned, steps, wish};
use crate::testing::{machine, put};
use crate::{GpuWish, Policy, Refusal, Report, Wish, impact, plan};

const SEVEN: [(&str, u8); 7] = [
    ("1g.10gb", 0),
    ("1g.10gb", 1),
    ("1g.10gb", 2),
    ("1g.10gb", 3),
    ("1g.10gb", 4),
    ("1g.10gb", 5),
    ("1g.10gb", 6),
];

fn eight(instances: &[(&str, u8)]) -> Vec<Gpu> {
    (0..8)
        .map(|index| a_gpu(index, "H100-80GB-SXM", instances))
        .collect()
}

#[test]
fn eight_gpus_from_empty_take_two_calls_a_slice() {
    let wished: Vec<(u32, &str)> = (0..8).map(|index| (index, "7x1g.10gb")).collect();
    let plan = planned(eight(&[]), &wished).unwrap();
    let impact = impact(&plan);
    assert_eq!((impact.instances_created, impact.driver_calls), (56, 112));
}

#[test]
fn mig_off_on_one_gpu_leaves_the_others() {
    let mut wished: Vec<(u32, &str)> = (1..8).map(|index| (index, "7x1g.10gb")).collect();
    wished.push((0, "off"));
    let plan = planned(eight(&SEVEN), &wished).unwrap();
    let impact = impact(&plan);
    assert_eq!((impact.instances_kept, impact.instances_destroyed), (49, 7));
    assert!(plan.gpus[1..].iter().all(|gpu| gpu.steps.is_empty()));
}

#[test]
fn one_more_slice_is_one_more_instance() {
    let gpus = vec![a_gpu(0, "H100-80GB-SXM", &SEVEN[..3])];
    let plan = planned(gpus, &[(0, "4x1g.10gb")]).unwrap();
    let created = &plan.gpus[0].create;
    assert_eq!((created.len(), plan.gpus[0].keep.len()), (1, 3));
    assert_eq!(plan.gpus[0].steps.len(), 2);
}

#[test]
fn what_goes_goes_before_what_comes() {
    let gpus = vec![a_gpu(0, "H100-80GB-SXM", &[("1g.10gb", 0), ("3g.40gb", 4)])];
    let plan = planned(gpus, &[(0, "1g.10gb,2g.20gb,1g.20gb,2g.20gb")]).unwrap();
    assert_eq!(
        steps(&plan.gpus[0]),
        [
            "-ci 3g.40gb@4",
            "-gi 3g.40gb@4",
            "+gi 2g.20gb@2",
            "+ci 2g.20gb@2",
            "+gi 2g.20gb@4",
            "+ci 2g.20gb@4",
            "+gi 1g.20gb@6",
            "+ci 1g.20gb@6",
        ]
    );
}

#[test]
fn slices_inside_an_instance_that_stays() {
    let mut gpu = a_gpu(0, "A100-80GB", &[]);
    let slice = |text, start| (name(text), start);
    put(
        &mut gpu,
        &name("3g.40gb"),
        4,
        &[slice("1c.3g.40gb", 0), slice("1c.3g.40gb", 1)],
    );
    gpu.instances[0].compute[1].holders.push(holder(8, "serve"));
    let wished = [(0, "1c.3g.40gb")];
    let plan = planned(vec![gpu.clone()], &wished).unwrap();
    let report = serde_json::to_value(Report::planned(&plan)).unwrap();
    assert_eq!(
        report["gpus"][0]["keep"],
        serde_json::json!([{
            "profile": "3g.40gb", "start": 4, "size": 4,
            "compute": [{"profile": "1c.3g.40gb"}],
            "compute_destroyed": [{"profile": "1c.3g.40gb"}],
        }])
    );
    assert_eq!(plan.gpus[0].keep[0].compute[0].placement.unwrap().start, 1);
    assert_eq!(impact(&plan).driver_calls, 1);
}

#[test]
fn the_report_is_as_documented() {
    let gpus = vec![
        a_gpu(0, "H100-80GB-SXM", &[("1g.10gb", 0)]),
        a_gpu(1, "H100-80GB-SXM", &[]),
    ];
    let plan = planned(gpus, &[(0, "1g.10gb,3g.40gb")]).unwrap();
    assert_eq!(
        serde_json::to_string(&Report::planned(&plan)).unwrap(),
        concat!(
            r#"{"version":"v1","outcome":"change","gpus":[{"index":0,"#,
            r#""uuid":"GPU-00000000-0000-0000-0000-000000000000","mode":"on","reset":false,"#,
            r#""keep":[{"profile":"1g.10gb","start":0,"size":1,"compute":[{"profile":"1g.10gb"}]}],"#,
            r#""destroy":[],"#,
            r#""create":[{"profile":"3g.40gb","start":4,"size":4,"compute":[{"profile":"3g.40gb"}]}]}],"#,
            r#""impact":{"instances_kept":1,"instances_destroyed":0,"instances_created":1,"#,
            r#""gpus_reset":[],"reboot":false,"holders":[],"driver_calls":2},"#,
            r#""warnings":[],"refusal":null}"#
        )
    );
    let refusal = Refusal {
        choices: vec!["7x1g.10gb".into()],
        ..Refusal::new(units::Code::LayoutDoesNotFit, "no")
    };
    let report = serde_json::to_value(Report::refused(refusal)).unwrap();
    assert_eq!(report["outcome"], "refused");
    assert_eq!(
        report["refusal"],
        serde_json::json!({
            "code": "layout-does-not-fit", "message": "no", "choices": ["7x1g.10gb"],
        })
    );
}

#[test]
fn resets_and_holders_are_reported() {
    let mut gpu = a_gpu(0, "A100-40GB", &[("1g.5gb", 0)]);
    gpu.instances[0].compute[0].holders.push(holder(7, "train"));
    let policy = Policy {
        ignore_holders: true,
        ..Policy::default()
    };
    let plan = plan(&machine(vec![gpu]), &wish(&[(0, "off")]), &policy).unwrap();
    let report = serde_json::to_value(Report::planned(&plan)).unwrap();
    assert_eq!(report["gpus"][0]["reset"], true);
    assert_eq!(
        report["impact"],
        serde_json::json!({
            "instances_kept": 0, "instances_destroyed": 1, "instances_created": 0,
            "gpus_reset": [0], "reboot": false,
            "holders": [{"gpu": 0, "pid": 7, "name": "train"}], "driver_calls": 3,
        })
    );
}

#[test]
fn a_recorded_layout_comes_back_where_it_was() {
    let recorded = a_gpu(0, "H100-80GB-SXM", &[("1g.10gb", 3), ("2g.20gb", 4)]).layout();
    let wished = Wish {
        gpus: [(0, GpuWish::Exact(recorded.clone()))].into(),
        warnings: Vec::new(),
    };
    let there = a_gpu(0, "H100-80GB-SXM", &[("1g.10gb", 6), ("2g.20gb", 4)]);
    let plan = plan(&machine(vec![there]), &wished, &Policy::default()).unwrap();
    assert_eq!(plan.gpus[0].after, recorded);
    assert_eq!(plan.gpus[0].keep.len(), 1);
}

#[test]
fn nothing_to_do_is_said() {
    let plan = planned(eight(&SEVEN), &[(3, "7x1g.10gb")]).unwrap();
    let report = serde_json::to_value(Report::planned(&plan)).unwrap();
    assert_eq!(report["outcome"], "nothing");
    assert_eq!(report["gpus"].as_array().unwrap().len(), 1);
    assert_eq!(report["impact"]["instances_kept"], 7);
}

#[test]
fn a_gpu_without_mig_has_its_mode_off() {
    let plan = plan(
        &inventory_of(&["T4"]),
        &wish(&[(0, "off")]),
        &Policy::default(),
    )
    .unwrap();
    assert_eq!(
        (plan.gpus[0].mode_after, plan.is_empty()),
        (Mode::Off, true)
    );
}

#[test]
fn warnings_of_several_gpus_are_one() {
    let mut orphan = a_gpu(0, "B200", &[]);
    put(&mut orphan, &name("1g.23gb"), 0, &[]);
    let gpus = vec![orphan, a_gpu(1, "B200", &[])];
    let plan = planned(gpus, &[(0, "7g.180gb"), (1, "7g.180gb")]).unwrap();
    let warnings: Vec<String> = plan
        .warnings
        .iter()
        .map(|w| format!("{}: {}", w.code, w.message))
        .collect();
    assert_eq!(
        warnings,
        [
            "estimated-board: GPUs 0, 1 (NVIDIA B200): the placements of B200 are estimates; the \
             driver may refuse them, and then all is put back",
            "orphan-instance: GPU 0 (NVIDIA B200): GPU instance 1g.23gb at 0:1 has no compute \
             instance, so nothing can use it",
        ]
    );
    assert_eq!(plan.gpus[0].after, plan.gpus[1].after);
    assert_ne!(plan.gpus[0].before, Layout::default());
}
