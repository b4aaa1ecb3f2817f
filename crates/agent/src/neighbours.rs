// SPDX-License-Identifier: Apache-2.0
//! The pods on this node: NVIDIA's own programs, which are not fought, and pods that a boot has
//! ended for good.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use plan::Warning;
use units::Code;

use crate::agent::{Agent, SLOW_TICK, YOUNG_TICK};
use crate::cluster::{Cluster, NodeSeen};
use crate::decide::{self, Allocation, Told};
use crate::write::WriteError;

/// How often pods are looked at when nothing points to them: a list costs the API server.
const RARE_TICK: Duration = Duration::from_secs(600);

/// A look at the pods on this node.
pub struct Neighbours {
    at: Instant,
    /// The labels by which programs of GPU Operator come and go.
    deploy: BTreeMap<String, String>,
    rivals: Vec<String>,
    stranded: Vec<Warning>,
}

impl Neighbours {
    async fn look(cluster: &Cluster, deploy: BTreeMap<String, String>) -> Result<Self, WriteError> {
        Ok(Self {
            rivals: decide::rivals(&cluster.pods_on_node().await?),
            stranded: decide::stranded(&cluster.failed_pods().await?),
            at: Instant::now(),
            deploy,
        })
    }
}

impl Agent {
    /// Whether NVIDIA's own programs serve this node: then nothing is offered.
    pub(crate) async fn yields_to_rivals(&mut self, told: &Told, node: Option<&NodeSeen>) -> bool {
        self.look_around(told).await;
        let neighbours = self.memory.neighbours.as_ref();
        let Some(found) = neighbours.filter(|look| !look.rivals.is_empty()) else {
            return false;
        };
        let message = format!(
            "this node is served by {}; hand it over with: kubectl label node NODE \
             nvidia.com/gpu.deploy.device-plugin=false nvidia.com/gpu.deploy.mig-manager=false \
             nvidia.com/gpu.deploy.gpu-feature-discovery=false --overwrite",
            found.rivals.join(", ")
        );
        self.shown.waiting(message.clone());
        // What was offered before they came must not be handed out twice.
        self.fence_all(&message);
        let why = Warning {
            code: Code::ServedByOthers,
            message,
        };
        self.tell("ServedByOthers", why.code, &why.message).await;
        self.write_idle(node, &why).await;
        true
    }

    /// Whether the kubelet's account has every pod that runs here with devices. One that has just
    /// started gives an account without the pods that it has not taken up again.
    pub(crate) async fn is_whole(&self, account: &[Allocation]) -> bool {
        let Some(cluster) = &self.cluster else {
            return true;
        };
        match cluster.pods_with_devices().await {
            Ok(pods) => {
                let missing = pods
                    .iter()
                    .find(|pod| account.iter().all(|it| it.pod != **pod));
                if let Some(pod) = missing {
                    tracing::info!("the kubelet does not yet say which devices pod {pod} has");
                }
                missing.is_none()
            }
            Err(error) => {
                tracing::warn!("{error}");
                false
            }
        }
    }

    /// What to tell of pods that are gone for good.
    pub(crate) fn stranded(&self) -> Vec<Warning> {
        let neighbours = self.memory.neighbours.as_ref();
        neighbours.map_or_else(Vec::new, |look| look.stranded.clone())
    }

    async fn look_around(&mut self, told: &Told) {
        let Some(cluster) = &self.cluster else {
            return;
        };
        let deploy = decide::deploy_labels(&told.labels);
        // Pods that a boot ends, it ends soon after.
        let is_young = self.is_young();
        let is_fresh = |look: &Neighbours| {
            let every = match (is_young, look.rivals.is_empty() && look.stranded.is_empty()) {
                (true, _) => YOUNG_TICK / 2,
                (false, true) => RARE_TICK,
                (false, false) => SLOW_TICK / 2,
            };
            look.at.elapsed() < every && look.deploy == deploy
        };
        if self.memory.neighbours.as_ref().is_some_and(is_fresh) {
            return;
        }
        match Neighbours::look(cluster, deploy).await {
            Ok(look) => self.memory.neighbours = Some(look),
            Err(error) => tracing::warn!("{error}"),
        }
    }
}
