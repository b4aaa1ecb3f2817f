// SPDX-License-Identifier: Apache-2.0
//! The rules that the embedded API server keeps, held against a real one: the same conversations, with
//! the same answers.

use std::path::Path;

use super::{Failure, Outcome, check};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::process;

/// Runs the tests of the rules and of kubectl with the cluster in place of the embedded server.
pub fn are_real(cluster: &Cluster) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = [
        "cargo",
        "test",
        "-q",
        "-p",
        "simcluster",
        "--test",
        "rules",
        "--test",
        "kubectl",
    ];
    let run = process::command(root, &words)
        .env("RULES_KUBECONFIG", cluster.kubeconfig())
        .env("KUBECTL", cluster.kubectl_program())
        .output();
    let run = run.map_err(|source| {
        Failure::from(Error::Run {
            command: words.join(" "),
            source,
        })
    })?;
    check(run.status.success(), || {
        let said = [run.stdout, run.stderr].concat();
        String::from_utf8_lossy(&said).into_owned()
    })
}
