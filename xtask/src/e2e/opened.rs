// SPDX-License-Identifier: Apache-2.0
//! A program that no kubelet started and that computes nothing has a slice open.

use nvmlsim::world::Instance;

use super::reboot::{REASON, STATE, says};
use super::steps::{as_before, label, settled, strategy, world};
use super::{Outcome, check};
use crate::cluster::{Cluster, Node};
use crate::error::Error;

/// Starts a program that has the capability device of a GPU instance open, and says its number.
const OPEN: &str = "
    cap=$(sed -n \"s|^gpu0/gi$1/access ||p\" /proc/driver/nvidia-caps/mig-minors)
    sleep 1000 < /dev/nvidia-caps/nvidia-cap$cap > /dev/null 2>&1 &
    echo $!
";

/// The slice is not destroyed while the program has it open, and the program is named.
pub fn slice_is_kept(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[0];
    strategy(cluster, "mixed")?;
    label(cluster, node, "all-balanced")?;
    settled(cluster, node, "all-balanced", "mig-3g.40gb", 1)?;
    let pid = node.exec(10, &["sh", "-c", OPEN, "sh", &largest(node)?])?;
    let pid = pid.trim();
    label(cluster, node, "all-1g.10gb")?;
    let named = says(cluster, node, REASON, &format!("process {pid} (sleep)"));
    let state = says(cluster, node, STATE, "failed");
    let kept = instances(node);
    node.exec(10, &["kill", pid])?;
    named.and(state)?;
    check(kept?.len() == 4, || {
        "a slice that is open was destroyed".to_owned()
    })?;
    settled(cluster, node, "all-1g.10gb", "mig-1g.10gb", 7)?;
    as_before(cluster, node)
}

/// Number of the largest GPU instance of the node's GPU.
fn largest(node: &Node) -> Result<String, Error> {
    let all = instances(node)?;
    let largest = all.iter().max_by_key(|instance| instance.placement.size);
    let none = || Error::Cluster(format!("{} has no slices", node.name));
    Ok(largest.ok_or_else(none)?.id.to_string())
}

fn instances(node: &Node) -> Result<Vec<Instance>, Error> {
    let world = world(node)?;
    let gpus = world.gpus.iter();
    Ok(gpus.flat_map(|gpu| gpu.instances.clone()).collect())
}
