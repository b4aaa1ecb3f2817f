// SPDX-License-Identifier: Apache-2.0
//! Answers to calls.

use std::collections::BTreeMap;

use deviceplugin::Plugins;
use deviceplugin::wire::deviceplugin as wire;
use tonic::Code;

use crate::offers::{gpus, offer, shared, uuid};
use crate::stand_in::{Folder, Kubelet};

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";

fn request(containers: &[&[String]]) -> wire::AllocateRequest {
    let container = |ids: &&[String]| wire::ContainerAllocateRequest {
        devices_ids: ids.to_vec(),
    };
    wire::AllocateRequest {
        container_requests: containers.iter().map(container).collect(),
    }
}

#[tokio::test(start_paused = true)]
async fn containers_get_what_they_need() {
    let folder = Folder::new();
    let mut kubelet = Kubelet::start(&folder);
    let plugins = Plugins::start(
        folder.place.clone(),
        folder.path().to_owned(),
        Some(folder.kubelet_socket()),
    );
    plugins.offer(offer([gpus(GPU, 0..2)]));
    kubelet.registered().await;
    let mut plugin = kubelet.plugin(GPU);
    let answer = plugin.allocate(request(&[&[uuid(1), uuid(0)], &[]])).await;
    let visible = |ids: String| wire::ContainerAllocateResponse {
        envs: BTreeMap::from([("NVIDIA_VISIBLE_DEVICES".to_owned(), ids)]),
        ..Default::default()
    };
    let both = format!("{},{}", uuid(1), uuid(0));
    let expected = [visible(both), visible(String::new())];
    assert_eq!(answer.unwrap().into_inner().container_responses, expected);
    let started = wire::PreStartContainerRequest {
        devices_ids: vec![uuid(0)],
    };
    plugin.pre_start_container(started).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_is_not_to_be_handed_out_is_refused_with_the_reason() {
    let folder = Folder::new();
    let mut kubelet = Kubelet::start(&folder);
    let plugins = Plugins::start(
        folder.place.clone(),
        folder.path().to_owned(),
        Some(folder.kubelet_socket()),
    );
    let fenced = || {
        let mut offer = offer([shared(SHARED, 4)]);
        offer.fenced.insert(uuid(0), "its layout changes".into());
        offer
    };
    plugins.offer(offer([shared(SHARED, 4)]));
    kubelet.registered().await;
    kubelet.listed(SHARED).await;
    let mut plugin = kubelet.plugin(SHARED);
    let replica = |number: u32| format!("{}::{number}", uuid(0));
    let refuse = async |plugin: &mut wire::device_plugin_client::DevicePluginClient<_>,
                        ids: &[String]| {
        let status = plugin.allocate(request(&[ids])).await.unwrap_err();
        assert_eq!(status.code(), Code::Unknown);
        let start = format!("invalid allocation request for \"{SHARED}\": ");
        let message = status.message();
        message.strip_prefix(&start).unwrap_or(message).to_owned()
    };
    let unknown = refuse(&mut plugin, &[replica(9)]).await;
    assert!(unknown.contains("unknown device"), "{unknown}");
    let many = refuse(&mut plugin, &[replica(0), replica(1)]).await;
    assert!(many.contains("maximum request size"), "{many}");
    plugin.allocate(request(&[&[replica(3)]])).await.unwrap();
    plugins.offer(fenced());
    let reason = refuse(&mut plugin, &[replica(3)]).await;
    assert!(reason.contains("its layout changes"), "{reason}");
    plugins.offer(offer([]));
    let gone = refuse(&mut plugin, &[replica(3)]).await;
    assert!(gone.contains("no longer offered"), "{gone}");
}

#[tokio::test(start_paused = true)]
async fn preferences_are_answered_and_impossible_ones_refused() {
    let folder = Folder::new();
    let mut kubelet = Kubelet::start(&folder);
    let plugins = Plugins::start(
        folder.place.clone(),
        folder.path().to_owned(),
        Some(folder.kubelet_socket()),
    );
    plugins.offer(offer([shared(SHARED, 4)]));
    kubelet.registered().await;
    let mut plugin = kubelet.plugin(SHARED);
    let ask = |allocation_size| wire::PreferredAllocationRequest {
        container_requests: vec![wire::ContainerPreferredAllocationRequest {
            available_device_i_ds: vec![format!("{}::2", uuid(0)), format!("{}::1", uuid(0))],
            must_include_device_i_ds: vec![format!("{}::2", uuid(0))],
            allocation_size,
        }],
    };
    let answer = plugin.get_preferred_allocation(ask(2)).await.unwrap();
    let chosen = &answer.into_inner().container_responses[0].device_i_ds;
    assert_eq!(
        *chosen,
        [format!("{}::2", uuid(0)), format!("{}::1", uuid(0))]
    );
    let status = plugin.get_preferred_allocation(ask(3)).await.unwrap_err();
    assert_eq!(status.code(), Code::Unknown);
    assert!(
        status.message().contains("not enough available devices"),
        "{status}"
    );
}
