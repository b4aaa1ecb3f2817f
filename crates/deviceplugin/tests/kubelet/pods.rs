// SPDX-License-Identifier: Apache-2.0
//! Who has which devices, from a stand-in of the kubelet's list.

use std::collections::BTreeSet;
use std::time::Duration;

use deviceplugin::wire::podresources as wire;
use deviceplugin::{Holding, PodResources};
use tonic::transport::Server;
use tonic::{Request, Response, Status};
use wire::pod_resources_lister_server::{PodResourcesLister, PodResourcesListerServer};

use crate::stand_in::Folder;

/// Pods, each with one container of one device.
struct Pods(usize);

fn devices(resource: &str, ids: &[&str]) -> wire::ContainerDevices {
    wire::ContainerDevices {
        resource_name: resource.to_owned(),
        device_ids: ids.iter().map(|id| (*id).to_owned()).collect(),
        topology: None,
    }
}

#[tonic::async_trait]
impl PodResourcesLister for Pods {
    async fn list(
        &self,
        _: Request<wire::ListPodResourcesRequest>,
    ) -> Result<Response<wire::ListPodResourcesResponse>, Status> {
        let pod = |number| wire::PodResources {
            name: format!("pod-{number:05}"),
            namespace: "a".to_owned(),
            containers: vec![wire::ContainerResources {
                name: "main".to_owned(),
                // A device each, as the kubelet lists those of several NUMA nodes.
                devices: vec![
                    devices("nvidia.com/gpu", &["b"]),
                    devices("nvidia.com/gpu", &["a"]),
                ],
                ..Default::default()
            }],
            ..Default::default()
        };
        Ok(Response::new(wire::ListPodResourcesResponse {
            pod_resources: (0..self.0).rev().map(pod).collect(),
        }))
    }

    async fn get_allocatable_resources(
        &self,
        _: Request<wire::AllocatableResourcesRequest>,
    ) -> Result<Response<wire::AllocatableResourcesResponse>, Status> {
        Ok(Response::new(wire::AllocatableResourcesResponse {
            devices: vec![
                devices("nvidia.com/gpu", &["b"]),
                devices("example.org/x", &["c"]),
                devices("nvidia.com/gpu", &["a"]),
            ],
            ..Default::default()
        }))
    }

    async fn get(
        &self,
        _: Request<wire::GetPodResourcesRequest>,
    ) -> Result<Response<wire::GetPodResourcesResponse>, Status> {
        Err(Status::unimplemented("nobody asks"))
    }
}

fn serve(folder: &Folder, pods: usize) -> PodResources {
    let socket = folder.kubelet_socket();
    let listener = folder.place.bind(&socket).unwrap();
    let server = Server::builder().add_service(PodResourcesListerServer::new(Pods(pods)));
    tokio::spawn(server.serve_with_incoming(listener));
    PodResources::new(folder.place.clone(), socket)
}

#[tokio::test(start_paused = true)]
async fn holders_and_devices_are_told_in_order() {
    let folder = Folder::new();
    let kubelet = serve(&folder, 2);
    let both = || BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    let holding = |pod: &str| Holding {
        namespace: "a".to_owned(),
        pod: pod.to_owned(),
        container: "main".to_owned(),
        resource: "nvidia.com/gpu".to_owned(),
        ids: both(),
    };
    let asked = tokio::spawn({
        let kubelet = kubelet.clone();
        async move { kubelet.held().await }
    });
    let expected = [holding("pod-00000"), holding("pod-00001")];
    assert_eq!(asked.await.unwrap().unwrap(), expected);
    let allocatable = kubelet.allocatable().await.unwrap();
    assert_eq!(allocatable.len(), 2);
    assert_eq!(allocatable["nvidia.com/gpu"], both());
}

/// tonic's own limit is 4 MiB.
#[tokio::test(start_paused = true)]
async fn long_answers_are_read() {
    let folder = Folder::new();
    let kubelet = serve(&folder, 100_000);
    assert_eq!(kubelet.held().await.unwrap().len(), 100_000);
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_is_not_there_or_silent_is_an_error() {
    let folder = Folder::new();
    let socket = folder.kubelet_socket();
    let kubelet = PodResources::new(folder.place.clone(), socket.clone());
    let error = kubelet.held().await.unwrap_err().to_string();
    assert!(error.starts_with("cannot connect to"), "{error}");
    let _listener = folder.place.bind(&socket).unwrap();
    let before = tokio::time::Instant::now();
    let error = kubelet.allocatable().await.unwrap_err().to_string();
    assert!(error.starts_with("no answer on"), "{error}");
    assert!(before.elapsed() <= Duration::from_secs(10));
}
