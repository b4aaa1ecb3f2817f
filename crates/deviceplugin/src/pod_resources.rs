// SPDX-License-Identifier: Apache-2.0
//! Who has which devices, as the kubelet tells.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::timeout;
use tonic::transport::Channel;

use crate::error::Error;
use crate::sockets::Sockets;
use crate::wire::podresources::pod_resources_lister_client::PodResourcesListerClient;
use crate::wire::podresources::{AllocatableResourcesRequest, ListPodResourcesRequest};

/// Longest wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Largest answer, in bytes: what the clients of others take, for some thousand devices.
const LARGEST: usize = 16 << 20;

/// Devices of one resource that a container has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holding {
    /// Namespace of the pod.
    pub namespace: String,
    /// Name of the pod.
    pub pod: String,
    /// Name of the container.
    pub container: String,
    /// Full name of the resource.
    pub resource: String,
    /// Ids of the devices.
    pub ids: BTreeSet<String>,
}

/// Asks the kubelet about the devices of its pods.
#[derive(Clone, Debug)]
pub struct PodResources {
    sockets: Sockets,
    socket: PathBuf,
}

impl PodResources {
    /// A client for the kubelet's socket, `/var/lib/kubelet/pod-resources/kubelet.sock` usually.
    pub const fn new(sockets: Sockets, socket: PathBuf) -> Self {
        Self { sockets, socket }
    }

    /// What every container has, of any resource, in order. Pods that have ended may be among them.
    ///
    /// # Errors
    /// If the kubelet does not answer within 10 s, or with more than 16 MiB.
    pub async fn held(&self) -> Result<Vec<Holding>, Error> {
        let list = async |mut client: PodResourcesListerClient<Channel>| {
            client.list(ListPodResourcesRequest {}).await
        };
        let answer = self.ask("List", list).await?;
        let mut held: BTreeMap<[String; 4], BTreeSet<String>> = BTreeMap::new();
        for pod in answer.pod_resources {
            for container in pod.containers {
                for devices in container.devices {
                    let holder = [
                        pod.namespace.clone(),
                        pod.name.clone(),
                        container.name.clone(),
                        devices.resource_name,
                    ];
                    held.entry(holder).or_default().extend(devices.device_ids);
                }
            }
        }
        let holding = |(holder, ids): ([String; 4], _)| {
            let [namespace, pod, container, resource] = holder;
            Holding {
                namespace,
                pod,
                container,
                resource,
                ids,
            }
        };
        Ok(held.into_iter().map(holding).collect())
    }

    /// Ids of the healthy devices that the kubelet counts with, in use or not, by resource.
    ///
    /// # Errors
    /// As [`PodResources::held`].
    pub async fn allocatable(&self) -> Result<BTreeMap<String, BTreeSet<String>>, Error> {
        let list = async |mut client: PodResourcesListerClient<Channel>| {
            let request = AllocatableResourcesRequest {};
            client.get_allocatable_resources(request).await
        };
        let answer = self.ask("GetAllocatableResources", list).await?;
        let mut ids: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for devices in answer.devices {
            let of_name = ids.entry(devices.resource_name).or_default();
            of_name.extend(devices.device_ids);
        }
        Ok(ids)
    }

    async fn ask<T>(
        &self,
        call: &'static str,
        question: impl AsyncFnOnce(
            PodResourcesListerClient<Channel>,
        ) -> Result<tonic::Response<T>, tonic::Status>,
    ) -> Result<T, Error> {
        let socket = || self.socket.clone();
        let asked = async {
            let client = PodResourcesListerClient::new(self.sockets.dial(&self.socket).await?);
            let answer = question(client.max_decoding_message_size(LARGEST)).await;
            answer.map_err(|status| Error::Call {
                call,
                socket: socket(),
                message: status.message().to_owned(),
            })
        };
        match timeout(ANSWER, asked).await {
            Ok(answer) => answer.map(tonic::Response::into_inner),
            Err(_) => Err(Error::TimedOut {
                socket: socket(),
                bound: ANSWER,
            }),
        }
    }
}
