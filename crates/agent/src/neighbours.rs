// SPDX-License-Identifier: Apache-2.0
//! The pods on this node: NVIDIA's own programs, which are not fought, and pods that a boot has
//! ended for good.

use std::time::Duration;

use plan::Warning;
use tokio::time::Instant;
use units::Code;

use crate::agent::{Agent, SLOW_TICK, YOUNG_TICK};
use crate::cluster::NodeSeen;
use crate::decide::{self, Allocation};

/// How often failed pods are looked for when nothing points to them: a list costs the API server.
const RARE_TICK: Duration = Duration::from_secs(600);

/// A look at the pods on this node.
pub struct Neighbours {
    at: Instant,
    stranded: Vec<Warning>,
}

impl Agent {
    /// Whether NVIDIA's own programs serve this node: then nothing is offered.
    pub(crate) async fn yields_to_rivals(&mut self, node: Option<&NodeSeen>) -> bool {
        let Some(cluster) = &self.cluster else {
            return false;
        };
        let rivals = cluster.rivals();
        if rivals.is_empty() {
            return false;
        }
        let message = format!(
            "this node is served by {}; where GPU Operator runs that, hand the node over with: \
             kubectl label node {} nvidia.com/gpu.deploy.device-plugin=false \
             nvidia.com/gpu.deploy.mig-manager=false \
             nvidia.com/gpu.deploy.gpu-feature-discovery=false --overwrite; else uninstall it, or \
             keep its DaemonSet away from the node",
            rivals.join(", "),
            cluster.about.node,
        );
        self.shown.yielding(message.clone());
        // The same devices would be handed out twice, and each would take the other's sockets.
        self.withdraw();
        // What pods have then is not known here.
        self.memory.has_heard = false;
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

    /// Looks at the pods that failed, if it is time.
    pub(crate) async fn look_around(&mut self) {
        let Some(cluster) = &self.cluster else {
            return;
        };
        // Pods that a boot ends, it ends soon after.
        let is_young = self.is_young();
        let is_fresh = |look: &Neighbours| {
            let every = match (is_young, look.stranded.is_empty()) {
                (true, _) => YOUNG_TICK / 2,
                (false, true) => RARE_TICK,
                (false, false) => SLOW_TICK / 2,
            };
            look.at.elapsed() < every
        };
        if self.memory.neighbours.as_ref().is_some_and(is_fresh) {
            return;
        }
        match cluster.failed_pods().await {
            Ok(failed) => {
                self.memory.neighbours = Some(Neighbours {
                    at: Instant::now(),
                    stranded: decide::stranded(&failed),
                });
            }
            Err(error) => tracing::warn!("{error}"),
        }
    }
}
