// SPDX-License-Identifier: Apache-2.0
//! One resource as the kubelet calls it.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::offer::Offered;
use crate::plugins::Shared;
use crate::wire::deviceplugin::device_plugin_server::DevicePlugin;
use crate::wire::deviceplugin::{
    AllocateRequest, AllocateResponse, ContainerPreferredAllocationResponse, DevicePluginOptions,
    Empty, ListAndWatchResponse, PreStartContainerRequest, PreStartContainerResponse,
    PreferredAllocationRequest, PreferredAllocationResponse,
};

/// Where Linux gives out UUIDs.
const RANDOM_UUID: &str = "/proc/sys/kernel/random/uuid";

/// What a resource is now.
#[derive(Clone, Debug)]
pub(crate) struct Current {
    /// What the answers come from; `None`: it is withdrawn.
    pub(crate) offered: Option<Offered>,
    /// The list of its devices.
    pub(crate) list: ListAndWatchResponse,
    /// Grows with each change of the list.
    pub(crate) version: u64,
    /// When it was last offered or withdrawn.
    pub(crate) since: Instant,
}

/// What a plugin can do.
pub(crate) const OPTIONS: DevicePluginOptions = DevicePluginOptions {
    pre_start_required: false,
    get_preferred_allocation_available: true,
};

/// Answers the kubelet, from what is current at that moment.
#[derive(Clone)]
pub(crate) struct Service {
    /// Full name of the resource.
    pub(crate) name: String,
    /// What it is now.
    pub(crate) current: watch::Receiver<Current>,
    /// True, or without a sender: streams are to end.
    pub(crate) closing: watch::Receiver<bool>,
    /// Where streams are noted.
    pub(crate) shared: Arc<Shared>,
}

/// A stream of lists, noted on the board as long as it is open.
struct Noted {
    service: Service,
    number: u64,
}

impl Drop for Noted {
    fn drop(&mut self) {
        let service = &self.service;
        service.shared.board.update(&service.name, |state| {
            state.streams.remove(&self.number);
        });
    }
}

impl Service {
    fn offered(&self) -> Result<Offered, Status> {
        let offered = self.current.borrow().offered.clone();
        let gone = || Status::unknown(format!("{} is no longer offered on this node", self.name));
        offered.ok_or_else(gone)
    }
}

/// Waits until streams are to end.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the sender is gone, with the server.
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Sends each list as it becomes current, until the kubelet hangs up or the server closes.
async fn feed(service: Service, sender: mpsc::Sender<Result<ListAndWatchResponse, Status>>) {
    let number = service.shared.board.open_stream(&service.name);
    let mut noted = Noted { service, number };
    let mut sent = None;
    loop {
        let service = &mut noted.service;
        let (version, list) = {
            let current = service.current.borrow_and_update();
            (current.version, current.list.clone())
        };
        // A list that changed and changed back is not sent again.
        if sent.as_ref() != Some(&list) {
            tokio::select! {
                biased;
                taken = sender.send(Ok(list.clone())) => if taken.is_err() { break },
                () = closed(&mut service.closing) => break,
            }
            sent = Some(list);
        }
        service.shared.board.update(&service.name, |state| {
            state.streams.insert(number, version);
        });
        tokio::select! {
                biased;
            changed = service.current.changed() => if changed.is_err() { break },
            () = sender.closed() => break,
            () = closed(&mut service.closing) => break,
        }
    }
}

#[tonic::async_trait]
impl DevicePlugin for Service {
    async fn get_device_plugin_options(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<DevicePluginOptions>, Status> {
        Ok(Response::new(OPTIONS))
    }

    type ListAndWatchStream = ReceiverStream<Result<ListAndWatchResponse, Status>>;

    async fn list_and_watch(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListAndWatchStream>, Status> {
        // One list may wait: the next is sent when the kubelet has taken it.
        let (sender, receiver) = mpsc::channel(1);
        tokio::spawn(feed(self.clone(), sender));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_preferred_allocation(
        &self,
        request: Request<PreferredAllocationRequest>,
    ) -> Result<Response<PreferredAllocationResponse>, Status> {
        let offered = self.offered()?;
        let requests = request.into_inner().container_requests;
        let answers: Result<Vec<_>, _> = requests
            .iter()
            .map(|request| offered.prefer(request))
            .map(|ids| ids.map(|device_i_ds| ContainerPreferredAllocationResponse { device_i_ds }))
            .collect();
        let refused = |refusal| {
            let what = "error getting list of preferred allocation devices";
            Status::unknown(format!("{what}: {refusal}"))
        };
        Ok(Response::new(PreferredAllocationResponse {
            container_responses: answers.map_err(refused)?,
        }))
    }

    async fn allocate(
        &self,
        request: Request<AllocateRequest>,
    ) -> Result<Response<AllocateResponse>, Status> {
        let offered = self.offered()?;
        let mut answers = Vec::new();
        for request in request.into_inner().container_requests {
            let random = std::fs::read_to_string(RANDOM_UUID)
                .map_err(|error| Status::internal(format!("{RANDOM_UUID}: {error}")))?;
            let answer = offered.allocate(&request.devices_ids, random.trim());
            // The original's code and words, which people search for.
            let refused = |refusal| {
                let what = format!("invalid allocation request for {:?}", self.name);
                Status::unknown(format!("{what}: {refusal}"))
            };
            answers.push(answer.map_err(refused)?);
        }
        Ok(Response::new(AllocateResponse {
            container_responses: answers,
        }))
    }

    async fn pre_start_container(
        &self,
        _: Request<PreStartContainerRequest>,
    ) -> Result<Response<PreStartContainerResponse>, Status> {
        Ok(Response::new(PreStartContainerResponse {}))
    }
}
