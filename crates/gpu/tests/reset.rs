// SPDX-License-Identifier: Apache-2.0
//! Reset through a program that stands in for `nvidia-smi`.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::path::PathBuf;
use std::time::Duration;

use gpu::{Error, Reset, SmiReset};
use units::GpuUuid;

/// The UUID made of one digit; the first one tells the stand-in what to do.
fn uuid(digit: char) -> GpuUuid {
    let text: String = "########-####-####-####-############"
        .chars()
        .map(|c| if c == '#' { digit } else { c })
        .collect();
    format!("GPU-{text}").parse().unwrap()
}

fn reset(gpus: &[GpuUuid], timeout: Duration) -> Result<(), Error> {
    let reset = SmiReset {
        nvidia_smi: PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/nvidia-smi")),
        driver_root: None,
        timeout,
    };
    reset.reset(gpus)
}

fn reason(gpus: &[GpuUuid]) -> String {
    match reset(gpus, Duration::from_secs(60)) {
        Err(Error::Reset {
            gpus: named,
            reason,
        }) => {
            assert_eq!(named, gpus);
            reason
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn several_gpus_are_reset_in_one_call() {
    reset(&[uuid('0'), uuid('1')], Duration::from_secs(60)).unwrap();
}

#[test]
fn a_client_that_holds_the_gpu_is_told() {
    let reason = reason(&[uuid('1')]);
    assert!(
        reason.starts_with("a process or service still has the GPU open"),
        "{reason}"
    );
    assert!(
        reason.ends_with("GPU 00000000:1A:00.0: In use by another client"),
        "{reason}"
    );
}

#[test]
fn peers_that_belong_to_the_reset_are_told() {
    let reason = reason(&[uuid('2')]);
    assert!(
        reason.contains("together with its NVLink peers"),
        "{reason}"
    );
}

#[test]
fn a_failure_without_a_word_is_still_a_failure() {
    assert_eq!(reason(&[uuid('4')]), "nvidia-smi failed without a word");
}

#[test]
fn a_program_that_hangs_is_ended() {
    let error = reset(&[uuid('3')], Duration::from_millis(50)).unwrap_err();
    assert!(error.to_string().contains("had not finished"), "{error}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let reset = SmiReset {
        nvidia_smi: PathBuf::from("/nonexistent/nvidia-smi"),
        driver_root: None,
        timeout: Duration::from_secs(60),
    };
    let error = reset.reset(&[uuid('0')]).unwrap_err().to_string();
    assert!(
        error.contains("cannot run /nonexistent/nvidia-smi"),
        "{error}"
    );
}
