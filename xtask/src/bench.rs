// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench`: builds the release binary and runs the figures on it, with an API server and
//! a kubelet where this machine can have them.

use std::path::{Path, PathBuf};

use crate::cluster::{self, Cluster, Options};
use crate::error::Error;
use crate::process::command;

/// Prints every figure beside its budget, as a table or with `-o json`; whether it could.
///
/// # Errors
/// If cargo or the cluster cannot be started.
pub fn run(root: &Path, target: &Path, json: bool) -> Result<bool, Error> {
    let cargo =
        |task: &'static [&str]| [&["cargo"], task, &["--quiet", "--release", "--locked"]].concat();
    let build = cargo(&["build", "--package=slicewright", "--package=nvmlsim"]);
    let examples = cargo(&["build", "--package=xtask", "--example=figures"]);
    let mut figures = cargo(&["run", "--package=xtask", "--example=figures"]);
    if json {
        figures.extend(["--", "-o", "json"]);
    }
    for words in [&build, &examples] {
        if !succeeds(root, words, &[])? {
            return Ok(false);
        }
    }
    // Nothing may be built any more while something is measured.
    let cluster = start_cluster(root, target)?;
    let variables = cluster.as_ref().map(variables).unwrap_or_default();
    succeeds(root, &figures, &variables)
}

fn succeeds(root: &Path, words: &[&str], variables: &[(&str, PathBuf)]) -> Result<bool, Error> {
    let mut program = command(root, words);
    program.envs(variables.iter().map(|(name, value)| (name, value)));
    let status = program.status().map_err(|source| Error::Run {
        command: words.join(" "),
        source,
    })?;
    Ok(status.success())
}

/// A cluster with a node without GPUs: the figures bring a simulated driver of their own.
fn start_cluster(root: &Path, target: &Path) -> Result<Option<Cluster>, Error> {
    let missing = cluster::missing(root, target)?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        eprintln!("bench: this machine lacks {missing}: figures with an API server are left out");
        return Ok(None);
    }
    Cluster::up(&Options {
        root: root.to_owned(),
        target: target.to_owned(),
        folder: target.join("bench"),
        nodes: 1,
        gpus: Vec::new(),
    })
    .map(Some)
}

/// How the figures find it.
fn variables(cluster: &Cluster) -> Vec<(&'static str, PathBuf)> {
    let node = cluster.nodes().first();
    let kubelet = node.map(|node| node.disk().join("var/lib/kubelet"));
    let mut variables = vec![
        ("SLICEWRIGHT_BENCH_KUBECONFIG", cluster.kubeconfig()),
        ("SLICEWRIGHT_BENCH_KUBECTL", cluster.kubectl_program()),
    ];
    variables.extend(kubelet.map(|path| ("SLICEWRIGHT_BENCH_KUBELET", path)));
    variables
}
