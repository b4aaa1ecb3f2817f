// SPDX-License-Identifier: Apache-2.0
//! The device plugin before a real kubelet: in this process, with GPUs that nobody has.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use deviceplugin::{Offer, Plugins, PodResources, Sockets};
use publish::{Device, Hardware, Resource};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use units::GpuUuid;

use super::pods::{apply, delete, pod, wait_for_phase};
use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, Node, until};
use crate::error::Error;
use crate::image::BUSYBOX;

/// A resource, and another that takes its place.
const WHOLE: &str = "nvidia.com/e2e";
const SHARED: &str = "nvidia.com/e2e.shared";
/// How many devices either has.
pub const COUNT: u32 = 4;
/// Longest wait for the kubelet, in seconds: it reports every 2 s.
const SEEN: u32 = 30;

/// A plugin, its kubelet, and what Kubernetes knows of both.
struct Bed<'a> {
    cluster: &'a Cluster,
    node: &'a Node,
    runtime: Runtime,
    plugins: Plugins,
    kubelet: PodResources,
}

/// Registered, listed and allocated; again after the socket was removed and the kubelet killed; and
/// withdrawn in favour of another name.
pub fn real_kubelet(cluster: &Cluster) -> Outcome {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| Failure::Wrong(error.to_string()))?;
    let node = &cluster.nodes()[0];
    let folder = node.root().join("var/lib/kubelet");
    let plugins = folder.join("device-plugins");
    let socket = plugins.join("nvidia-e2e.sock");
    let kubelet = plugins.join("kubelet.sock");
    let bed = Bed {
        cluster,
        node,
        runtime,
        plugins: Plugins::start(Sockets::unix(), plugins, Some(kubelet)),
        kubelet: PodResources::new(Sockets::unix(), folder.join("pod-resources/kubelet.sock")),
    };
    bed.offer(&[WHOLE])?;
    bed.counts(&[(WHOLE, COUNT)])?;
    bed.allocates()?;
    let removed = std::fs::remove_file(&socket);
    removed.map_err(|source| Error::Write {
        path: socket.clone(),
        source,
    })?;
    until("the socket again", SEEN, || {
        Ok(socket.exists().then_some(()))
    })?;
    bed.listed()?;
    bed.counts(&[(WHOLE, COUNT)])?;
    node.stop_kubelet(Signal::KILL)?;
    node.start_kubelet()?;
    until("the socket after a restart", SEEN, || {
        Ok(socket.exists().then_some(()))
    })?;
    bed.listed()?;
    bed.counts(&[(WHOLE, COUNT)])?;
    bed.holds("has-devices")?;
    bed.offer(&[SHARED])?;
    bed.counts(&[(WHOLE, 0), (SHARED, COUNT)])?;
    delete(cluster, "has-devices")?;
    bed.offer(&[])?;
    bed.counts(&[(WHOLE, 0), (SHARED, 0)])?;
    bed.runtime.block_on(bed.plugins.stop());
    Ok(())
}

impl Bed<'_> {
    fn offer(&self, names: &[&str]) -> Outcome {
        let resources = names.iter().map(|name| resource(name)).collect();
        let guard = self.runtime.enter();
        self.plugins.offer(Offer {
            resources,
            ..Offer::default()
        });
        drop(guard);
        self.listed()
    }

    /// The kubelet is sent all lists.
    fn listed(&self) -> Outcome {
        let bound = Duration::from_secs(SEEN.into());
        let listed = self.runtime.block_on(self.plugins.wait_listed(bound));
        check(listed, || {
            format!("not listed: {:?}", self.plugins.status())
        })
    }

    /// The node has so many of each, and all of them can be had.
    fn counts(&self, expected: &[(&str, u32)]) -> Outcome {
        let words = ["get", "node", &self.node.name, "--output=json"];
        let what = format!("capacity and allocatable {expected:?}");
        until(&what, SEEN, || {
            let node = self.cluster.kubectl(&words)?;
            let node: Value = serde_json::from_str(&node).unwrap_or_default();
            let status = &node["status"];
            let is = |part: &str, (name, count): &(&str, u32)| {
                status[part][*name] == json!(count.to_string())
            };
            let both = |it| is("capacity", it) && is("allocatable", it);
            Ok(expected.iter().all(both).then_some(()))
        })?;
        Ok(())
    }

    /// A pod gets two devices, and what they need.
    fn allocates(&self) -> Outcome {
        let script = "echo $NVIDIA_VISIBLE_DEVICES; exec sleep 3600";
        let command = ["sh", "-c", script];
        let mut pod = pod("has-devices", &self.node.name, BUSYBOX, &command);
        pod["spec"]["containers"][0]["resources"] = json!({ "limits": { WHOLE: "2" } });
        apply(self.cluster, &pod)?;
        wait_for_phase(self.cluster, "has-devices", "Running")?;
        let ids = self.holds("has-devices")?;
        let logs = self.cluster.kubectl(&["logs", "has-devices"])?;
        let visible: BTreeSet<&str> = logs.trim().split(',').collect();
        let held: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        check(visible == held, || {
            format!("sees {visible:?}, has {held:?}")
        })
    }

    /// The ids of the two devices that a pod has.
    fn holds(&self, pod: &str) -> Result<BTreeSet<String>, Failure> {
        let its = |it: &deviceplugin::Holding| it.pod == pod && it.resource == WHOLE;
        // A kubelet that has just started tells of pods as it takes them up again.
        let ids = until(&format!("the devices of pod {pod}"), 30, || {
            let held = self.runtime.block_on(self.kubelet.held()).ok();
            let held = held.into_iter().flatten().find(its);
            Ok(held.map(|it| it.ids))
        })?;
        check(ids.len() == 2, || format!("{pod} has {ids:?}"))?;
        Ok(ids)
    }
}

/// A resource with [`COUNT`] devices.
pub fn resource(name: &str) -> Resource {
    let device = |index: u32| {
        let hardware = Hardware {
            gpu: GpuUuid::from_bits(index.into()),
            gpu_index: index,
            slice: None,
            numa_node: None,
            nodes: Vec::new(),
            fault: None,
        };
        Device {
            id: hardware.uuid().to_owned(),
            replica: None,
            hardware: Arc::new(hardware),
        }
    };
    Resource {
        name: name.to_owned(),
        devices: (0..COUNT).map(device).collect(),
        one_replica_a_container: false,
    }
}
