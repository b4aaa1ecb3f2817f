// SPDX-License-Identifier: Apache-2.0
//! A machine whose GPUs cannot be reset, as under many hypervisors: the MIG mode comes with a reboot.

use super::pods::{apply, delete};
use super::steps::{as_before, fault, label, passed, settled, workload};
use super::{Outcome, check};
use crate::cluster::{Cluster, Node, until};
use crate::error::Error;

pub const REASON: &str = r"{.metadata.annotations.slicewright\.dev/mig-config-reason}";
pub const STATE: &str = r"{.metadata.labels.nvidia\.com/mig\.config\.state}";

/// The node is rebooted for a mode that a reset does not bring, if that is allowed and no pod has a
/// GPU: then the layout is there.
pub fn where_allowed(cluster: &Cluster) -> Outcome {
    let node = &cluster.nodes()[1];
    fault(node, "fail reset gpu=0 nth=1 every code=NOT_SUPPORTED")?;
    label(cluster, node, "all-1g.10gb")?;
    says(cluster, node, STATE, "failed")?;
    says(cluster, node, REASON, "slicewright.dev/may-reboot=true")?;
    apply(cluster, &workload("whole", &node.name, "gpu"))?;
    passed(cluster, "whole")?;
    allow(cluster, node, "slicewright.dev/may-reboot=true")?;
    says(cluster, node, REASON, "default/whole has GPU-")?;
    check(!node.is_asked_to_reboot(), || {
        "a node with a pod on its GPU is rebooted".to_owned()
    })?;
    delete(cluster, "whole")?;
    until("the node to be asked for a reboot", 60, || {
        Ok(node.is_asked_to_reboot().then_some(()))
    })?;
    says(cluster, node, STATE, "rebooting")?;
    node.reboot()?;
    settled(cluster, node, "all-1g.10gb", "gpu", 7)?;
    fault(node, "clear")?;
    allow(cluster, node, "slicewright.dev/may-reboot-")?;
    as_before(cluster, node)
}

/// Sets or removes an annotation of the node.
fn allow(cluster: &Cluster, node: &Node, annotation: &str) -> Result<(), Error> {
    let words = ["annotate", "node", &node.name, annotation];
    cluster.kubectl(&words).map(|_| ())
}

/// Waits until a field of the node contains a text.
pub fn says(cluster: &Cluster, node: &Node, path: &str, text: &str) -> Outcome {
    let mut last = String::new();
    let said = until(text, 60, || {
        let words = ["get", "node", &node.name, &format!("-o=jsonpath={path}")];
        last = cluster.kubectl(&words)?;
        Ok(last.contains(text).then_some(()))
    });
    check(said.is_ok(), || {
        format!("{} says {last:?}, not {text:?}", node.name)
    })
}
