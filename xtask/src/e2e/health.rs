// SPDX-License-Identifier: Apache-2.0
//! Faults of GPUs and slices: what has one is not given to pods, and the node says what it is. It
//! comes back once it has proven itself.

use super::steps::{
    as_before, becomes, change_world, fault, fresh_agent, label, settled, strategy, world,
};
use super::{Failure, Outcome};
use crate::cluster::{Cluster, Node};

/// Waits until the kubelet counts so many devices of a resource, and so many that pods can get.
fn counts(cluster: &Cluster, node: &Node, resource: &str, all: u32, usable: u32) -> Outcome {
    let resource = resource.replace('.', "\\.");
    let of = |part: &str| format!("{{.status.{part}.nvidia\\.com/{resource}}}");
    let path = format!("{} {}", of("capacity"), of("allocatable"));
    becomes(cluster, node, "node", &path, &format!("{all} {usable}"))
}

/// Waits until the GpuNode tells exactly these faults of the node's only GPU, each as a finding too.
fn told(cluster: &Cluster, node: &Node, fault: &str) -> Outcome {
    let findings = "{.status.findings[?(@.code=='device-unhealthy')].message}";
    let path = format!("{{.status.gpus[0].faults[*]}}; {findings}");
    let wanted = match fault {
        "" => "; ".to_owned(),
        fault => format!("{fault}; GPU 0: {fault}"),
    };
    becomes(cluster, node, "gpunode", &path, &wanted)
}

/// A fault that the driver reports takes the GPU out, until there is reason to think that it is over.
pub fn fault_is_seen(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    fault(node, "xid gpu=0 79")?;
    counts(cluster, node, "gpu", 1, 0)?;
    told(cluster, node, "XID 79")?;
    // Its successor has heard of nothing.
    fresh_agent(cluster, node)?;
    counts(cluster, node, "gpu", 1, 1)
}

/// A GPU that falls off the bus stays known, as one that nobody can have, and is given out again
/// some time after it is back. Its faults are heard then as before.
pub fn lost_and_back(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    fault(node, "lose gpu=0")?;
    let gone = counts(cluster, node, "gpu", 1, 0)
        .and_then(|()| told(cluster, node, "it fell off the bus"));
    // As a reset of its slot brings it back; also after a failure, as others use the node.
    change_world(node, |world| world.gpus[0].lost = false)?;
    gone?;
    counts(cluster, node, "gpu", 1, 1)?;
    told(cluster, node, "")?;
    fault_is_seen(cluster)
}

/// A fault of a slice takes that slice out and no other; one of a GPU takes all out. A reset, here by
/// a change of its mode, ends both.
pub fn reset_heals(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    strategy(cluster, "mixed")?;
    fault(node, "xid gpu=0 48")?;
    counts(cluster, node, "gpu", 1, 0)?;
    told(cluster, node, "XID 48")?;
    label(cluster, node, "all-1g.10gb")?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    told(cluster, node, "")?;
    let instances = world(node)?.gpus[0].instances.clone();
    let slice = instances.first();
    let slice = slice.ok_or_else(|| Failure::Wrong("the GPU has no slices".to_owned()))?;
    fault(node, &format!("xid gpu=0 gi={} ci=0 48", slice.id))?;
    counts(cluster, node, "mig-1g.10gb", 7, 6)?;
    told(cluster, node, "XID 48")?;
    as_before(cluster, node)?;
    told(cluster, node, "")
}
