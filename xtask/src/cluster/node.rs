// SPDX-License-Identifier: Apache-2.0
//! A node: namespaces with a file system of their own, a cable to the cluster's bridge, containerd
//! and a kubelet. To these it looks like a machine, with the usual paths: two nodes on one machine
//! would otherwise fight over the folder of device plugins, which no option moves.

use std::path::{Path, PathBuf};

use rustix::process::Signal;

use super::binaries::Binaries;
use super::shell::{log, run, run_with, start, until, write};
use super::slot::Slot;
use super::{control, sweep};
use crate::error::Error;
use crate::image::BUSYBOX;

/// The script that a node starts with.
const SCRIPT: &str = include_str!("node.sh");

/// A node that is up.
pub struct Node {
    /// Its name in Kubernetes.
    pub name: String,
    number: u8,
    slot: Slot,
    folder: PathBuf,
    /// The node's first process, as the machine numbers it.
    pid: String,
}

impl Node {
    /// Starts the namespaces, the network and containerd of a node (1 to 3) of the cluster in
    /// `folder`, which has `nodes` of them.
    ///
    /// # Errors
    /// If one of them does not start.
    pub fn up(
        folder: &Path,
        slot: Slot,
        number: u8,
        nodes: u8,
        binaries: &Binaries,
    ) -> Result<Self, Error> {
        let name = name(number);
        let root = folder.join("nodes").join(&name);
        settings(&root, &control::authority(folder)?, &name, slot, number)?;
        let script = folder.join("node.sh");
        write(&script, SCRIPT)?;
        let words = [
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--fork",
            "--kill-child",
            "sh",
            &script.to_string_lossy(),
            &name,
            &root.to_string_lossy(),
            &binaries.kubernetes.to_string_lossy(),
            &binaries.containerd.to_string_lossy(),
        ];
        start(folder, &name, &words)?;
        let file = root.join("run/node.pid");
        let what = format!("start of {name} ({})", log(folder, &name).display());
        let pid = until(&what, 20, || Ok(std::fs::read_to_string(&file).ok()))?;
        let node = Self {
            name,
            number,
            slot,
            folder: folder.to_owned(),
            pid: pid.trim().to_owned(),
        };
        node.network(nodes)?;
        node.cgroups()?;
        node.start_containerd()?;
        Ok(node)
    }

    /// Starts containerd and waits for its socket.
    ///
    /// # Errors
    /// If it does not start in time.
    pub fn start_containerd(&self) -> Result<(), Error> {
        self.start("containerd", &["/opt/containerd/containerd"])?;
        let socket = self.disk().join("run/containerd/containerd.sock");
        let what = format!("containerd of {} ({})", self.name, self.log("containerd"));
        until(&what, 30, || Ok(socket.exists().then_some(())))
    }

