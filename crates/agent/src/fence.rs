// SPDX-License-Identifier: Apache-2.0
//! Fencing: between looking at who has a device and acting, a pod could get it. So devices are
//! withdrawn first, and only what the kubelet then says counts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plan::Refusal;
use tokio::time::Instant;
use units::Code;

use crate::agent::Agent;

/// How long the kubelet may take to see that devices are fenced.
const FENCE: Duration = Duration::from_secs(15);
/// How often it is asked.
const POLL: Duration = Duration::from_millis(50);

impl Agent {
    /// Lists GPUs and slices as unusable, waits until the kubelet counts them so, and hears who has
    /// which devices.
    ///
    /// # Errors
    /// `kubelet-silent`. The devices stay fenced until the next offer.
    pub(crate) async fn fence(
        &mut self,
        uuids: &BTreeSet<String>,
        reason: &str,
    ) -> Result<(), Refusal> {
        if self.pod_resources.is_none() {
            return Ok(());
        }
        let fenced: BTreeMap<String, String> = uuids
            .iter()
            .map(|uuid| (uuid.clone(), reason.to_owned()))
            .collect();
        self.fence_devices(fenced);
        let agreed = self.kubelet_agrees(uuids).await;
        match agreed && self.hear_allocations().await {
            true => Ok(()),
            false => Err(Refusal::new(
                Code::KubeletSilent,
                "the kubelet does not say who has the devices that would go, so nothing is \
                 touched; see the kubelet of this node, and whether the API server answers",
            )),
        }
    }

    /// Waits until the kubelet counts none of these as usable.
    async fn kubelet_agrees(&self, uuids: &BTreeSet<String>) -> bool {
        let Some(pod_resources) = &self.pod_resources else {
            return true;
        };
        let devices = self.offered().iter().flat_map(|it| &it.devices);
        let ids: BTreeSet<&String> = devices
            .filter(|device| uuids.contains(device.hardware.uuid()))
            .map(|device| &device.id)
            .collect();
        let begun = Instant::now();
        while !ids.is_empty() {
            match pod_resources.allocatable().await {
                Ok(usable) => {
                    let mut usable = usable.values().flatten();
                    if !usable.any(|id| ids.contains(id)) {
                        return true;
                    }
                }
                Err(error) => tracing::warn!("{error}"),
            }
            if begun.elapsed() > FENCE {
                return false;
            }
            tokio::time::sleep(POLL).await;
        }
        true
    }
}
