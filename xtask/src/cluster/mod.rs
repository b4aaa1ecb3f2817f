// SPDX-License-Identifier: Apache-2.0
//! A real Kubernetes on one machine, for tests and for people: `cargo xtask cluster`. Control plane
//! and one to three nodes, without a cloud, a registry or Docker; `docs/cluster.md` says how.
//!
//! ```text
//!  this machine                              node gpu-worker-01 (namespaces of its own)
//!  ┌──────────────────────────────┐          ┌────────────────────────────────┐
//!  │ etcd ── kube-apiserver       │  bridge  │ kubelet ── containerd ── pods  │
//!  │ controllers, scheduler       │──────────│ file system: programs of the   │
//!  │ cargo xtask cluster, kubectl │          │ machine, all else its own      │
//!  └──────────────────────────────┘          └────────────────────────────────┘
//! ```

mod agents;
mod binaries;
mod control;
pub mod driver;
mod needs;
mod node;
mod reboot;
mod shell;
mod slot;
mod sweep;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

pub use agents::{NAMESPACE, printed};
pub use binaries::{Binaries, get as binaries};
pub use needs::missing;
pub use node::Node;
pub use shell::{run_with, until, write as write_file};
pub use slot::Slot;
pub use sweep::leftovers;

use crate::error::Error;
use crate::image;

/// The most nodes a cluster has.
const NODES: u8 = 3;

/// What is wanted of a cluster.
pub struct Options {
    /// The repository.
    pub root: PathBuf,
    /// Cargo's target folder: where programs are kept.
    pub target: PathBuf,
    /// The cluster's own folder. Two clusters have two folders.
    pub folder: PathBuf,
    /// How many nodes, 1 to 3.
    pub nodes: u8,
    /// GPUs of the nodes, in their order, such as `8xH100-80GB-SXM`; nodes beyond have none.
    pub gpus: Vec<String>,
}

/// A cluster that is up. It ends when this is dropped, unless it is kept.
pub struct Cluster {
    folder: PathBuf,
    slot: Slot,
    binaries: Binaries,
    nodes: Vec<Node>,
    keep: bool,
    /// Held as long as this process works on the folder.
    _lock: File,
}

impl Cluster {
    /// Starts a cluster and waits until all nodes are ready. What was left of an earlier one in
    /// the same folder is ended first; after a failure nothing is left but the logs.
    ///
    /// # Errors
    /// If something does not start in time; the message names its log.
    pub fn up(options: &Options) -> Result<Self, Error> {
        let folder = &options.folder;
        let lock = lock(folder)?;
        let binaries = binaries::get(&options.root, &options.target)?;
        sweep::sweep(folder)?;
        let logs = folder.join("log");
        // Those of the cluster before, if any.
        let _ = std::fs::remove_dir_all(&logs);
        std::fs::create_dir_all(&logs).map_err(|source| Error::Write { path: logs, source })?;
        let mut cluster = Self {
            folder: folder.clone(),
            slot: Slot::take(folder)?,
            binaries,
            nodes: Vec::new(),
            keep: false,
            _lock: lock,
        };
        cluster.start(options)?;
        Ok(cluster)
    }

    fn start(&mut self, options: &Options) -> Result<(), Error> {
        let Self {
            folder,
            slot,
            binaries,
            ..
        } = &*self;
        let names: Vec<String> = (1..=options.nodes).map(node::name).collect();
        control::start_api(folder, *slot, &names, binaries)?;
        // While the API server starts.
        let archive = folder.join("busybox.tar");
        image::busybox(&options.root)?.write(&archive)?;
        let mut nodes = Vec::new();
        for number in 1..=options.nodes {
            nodes.push(Node::up(folder, *slot, number, options.nodes, binaries)?);
        }
        self.nodes = nodes;
        if !options.gpus.is_empty() {
            let files = driver::files(&options.root, &options.target)?;
            for (node, gpus) in self.nodes.iter().zip(&options.gpus) {
                node.install_driver(gpus, &files)?;
            }
        }
        self.load(&archive)?;
        control::start_controllers(&self.folder, self.slot, &self.binaries)?;
        for node in &self.nodes {
            node.start_kubelet()?;
        }
        for node in &self.nodes {
            let name = format!("node/{}", node.name);
            let words = ["wait", "--for=condition=Ready", &name, "--timeout=5s"];
            let what = format!("{name} ready ({})", node.log("kubelet"));
            until(&what, 90, || Ok(self.kubectl(&words).ok()))?;
        }
        // Before it is there, no pod is accepted.
        let words = [
            "wait",
            "--for=create",
            "serviceaccount/default",
            "--timeout=60s",
        ];
        self.kubectl(&words).map(|_| ())
    }

    /// Runs the cluster's kubectl as its administrator, at most 2 minutes long; what it prints.
    ///
    /// # Errors
    /// If it fails or takes longer.
    pub fn kubectl(&self, words: &[&str]) -> Result<String, Error> {
        self.kubectl_with(words, "")
    }

    /// As [`Self::kubectl`], with `input` on standard input.
    ///
    /// # Errors
    /// As [`Self::kubectl`].
    pub fn kubectl_with(&self, words: &[&str], input: &str) -> Result<String, Error> {
        let program = self.binaries.kubernetes("kubectl");
        let access = format!("--kubeconfig={}", self.kubeconfig().display());
        let mut all = vec![program, access];
        all.extend(words.iter().map(|word| (*word).to_owned()));
        run_with(120, &all, input)
    }