    /// The node's file system with all its mounts, as a folder of the machine.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.pid))
    }

    /// What of the node's file system lies on the machine's disk, without its mounts.
    pub fn disk(&self) -> PathBuf {
        self.folder.join("nodes").join(&self.name)
    }

    /// Name of the cgroup of its pods in every hierarchy.
    pub fn cgroup(&self) -> String {
        self.slot.node(self.number)
    }

    /// Runs a program in the node's namespaces, at most `seconds` long; what it prints.
    ///
    /// # Errors
    /// If it cannot be started, fails, or takes longer.
    pub fn exec(&self, seconds: u32, words: &[&str]) -> Result<String, Error> {
        run(seconds, &self.enter(words))
    }

    /// Starts the kubelet.
    ///
    /// # Errors
    /// If it cannot be started. It is not waited for.
    pub fn start_kubelet(&self) -> Result<(), Error> {
        self.start_kubelet_with(&[])
    }

    /// Starts the kubelet with these options besides.
    ///
    /// # Errors
    /// As [`Self::start_kubelet`].
    pub fn start_kubelet_with(&self, options: &[&str]) -> Result<(), Error> {
        let name = format!("--hostname-override={}", self.name);
        let address = format!("--node-ip={}", self.slot.node_address(self.number));
        let words = [
            "/opt/kubernetes/kubelet",
            "--config=/etc/kubernetes/kubelet.yaml",
            "--kubeconfig=/etc/kubernetes/kubelet.conf",
            &name,
            &address,
        ];
        self.start("kubelet", &[&words[..], options].concat())
    }

    /// Ends the kubelet by a signal, `TERM` or `KILL`, and waits for its end. Containers run on.
    ///
    /// # Errors
    /// If there is none, or it does not end.
    pub fn stop_kubelet(&self, signal: Signal) -> Result<(), Error> {
        let path = self.root().join("run/kubelet.pid");
        let pid = std::fs::read_to_string(&path).map_err(|source| Error::Read { path, source })?;
        let pid = pid.trim();
        let number = signal.as_raw().to_string();
        self.exec(10, &["kill", "-s", &number, pid])?;
        let process = self.root().join("proc").join(pid);
        let what = format!("end of the kubelet of {}", self.name);
        until(&what, 20, || Ok((!process.exists()).then_some(())))
    }

    /// Brings images into the node's containerd from a tar archive, at most 2 minutes long.
    ///
    /// # Errors
    /// If containerd does not take it.
    pub fn load(&self, archive: &Path) -> Result<(), Error> {
        let path = self.root().join("run/image.tar");
        let copied = std::fs::copy(archive, &path);
        copied.map_err(|source| Error::Write {
            path: path.clone(),
            source,
        })?;
        let words = [
            "/opt/containerd/ctr",
            "-n=k8s.io",
            "images",
            "import",
            "/run/image.tar",
        ];
        self.exec(120, &words)?;
        std::fs::remove_file(&path).map_err(|source| Error::Write { path, source })
    }

    fn start(&self, name: &str, words: &[&str]) -> Result<(), Error> {
        let script = format!("echo $$ > /run/{name}.pid; exec \"$@\"");
        let path = format!("PATH=/opt/containerd:{}", super::shell::PATH);
        let mut all = vec!["env", &path, "sh", "-c", &script, "sh"];
        all.extend(words);
        start(
            &self.folder,
            &format!("{}-{name}", self.name),
            &self.enter(&all),
        )
    }

    fn enter(&self, words: &[&str]) -> Vec<String> {
        let mut all = vec!["nsenter".to_owned(), format!("--target={}", self.pid)];
        all.extend(["--mount", "--pid", "--net", "--uts"].map(str::to_owned));
        all.extend(words.iter().map(|word| (*word).to_owned()));
        all
    }

    /// Where a program of the node writes.
    pub fn log(&self, name: &str) -> String {
        let path = log(&self.folder, &format!("{}-{name}", self.name));
        path.display().to_string()
    }

    /// A cable to the bridge, routes to the pods of all nodes, and the API server at the address
    /// that pods are told. No kube-proxy: other services have no address that works.
    fn network(&self, nodes: u8) -> Result<(), Error> {
        let Self {
            slot, number, pid, ..
        } = self;
        let (cable, bridge) = (slot.node(*number), slot.bridge());
        let (address, gateway) = (slot.node_address(*number), slot.address());
        let outside = format!(
            "link add {cable} type veth peer name eth0 netns {pid}\n\
             link set {cable} master {bridge} up\n\
             route add {} via {address}\n",
            slot.pods(*number)
        );
        run_with(10, &["ip", "-batch", "-"], &outside)?;
        let mut inside = format!(
            "link set lo up\naddr add {address}/24 dev eth0\nlink set eth0 up\n\
             route add default via {gateway}\n"
        );
        for other in (1..=nodes).filter(|other| other != number) {
            let (pods, via) = (slot.pods(other), slot.node_address(other));
            inside += &format!("route add {pods} via {via}\n");
        }
        let target = format!("--target={pid}");
        run_with(
            10,
            &["nsenter", &target, "--net", "ip", "-batch", "-"],
            &inside,
        )?;
        for chain in ["PREROUTING", "OUTPUT"] {
            let rule = format!(
                "iptables -w 5 -t nat -A {chain} -d {}/32 -p tcp --dport 443 \
                 -j DNAT --to-destination {gateway}:{}",
                control::SERVICE,
                control::PORT
            );
            let words: Vec<&str> = rule.split_whitespace().collect();
            self.exec(10, &words)?;
        }
        Ok(())
    }

    /// A cgroup for the node's pods in every hierarchy.
    fn cgroups(&self) -> Result<(), Error> {
        for hierarchy in sweep::hierarchies() {
            let cgroup = hierarchy.join(self.slot.node(self.number));
            std::fs::create_dir_all(&cgroup).map_err(|source| Error::Write {
                path: cgroup.clone(),
                source,
            })?;
            // A new cgroup has no cores and no memory nodes: it takes its parent's.
            for file in ["cpuset.cpus", "cpuset.mems"] {
                let parent = std::fs::read_to_string(hierarchy.join(file)).unwrap_or_default();
                if !parent.trim().is_empty() {
                    write(&cgroup.join(file), &parent)?;
                }
            }
        }
        Ok(())
    }
}

/// A node's name in Kubernetes.
pub fn name(number: u8) -> String {
    format!("gpu-worker-{number:02}")
}

/// Writes what containerd, the CNI plugins and the kubelet read.
fn settings(root: &Path, authority: &str, name: &str, slot: Slot, number: u8) -> Result<(), Error> {
    write(&root.join("etc/machine-id"), &slot.machine_id(number))?;
    let network = serde_json::json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{
            "type": "ptp",
            "ipam": {
                "type": "host-local",
                "subnet": slot.pods(number),
                "routes": [{ "dst": "0.0.0.0/0" }],
            },
        }],
    });
    write(
        &root.join("etc/cni/net.d/10-pods.conflist"),
        &network.to_string(),
    )?;
    // A process without CAP_SYS_RESOURCE may not lower an oom_score_adj.
    let containerd = format!(
        r#"version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{BUSYBOX}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
"#
    );
    write(&root.join("etc/containerd/config.toml"), &containerd)?;
    let kubelet = serde_json::json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        // Only the cluster's own bridge leads to it.
        "authentication": { "anonymous": { "enabled": true }, "webhook": { "enabled": false } },
        "authorization": { "mode": "AlwaysAllow" },
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": format!("/{}", slot.node(number)),
        "failSwapOn": false,
        // The default since 1.35 is to refuse cgroup version 1.
        "failCgroupV1": false,
        "oomScoreAdj": 0,
        "enforceNodeAllocatable": [],
        "evictionHard": { "memory.available": "100Mi", "nodefs.available": "1%" },
        "imageGCHighThresholdPercent": 100,
        // The disk below a folder of a machine is not always found.
        "localStorageCapacityIsolation": false,
        // 10 s by default: too slow for tests of what a device plugin offers.
        "nodeStatusUpdateFrequency": "2s",
    });
    write(
        &root.join("etc/kubernetes/kubelet.yaml"),
        &kubelet.to_string(),
    )?;
    let token = control::node_token(name);
    let access = control::kubeconfig(slot, authority, &token);
    write(&root.join("etc/kubernetes/kubelet.conf"), &access)
}
