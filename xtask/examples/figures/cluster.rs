// SPDX-License-Identifier: Apache-2.0
//! The agent with a real API server and kubelet: memory, an edit of the sharing config, idleness.
//! `cargo xtask bench` starts the cluster and says where it is; without one these are left out.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use deviceplugin::{PodResources, Sockets};
use serde_json::{Value, json};

use crate::agent::{NodeFolder, resident_mb};
use crate::figure::{Budget, Figure, median};

/// Edits of the sharing config.
const EDITS: usize = 9;
/// The longest that the kubelet may take to have a list.
const LISTED: Duration = Duration::from_secs(60);
/// How long idleness is watched.
const IDLE: Duration = Duration::from_secs(30);
/// One step of a process's account (source: `USER_HZ` of Linux on every machine that has GPUs).
const TICK: Duration = Duration::from_millis(10);
/// Slices of eight GPUs.
const SLICES: usize = 56;
/// Name of the node in the cluster.
const NODE: &str = "gpu-worker-01";

/// A cluster with one node that has no GPUs of its own.
pub struct Cluster {
    /// Access to its API server.
    pub kubeconfig: PathBuf,
    /// Its client.
    pub kubectl: PathBuf,
    /// The kubelet's folder, as this machine sees it.
    pub kubelet: PathBuf,
}

impl Cluster {
    /// The cluster that the environment names, if it does.
    pub fn from_env() -> Option<Self> {
        let path = |name| std::env::var_os(name).map(PathBuf::from);
        Some(Self {
            kubeconfig: path("SLICEWRIGHT_BENCH_KUBECONFIG")?,
            kubectl: path("SLICEWRIGHT_BENCH_KUBECTL")?,
            kubelet: path("SLICEWRIGHT_BENCH_KUBELET")?,
        })
    }

    /// What an installation brings besides the agent, so that it has all its duties.
    fn install_kinds(&self, folder: &Path) -> Result<(), Box<dyn Error>> {
        let apply = |object: &Value| {
            let file = folder.join("object.json");
            fs::write(&file, object.to_string())?;
            self.kubectl(&["apply", "--filename", &file.to_string_lossy()])
        };
        apply(&serde_json::to_value(kubeapi::gpu_node_crd())?)?;
        apply(&kubeapi::cluster_policy_crd())?;
        self.kubectl(&["wait", "crd", "--all", "--for=condition=Established"])?;
        apply(&kubeapi::cluster_policy("single"))
    }

    fn kubectl(&self, words: &[&str]) -> Result<(), Box<dyn Error>> {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(&self.kubeconfig);
        let done = command.args(words).stdout(Stdio::null()).status()?;
        match done.success() {
            true => Ok(()),
            false => Err(format!("kubectl {} failed", words.join(" ")).into()),
        }
    }
}

/// All three, with 56 slices.
///
/// # Errors
/// If something does not serve.
pub fn measure(cluster: &Cluster, release: &Path) -> Result<Vec<Figure>, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let node = NodeFolder::new(release, "7x1g.10gb")?;
    cluster.install_kinds(node.root())?;
    cluster.kubectl(&["create", "configmap", "sharing", "--from-literal=shared="])?;
    let log = node.root().join("agent.log");
    let mut agent = Ended(start(cluster, &node, &log)?);
    let edits = runtime.block_on(edit(cluster));
    let edits = edits.map_err(|error| {
        let log = fs::read_to_string(&log).unwrap_or_default();
        format!("{error}; the agent says: {log}")
    })?;
    let pid = agent.0.id();
    let resident = resident_mb(pid)?;
    let idle = idle_percent(pid)?;
    if let Some(status) = agent.0.try_wait()? {
        return Err(format!("the agent ended: {status}").into());
    }
    let name = "agent with 56 slices and an API server";
    Ok(vec![
        Figure {
            name: format!("{name}, edit of sharing to the kubelet's list"),
            budget: Budget::AtMost(1000.0),
            runs: edits.len(),
            measured: median(edits).as_secs_f64() * 1e3,
            unit: "ms",
            original: "",
        },
        Figure {
            name: format!("{name}, resident after {EDITS} edits"),
            budget: Budget::AtMost(15.0),
            runs: 1,
            measured: resident,
            unit: "MB",
            original: "110 MB",
        },
        Figure {
            name: format!("{name}, idle in its first minutes"),
            budget: Budget::AtMost(0.1),
            runs: 1,
            measured: idle,
            unit: "% of a core",
            original: "",
        },
    ])
}

/// An agent that ends with this.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(cluster: &Cluster, node: &NodeFolder, log: &Path) -> std::io::Result<Child> {
    node.command(&cluster.kubelet.join("device-plugins"))
        .arg("--pod-resources-socket")
        .arg(cluster.kubelet.join("pod-resources/kubelet.sock"))
        .arg("--kubeconfig")
        .arg(&cluster.kubeconfig)
        .args(["--node-name", NODE, "--namespace", "default"])
        .args(["--sharing-config-map", "sharing"])
        .args(["--default-sharing-config", "shared"])
        .stderr(fs::File::create(log)?)
        .spawn()
}

/// Edits the ConfigMap again and again; times from kubectl's start to the list at the kubelet.
async fn edit(cluster: &Cluster) -> Result<Vec<Duration>, Box<dyn Error>> {
    let kubelet = PodResources::new(
        Sockets::unix(),
        cluster.kubelet.join("pod-resources/kubelet.sock"),
    );
    let mut times = Vec::new();
    for replicas in (2..).take(EDITS) {
        let text = format!(
            "version: v1\nflags: {{migStrategy: single}}\nsharing: {{timeSlicing: {{resources: \
             [{{name: nvidia.com/gpu, replicas: {replicas}}}]}}}}\n"
        );
        let patch = json!({ "data": { "shared": text } }).to_string();
        let begun = Instant::now();
        cluster.kubectl(&[
            "patch",
            "configmap",
            "sharing",
            "--type=merge",
            "-p",
            &patch,
        ])?;
        listed(&kubelet, SLICES * replicas).await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}

/// Waits until the kubelet counts so many devices.
async fn listed(kubelet: &PodResources, count: usize) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let mut last = BTreeMap::new();
    while begun.elapsed() < LISTED {
        last = kubelet.allocatable().await.unwrap_or(last);
        if last.values().map(|ids| ids.len()).sum::<usize>() == count {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let counts: Vec<_> = last.iter().map(|(name, ids)| (name, ids.len())).collect();
    Err(format!("the kubelet has {counts:?}, not {count}").into())
}

/// How much of a core a process takes while nothing happens.
pub fn idle_percent(pid: u32) -> Result<f64, Box<dyn Error>> {
    let before = cpu_time(pid)?;
    std::thread::sleep(IDLE);
    let spent = cpu_time(pid)?.saturating_sub(before);
    Ok(100.0 * spent.as_secs_f64() / IDLE.as_secs_f64())
}

/// What a process has computed so far, with its threads that have ended, in steps of a tick.
fn cpu_time(pid: u32) -> Result<Duration, Box<dyn Error>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name, which may have anything in it, utime and stime are the 12th and 13th.
    let (_, behind) = text.rsplit_once(')').ok_or("no stat")?;
    let times = behind.split_whitespace().skip(11).take(2);
    let ticks: Result<Vec<u64>, _> = times.map(str::parse).collect();
    Ok(TICK * u32::try_from(ticks?.iter().sum::<u64>())?)
}
