// SPDX-License-Identifier: Apache-2.0
//! What the kubelet may be told, and what follows from it. No I/O here.

use std::collections::BTreeMap;
use std::sync::Arc;

use config::deviceplugin::Config;
use plan::Refusal;
use publish::{
    AllocateFlags, Answer, CdiExtra, Device, Links, PreferenceRequest, Resource, allocate,
    preferred,
};
use units::Code;

use crate::wire::deviceplugin as wire;

/// Everything that the answers to the kubelet follow from.
#[derive(Clone, Debug, Default)]
pub struct Offer {
    /// What is advertised, each name once.
    pub resources: Vec<Resource>,
    /// How the GPUs are connected.
    pub links: Links,
    /// Settings in force.
    pub config: Arc<Config>,
    /// Control device nodes that exist, as [`AllocateFlags`] has them.
    pub control_nodes: Vec<String>,
    /// Whether the device node of IMEX channel 0 exists.
    pub has_imex_channel_0: bool,
    /// CDI specifications that were written besides that of the GPUs.
    pub cdi_extras: Vec<CdiExtra>,
    /// GPUs and slices that are listed as unhealthy and not handed out, with all their replicas, by
    /// UUID, with the reason.
    pub fenced: BTreeMap<String, String>,
}

/// One resource of an offer.
#[derive(Clone, Debug)]
pub(crate) struct Offered {
    offer: Arc<Offer>,
    resource: usize,
}

impl Offered {
    /// All resources of an offer.
    pub(crate) fn all(offer: &Arc<Offer>) -> impl Iterator<Item = Self> + use<> {
        let offer = Arc::clone(offer);
        (0..offer.resources.len()).map(move |resource| Self {
            offer: Arc::clone(&offer),
            resource,
        })
    }

    /// The resource.
    pub(crate) fn resource(&self) -> &Resource {
        &self.offer.resources[self.resource]
    }

    /// Why a device is not handed out now.
    fn fence(&self, device: &Device) -> Option<&str> {
        let reason = self.offer.fenced.get(device.hardware.uuid());
        reason.map(String::as_str)
    }

    /// The devices as the kubelet gets them.
    pub(crate) fn list(&self) -> wire::ListAndWatchResponse {
        let device = |device: &Device| {
            let well = device.is_healthy() && self.fence(device).is_none();
            let near = |node: u32| wire::TopologyInfo {
                nodes: vec![wire::NumaNode { id: node.into() }],
            };
            wire::Device {
                id: device.id.clone(),
                health: if well { "Healthy" } else { "Unhealthy" }.to_owned(),
                topology: device.hardware.numa_node.map(near),
            }
        };
        wire::ListAndWatchResponse {
            devices: self.resource().devices.iter().map(device).collect(),
        }
    }

    /// What a container with these devices must be given.
    ///
    /// # Errors
    /// `unknown-device`, `too-many-replicas`: as [`allocate`], and `unknown-device` where a device
    /// is fenced.
    pub(crate) fn allocate(
        &self,
        ids: &[String],
        annotation_id: &str,
    ) -> Result<wire::ContainerAllocateResponse, Refusal> {
        let offer = &self.offer;
        for device in ids.iter().filter_map(|id| self.resource().device(id)) {
            if let Some(reason) = self.fence(device) {
                let message = format!("{} is not handed out now: {reason}", device.id);
                return Err(Refusal::new(Code::UnknownDevice, message));
            }
        }
        let flags = AllocateFlags {
            config: &offer.config,
            control_nodes: &offer.control_nodes,
            has_imex_channel_0: offer.has_imex_channel_0,
            cdi_extras: &offer.cdi_extras,
            annotation_id,
        };
        allocate(self.resource(), ids, &flags).map(response)
    }

    /// The ids that a container had best get.
    ///
    /// # Errors
    /// `not-enough-devices`: as [`preferred`].
    pub(crate) fn prefer(
        &self,
        request: &wire::ContainerPreferredAllocationRequest,
    ) -> Result<Vec<String>, Refusal> {
        let asked = PreferenceRequest {
            available: &request.available_device_i_ds,
            required: &request.must_include_device_i_ds,
            size: usize::try_from(request.allocation_size).unwrap_or_default(),
        };
        let policy = self
            .offer
            .config
            .flags
            .plugin
            .shared_devices_allocation_policy;
        preferred(self.resource(), &self.offer.links, policy, &asked)
    }
}

fn response(answer: Answer) -> wire::ContainerAllocateResponse {
    let mount = |it: publish::Mount| wire::Mount {
        container_path: it.container_path,
        host_path: it.host_path,
        read_only: false,
    };
    let device = |it: publish::DeviceNode| wire::DeviceSpec {
        container_path: it.container_path,
        host_path: it.host_path,
        permissions: "rw".to_owned(),
    };
    let cdi = |name| wire::CdiDevice { name };
    wire::ContainerAllocateResponse {
        envs: answer.envs,
        mounts: answer.mounts.into_iter().map(mount).collect(),
        devices: answer.devices.into_iter().map(device).collect(),
        annotations: answer.annotations,
        cdi_devices: answer.cdi_devices.into_iter().map(cdi).collect(),
    }
}
