// SPDX-License-Identifier: Apache-2.0
//! Scenarios on a real Kubernetes: `cargo xtask e2e`. Apart from `cargo test`, as they need root.
//!
//! One cluster for all of them. A scenario cleans up what another could stumble over, and waits for
//! what it wants to see, never for a time.

mod born;
mod churn;
mod clients;
mod cluster_policy;
mod driver;
mod endure;
mod health;
mod life;
mod opened;
mod plugin;
mod pods;
mod rbac;
mod reboot;
mod rivals;
mod rules;
mod services;
mod steps;
mod tutorial;

use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::cluster::{self, Cluster, Options};
use crate::error::Error;
use crate::image;
use crate::test::Counts;

/// What a scenario found wrong, as a sentence.
enum Failure {
    /// Something else than what must be.
    Wrong(String),
    /// Something did not work.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wrong(sentence) => f.write_str(sentence),
            Self::Error(error) => error.fmt(f),
        }
    }
}

type Outcome = Result<(), Failure>;

/// Fails with a sentence unless something holds.
fn check(holds: bool, sentence: impl FnOnce() -> String) -> Outcome {
    match holds {
        true => Ok(()),
        false => Err(Failure::Wrong(sentence())),
    }
}

type Scenario = fn(&Cluster) -> Outcome;

/// Scenarios on the common cluster.
const SCENARIOS: &[(&str, Scenario)] = &[
    ("a pod, its logs, a command in it", pods::logs_and_exec),
    ("the image of Slicewright runs", pods::slicewright_runs),
    (
        "a DaemonSet reads its node by its service account",
        pods::daemon_set_reads_its_node,
    ),
    (
        "a kubelet may not touch another node",
        pods::kubelet_is_restricted,
    ),
    ("a pod outlives its kubelet", life::kubelet_restarts),
    ("a kubelet and the device plugin", plugin::real_kubelet),
    ("the rules of the API server", rules::are_real),
];

/// Scenarios on the same cluster once the agent is installed: gpu-worker-01 has one H100,
/// gpu-worker-02 one A100.
const WITH_AGENT: &[(&str, Scenario)] = &[
    ("the tutorial, line by line", tutorial::as_typed),
    (
        "a driver is replaced, and the node says so",
        driver::replaced,
    ),
    (
        "the driver of a GPU comes after the agent",
        driver::comes_later,
    ),
    (
        "an agent may write its own node and keys only",
        rbac::agent_is_kept_to_its_node,
    ),
    (
        "ClusterPolicy is created, never changed",
        cluster_policy::never_changed,
    ),
    ("a pod outlives changes around it", endure::pod_outlives),
    (
        "an agent is killed in the middle of changes",
        endure::agent_killed_in_a_change,
    ),
    ("a node loses its power", endure::node_reboots),
    ("a slice that is open is kept", opened::slice_is_kept),
    (
        "a node is rebooted where that is allowed",
        reboot::where_allowed,
    ),
    ("a fault of a GPU is seen", health::fault_is_seen),
    ("a lost GPU comes back", health::lost_and_back),
    ("a reset ends faults of a GPU", health::reset_heals),
    (
        "clients of GPUs are paused for changes only",
        clients::paused_for_a_change,
    ),
    (
        "services of a node are stopped for changes",
        services::stopped_for_a_change,
    ),
    (
        "a node is born with a wish for its GPU",
        born::with_a_layout,
    ),
    (
        "NVIDIA's device plugin for a GPU is not fought",
        rivals::are_not_fought,
    ),
    ("layouts change under pods", churn::under_pods),
];

/// GPUs of the two nodes.
const GPUS: [&str; 2] = ["1xH100-80GB-SXM", "1xA100-80GB"];

/// Runs the scenarios on the checkout at `root`, those whose names contain `filter`; whether nothing
/// failed.
///
/// # Errors
/// With `CI=true`, if this machine lacks something that cannot be had.
pub fn run(root: &Path, target: &Path, filter: &str) -> Result<bool, Error> {
    Ok(count(root, target, filter)?.is_none_or(|counts| counts.failed == 0))
}

/// As [`run`], with counts; `None` if all had to be left out.
///
/// # Errors
/// As [`run`].
pub fn count(root: &Path, target: &Path, filter: &str) -> Result<Option<Counts>, Error> {
    let missing = cluster::missing(root, target)?;
    if !missing.is_empty() {
        let missing = missing.join(", ");
        println!("e2e: this machine lacks {missing}: left out (docs/cluster.md)");
        return Ok(None);
    }
    let options = |folder: &str, gpus: &[&str]| Options {
        root: root.to_owned(),
        target: target.to_owned(),
        folder: target.join(folder),
        nodes: 2,
        gpus: gpus.iter().map(|gpus| (*gpus).to_owned()).collect(),
    };
    let archives = archives(root, target)?;
    let mut tally = Tally::default();
    let mut cluster = None;
    tally.run("two nodes come up", || {
        cluster = Some(start(&options("e2e", &GPUS), &archives)?);
        Ok(())
    });
    if let Some(cluster) = cluster {
        let is_asked_for = |it: &&(&str, Scenario)| it.0.contains(filter);
        for (name, scenario) in SCENARIOS.iter().filter(is_asked_for) {
            tally.run(name, || scenario(&cluster));
        }
        let mut installed = false;
        if WITH_AGENT.iter().any(|it| is_asked_for(&it)) {
            tally.run("the agent is installed and serves", || {
                cluster.install(root, target)?;
                installed = true;
                Ok(())
            });
        }
        let with_agent = WITH_AGENT.iter().filter(is_asked_for);
        for (name, scenario) in with_agent.filter(|_| installed) {
            tally.run(name, || scenario(&cluster));
        }
        tally.run("down leaves nothing", || life::down(cluster));
    }
    const KILLED: &str = "a start that was killed leaves nothing";
    if KILLED.contains(filter) {
        tally.run(KILLED, || life::killed_starts(&options("e2e-killed", &[])));
    }
    let Counts { passed, failed } = tally.0;
    let ran = passed + failed;
    println!("e2e: {ran} scenarios ran, {passed} passed, {failed} failed");
    Ok(Some(tally.0))
}

/// What came out so far.
#[derive(Default)]
struct Tally(Counts);

impl Tally {
    fn run(&mut self, name: &str, scenario: impl FnOnce() -> Outcome) {
        let start = Instant::now();
        let outcome = scenario();
        let seconds = start.elapsed().as_secs_f64();
        match &outcome {
            Ok(()) => println!("e2e: ok      {seconds:>5.1} s  {name}"),
            Err(failure) => println!("e2e: FAILED  {seconds:>5.1} s  {name}: {failure}"),
        }
        self.0.passed += u32::from(outcome.is_ok());
        self.0.failed += u32::from(outcome.is_err());
    }
}

/// Writes the images that the scenarios use.
fn archives(root: &Path, target: &Path) -> Result<Vec<PathBuf>, Error> {
    let binaries = cluster::binaries(root, target)?;
    let images = [
        image::slicewright(root, target, false)?,
        image::kubectl(Path::new(&binaries.kubernetes("kubectl")))?,
    ];
    let mut archives = Vec::new();
    for (image, name) in images.iter().zip(["slicewright", "kubectl"]) {
        let path = target.join("images").join(format!("{name}-e2e.tar"));
        image.write(&path)?;
        archives.push(path);
    }
    Ok(archives)
}

fn start(options: &Options, archives: &[PathBuf]) -> Result<Cluster, Error> {
    let cluster = Cluster::up(options)?;
    for archive in archives {
        cluster.load(archive)?;
    }
    Ok(cluster)
}