    /// Runs a shell script as the administrator, with the cluster's kubectl, at most `seconds` long;
    /// what it prints. `variables` are its environment besides.
    ///
    /// # Errors
    /// If it fails or takes longer.
    pub fn script(
        &self,
        seconds: u32,
        script: &Path,
        variables: &[(&str, &Path)],
    ) -> Result<String, Error> {
        let folder = self.binaries.kubernetes.display();
        let mut words = vec![
            "env".to_owned(),
            format!("PATH={folder}:{}", shell::PATH),
            format!("KUBECONFIG={}", self.kubeconfig().display()),
        ];
        let given = variables.iter();
        words.extend(given.map(|(name, value)| format!("{name}={}", value.display())));
        words.extend(["sh".to_owned(), script.to_string_lossy().into_owned()]);
        shell::run(seconds, &words)
    }

    /// The cluster's kubectl.
    pub fn kubectl_program(&self) -> PathBuf {
        self.binaries.kubernetes("kubectl").into()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("admin.kubeconfig")
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where it is on this machine.
    pub fn slot(&self) -> Slot {
        self.slot
    }

    /// The nodes, in order of their numbers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Brings the images of an archive into all nodes.
    ///
    /// # Errors
    /// If a node does not take it.
    pub fn load(&self, archive: &Path) -> Result<(), Error> {
        self.nodes.iter().try_for_each(|node| node.load(archive))
    }

    /// Leaves the cluster up when this process ends.
    pub fn keep(mut self) {
        self.keep = true;
    }

    /// Kills the API server. What it knows stays in the store.
    ///
    /// # Errors
    /// If it does not end.
    pub fn stop_api(&self) -> Result<(), Error> {
        sweep::kill_program(&self.folder, "kube-apiserver")
    }

    /// Starts the API server again, and waits until it is ready.
    ///
    /// # Errors
    /// If it is not in time.
    pub fn start_api(&self) -> Result<(), Error> {
        control::start_server(&self.folder, self.slot, &self.binaries)?;
        control::await_api(&self.folder, &self.binaries)
    }

    /// Ends the cluster. Its logs stay.
    ///
    /// # Errors
    /// If something of it does not go away.
    pub fn down(mut self) -> Result<(), Error> {
        self.keep = true;
        sweep::sweep(&self.folder)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.keep
            && let Err(error) = sweep::sweep(&self.folder)
        {
            eprintln!("the cluster could not be ended: {error}");
        }
    }
}

/// So that no two processes work on one cluster. The lock goes with the process.
fn lock(folder: &Path) -> Result<File, Error> {
    let path = folder.with_extension("lock");
    let parent = path.parent().unwrap_or(&path);
    let file = std::fs::create_dir_all(parent).and_then(|()| File::create(&path));
    let file = file.map_err(|source| Error::Write {
        path: path.clone(),
        source,
    })?;
    file.try_lock().map_err(|_| {
        let message = format!("{} is held: another task is at work there", path.display());
        Error::Cluster(message)
    })?;
    Ok(file)
}

/// `cargo xtask cluster ...`; `None` if the words make no sense.
///
/// # Errors
/// If the cluster cannot be brought up or down.
pub fn task(root: &Path, target: &Path, words: &[&str]) -> Option<Result<bool, Error>> {
    let (folder, words) = match words {
        ["--folder", folder, rest @ ..] => (std::path::absolute(folder).ok()?, rest),
        _ => (target.join("cluster"), words),
    };
    match words {
        ["up", words @ ..] => {
            let (nodes, gpus) = wanted(words)?;
            Some(up(Options {
                root: root.to_owned(),
                target: target.to_owned(),
                folder,
                nodes,
                gpus,
            }))
        }
        ["down"] => Some(
            lock(&folder)
                .and_then(|_lock| sweep::sweep(&folder))
                .map(|()| true),
        ),
        ["kubectl", words @ ..] => Some(kubectl(root, target, &folder, words)),
        _ => None,
    }
}

/// Nodes and GPUs from the words behind `up`: `--nodes N`, and `--sim GPUS` for each node that has
/// some.
fn wanted(mut words: &[&str]) -> Option<(u8, Vec<String>)> {
    let mut nodes = None;
    let mut gpus = Vec::new();
    loop {
        match words {
            [] => break,
            ["--nodes", number, rest @ ..] => {
                nodes = Some(number.parse::<u8>().ok()?);
                words = rest;
            }
            ["--sim", spec, rest @ ..] => {
                gpus.push((*spec).to_owned());
                words = rest;
            }
            _ => return None,
        }
    }
    let with_gpus = u8::try_from(gpus.len()).ok()?;
    let nodes = nodes.unwrap_or(with_gpus.max(1));
    (nodes >= with_gpus && (1..=NODES).contains(&nodes)).then_some((nodes, gpus))
}

fn up(options: Options) -> Result<bool, Error> {
    let missing = missing(&options.root, &options.target)?;
    if !missing.is_empty() {
        let message = format!("this machine lacks: {}", missing.join(", "));
        return Err(Error::Cluster(message));
    }
    let cluster = Cluster::up(&options)?;
    if !options.gpus.is_empty() {
        cluster.install(&options.root, &options.target)?;
    }
    println!("export KUBECONFIG={}", cluster.kubeconfig().display());
    cluster.keep();
    Ok(true)
}

/// The cluster's kubectl on the caller's terminal.
fn kubectl(root: &Path, target: &Path, folder: &Path, words: &[&str]) -> Result<bool, Error> {
    let program = binaries::get(root, target)?.kubernetes("kubectl");
    let status = Command::new(&program)
        .args(words)
        .env("KUBECONFIG", folder.join("admin.kubeconfig"))
        .status();
    let status = status.map_err(|source| Error::Run {
        command: program,
        source,
    })?;
    Ok(status.success())
}
