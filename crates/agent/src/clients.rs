// SPDX-License-Identifier: Apache-2.0
//! Programs of others that keep GPUs open: paused while a layout changes, and running again on every
//! way out. Pods by the labels that their DaemonSets select nodes with, services by systemd.

use std::time::Duration;

use tokio::time::Instant;
use units::Code;

use crate::agent::Agent;
use crate::cluster::Cluster;
use crate::decide::{self, LabelChange, PodOnNode, Told, apps, resume};
use crate::write::WriteError;

/// How long they may take to end (source: NVIDIA's MIG manager allows 5 minutes each).
const LONGEST: Duration = Duration::from_secs(300);

impl Agent {
    /// Lets clients run again that a crash left paused.
    pub(crate) async fn lift_leftover_pause(&self, told: &Told) {
        self.label(&resume(&told.labels)).await;
        self.start_services().await;
    }

    /// Pauses the clients of the GPUs, and waits until they have ended.
    pub(crate) async fn pause_clients(
        &self,
        told: &Told,
        paused: &LabelChange,
    ) -> Result<(), (Code, String)> {
        let services = decide::services(told, &self.settings);
        let services = services.map_err(|refusal| (refusal.code, refusal.message))?;
        if !self.label(paused).await || !self.clients_ended(paused).await {
            let message = "clients of the GPU did not end in time; see the pods of DCGM, and those \
                           with the node selector nvidia.com/gpu.deploy.client, on this node";
            return Err((Code::InUse, message.to_owned()));
        }
        self.stop_services(&services).await
    }

    /// Lets clients run again that were paused here.
    pub(crate) async fn resume_after(&self, paused: &LabelChange) {
        self.start_services().await;
        let set = paused.iter();
        let set = set.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        self.label(&resume(&set.collect())).await;
    }

    /// Waits until the pods of paused clients are gone.
    async fn clients_ended(&self, paused: &LabelChange) -> bool {
        let apps = apps(paused);
        let opt_in = decide::opt_in(paused);
        let Some(cluster) = self.cluster.as_ref().filter(|_| !paused.is_empty()) else {
            return true;
        };
        let begun = Instant::now();
        while begun.elapsed() < LONGEST {
            match run_still(cluster, &apps, opt_in).await {
                Ok(false) => return true,
                Ok(true) => {}
                Err(error) => tracing::warn!("{error}"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        false
    }
}

/// Whether pods of clients are there: of these apps, or of DaemonSets that select by `opt_in`.
async fn run_still(
    cluster: &Cluster,
    apps: &[&str],
    opt_in: Option<&str>,
) -> Result<bool, WriteError> {
    let is_client = |pod: &PodOnNode| !pod.is_ours && apps.contains(&pod.app.as_str());
    if cluster.pods_on_node().await?.iter().any(is_client) {
        return Ok(true);
    }
    match opt_in {
        Some(label) => Ok(!cluster.pods_that_select(label).await?.is_empty()),
        None => Ok(false),
    }
}
