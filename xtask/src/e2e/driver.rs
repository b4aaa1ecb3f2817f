// SPDX-License-Identifier: Apache-2.0
//! What a node says of itself while its driver is replaced.

use super::{Failure, Outcome, check};
use crate::cluster::{Cluster, until};

const NODE: &str = "gpu-worker-02";
/// A deploy label that GPU Operator's driver manager pauses.
const LABEL: &str = "nvidia.com/gpu.deploy.device-plugin";

/// Nothing that the node publishes says that it has a driver while it has none to use.
pub fn replaced(cluster: &Cluster) -> Outcome {
    says(cluster, "True True")?;
    let paused = format!("{LABEL}=paused-for-driver-upgrade");
    cluster.kubectl(&["label", "node", NODE, &paused])?;
    let told = says(cluster, "False False")
        .and_then(|()| agrees(cluster, "0"))
        .and_then(|()| {
            let finding = field(cluster, "gpunode", "{.status.findings[*].code}")?;
            check(finding == "driver-missing", || {
                format!("findings of the GpuNode: {finding:?}")
            })
        });
    // Also after a failure: other scenarios use the node.
    cluster.kubectl(&["label", "node", NODE, &format!("{LABEL}-")])?;
    told?;
    says(cluster, "True True")?;
    agrees(cluster, "1")
}

/// Waits until the conditions Ready and DriverReady are these.
fn says(cluster: &Cluster, conditions: &str) -> Outcome {
    let of = |kind: &str| format!("{{.status.conditions[?(@.type=='{kind}')].status}}");
    let path = format!("{} {}", of("Ready"), of("DriverReady"));
    let what = format!("the GpuNode to be {conditions} (Ready, DriverReady)");
    Ok(until(&what, 30, || {
        let said = field(cluster, "gpunode", &path)?;
        Ok((said == conditions).then_some(()))
    })?)
}

/// Waits until the kubelet and the GpuNode both count so many usable GPUs.
fn agrees(cluster: &Cluster, healthy: &str) -> Outcome {
    let what = format!("kubelet and GpuNode to count {healthy} usable GPUs");
    let counted = until(&what, 30, || {
        let kubelet = field(cluster, "node", r"{.status.allocatable.nvidia\.com/gpu}")?;
        let path = "{.status.resources[?(@.name=='nvidia.com/gpu')].healthy}";
        let told = field(cluster, "gpunode", path)?;
        Ok((kubelet == healthy && told == healthy).then_some(()))
    });
    counted.map_err(Failure::from)
}

fn field(cluster: &Cluster, kind: &str, path: &str) -> Result<String, crate::error::Error> {
    cluster.kubectl(&["get", kind, NODE, &format!("-o=jsonpath={path}")])
}
