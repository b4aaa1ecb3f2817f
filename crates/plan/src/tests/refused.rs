// SPDX-License-Identifier: Apache-2.0
//! What is refused, and what a person is told then.

use super::{a_gpu, holder, name, planned, wish};
use crate::testing::{machine, put};
use crate::{Policy, Refusal, plan};

#[track_caller]
fn told(refusal: &Refusal, code: &str, message: &str, choices: &[&str]) {
    assert_eq!(refusal.code.as_str(), code);
    assert_eq!(refusal.message, message);
    assert_eq!(refusal.choices, choices);
}

#[test]
fn no_such_gpu() {
    let gpus = vec![a_gpu(0, "A30", &[]), a_gpu(1, "A30", &[])];
    told(
        &planned(gpus, &[(4, "off")]).unwrap_err(),
        "no-gpu-matches",
        "there is no GPU 4 on this machine",
        &["0", "1"],
    );
}

#[test]
fn a_gpu_without_mig() {
    told(
        &planned(vec![a_gpu(0, "T4", &[])], &[(0, "empty")]).unwrap_err(),
        "mig-unsupported",
        "GPU 0 (Tesla T4) has no MIG; leave it out, or ask for MIG off",
        &[],
    );
}

#[test]
fn a_board_whose_placements_nobody_knows() {
    let refusal = planned(vec![a_gpu(0, "A100-64GB", &[])], &[(0, "1g.8gb")]).unwrap_err();
    assert_eq!(refusal.code.as_str(), "board-unknown");
    assert!(
        refusal
            .message
            .starts_with("GPU 0 (NVIDIA A100-SXM-64GB): "),
        "{refusal}"
    );
    assert!(planned(vec![a_gpu(0, "A100-64GB", &[])], &[(0, "off")]).is_ok());
}

#[test]
fn a_profile_of_another_board() {
    told(
        &planned(vec![a_gpu(0, "A30", &[])], &[(0, "1g.5gb")]).unwrap_err(),
        "profile-not-offered",
        "GPU 0 (NVIDIA A30) does not offer 1g.5gb; the nearest is 1g.6gb",
        &["1g.6gb", "1g.6gb+me", "2g.12gb", "2g.12gb+me", "4g.24gb"],
    );
}

#[test]
fn a_layout_that_does_not_fit() {
    let refusal = planned(vec![a_gpu(0, "H100-80GB-SXM", &[])], &[(0, "8x1g.10gb")]).unwrap_err();
    told(
        &refusal,
        "layout-does-not-fit",
        "GPU 0 (NVIDIA H100 80GB HBM3) cannot hold 8x1g.10gb: no placement exists; the most of it \
         that fits is 7x1g.10gb",
        &["7x1g.10gb"],
    );
}

#[test]
fn the_first_gpu_speaks_for_all() {
    let gpus = (0..3).map(|index| a_gpu(index, "A30", &[])).collect();
    let refusal = planned(gpus, &[(0, "4g.24gb"), (1, "9g.9gb"), (2, "1g.5gb")]).unwrap_err();
    assert!(
        refusal
            .message
            .starts_with("GPU 1 (NVIDIA A30) does not offer 9g.9gb")
    );
    assert!(
        refusal.message.ends_with("(1 more GPU is refused too)"),
        "{refusal}"
    );
}

#[test]
fn a_slice_in_use() {
    let mut gpu = a_gpu(2, "H100-80GB-SXM", &[("1g.10gb", 0), ("3g.40gb", 4)]);
    gpu.instances[1].compute[0]
        .holders
        .push(holder(4711, "train.py"));
    told(
        &planned(vec![gpu.clone()], &[(2, "7g.80gb")]).unwrap_err(),
        "in-use",
        "GPU 2 (NVIDIA H100 80GB HBM3): slice 3g.40gb of the GPU instance at 4:4 is used by process \
         4711 (train.py), and the change would destroy it; end these processes or wait for them, \
         or ask for a layout that keeps it",
        &[],
    );
    let around = planned(vec![gpu.clone()], &[(2, "3g.40gb,4g.40gb")]).unwrap();
    assert_eq!(around.gpus[0].keep[0].placement.start, 4);
    let policy = Policy {
        ignore_holders: true,
        ..Policy::default()
    };
    let ignored = plan(&machine(vec![gpu]), &wish(&[(2, "7g.80gb")]), &policy).unwrap();
    assert_eq!(ignored.gpus[0].holders, [holder(4711, "train.py")]);
}

#[test]
fn a_slice_that_could_not_be_put_back() {
    let mut gpu = a_gpu(0, "A100-80GB", &[]);
    put(&mut gpu, &name("3g.40gb"), 4, &[(name("1c.3g.40gb"), 0)]);
    gpu.instances[0].compute[0].placement = None;
    let refusal = planned(vec![gpu], &[(0, "7g.80gb")]).unwrap_err();
    assert_eq!(refusal.code.as_str(), "not-supported-yet");
}
