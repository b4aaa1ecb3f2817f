// SPDX-License-Identifier: Apache-2.0
//! What streams say as the offer changes.

use std::sync::Arc;
use std::time::Duration;

use deviceplugin::{Offer, Plugins};

use crate::offers::{gpus, offer, shared, uuid};
use crate::stand_in::{Folder, Kubelet};

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";

/// A kubelet that knows what is offered.
async fn listening(folder: &Folder, offer: Offer) -> (Kubelet, Plugins) {
    let mut kubelet = Kubelet::start(folder);
    let plugins = Plugins::start(
        folder.place.clone(),
        folder.path().to_owned(),
        Some(folder.kubelet_socket()),
    );
    let count = offer.resources.len();
    plugins.offer(offer);
    for _ in 0..2 * count {
        kubelet.event().await;
    }
    (kubelet, plugins)
}

#[tokio::test(start_paused = true)]
async fn a_change_is_sent_whole_and_at_once() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([gpus(GPU, 0..2)])).await;
    let before = tokio::time::Instant::now();
    plugins.offer(offer([gpus(GPU, 1..4)]));
    let ids = (1..4).map(|index| (uuid(index), true));
    assert_eq!(kubelet.listed(GPU).await, ids.collect::<Vec<_>>());
    assert!(plugins.wait_listed(Duration::ZERO).await);
    plugins.offer(offer([gpus(GPU, 0..0)]));
    assert_eq!(kubelet.listed(GPU).await, []);
    plugins.offer(offer([gpus(GPU, 0..1)]));
    assert_eq!(kubelet.listed(GPU).await, [(uuid(0), true)]);
    assert_eq!(before.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn an_offer_with_the_same_lists_sends_nothing() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([gpus(GPU, 0..2)])).await;
    let mut other = offer([gpus(GPU, 0..2)]);
    other.control_nodes.push("/dev/nvidiactl".into());
    plugins.offer(other);
    assert!(plugins.wait_listed(Duration::ZERO).await);
    kubelet.quiet(3600).await;
}

#[tokio::test(start_paused = true)]
async fn faults_and_fences_make_devices_unhealthy() {
    let folder = Folder::new();
    let (mut kubelet, plugins) =
        listening(&folder, offer([gpus(GPU, 0..2), shared(SHARED, 2)])).await;
    let fence = |resources: Vec<publish::Resource>| {
        let mut offer = offer(resources);
        offer.fenced.insert(uuid(0), "its layout changes".into());
        offer
    };
    plugins.offer(fence(vec![gpus(GPU, 0..2), shared(SHARED, 2)]));
    // All that stands for GPU 0, under each name.
    let mut lists = [kubelet.event().await, kubelet.event().await];
    lists.sort_by_key(|event| format!("{event:?}"));
    let unhealthy = |event: &crate::stand_in::Event| match event {
        crate::stand_in::Event::Listed(_, devices) => {
            let sick = devices.iter().filter(|it| it.health == "Unhealthy");
            sick.map(|it| it.id.clone()).collect::<Vec<_>>()
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(unhealthy(&lists[0]), [uuid(0)]);
    let replicas = [0, 1].map(|replica| format!("{}::{replica}", uuid(0)));
    assert_eq!(unhealthy(&lists[1]), replicas);
    plugins.offer(offer([gpus(GPU, 0..2), shared(SHARED, 2)]));
    kubelet.event().await;
    kubelet.event().await;
    // A fault is the hardware's, and goes when it does.
    let mut sick = gpus(GPU, 0..2);
    let mut hardware = (*sick.devices[1].hardware).clone();
    hardware.fault = Some("XID 79".into());
    sick.devices[1].hardware = Arc::new(hardware);
    plugins.offer(offer([sick, shared(SHARED, 2)]));
    assert_eq!(
        kubelet.listed(GPU).await,
        [(uuid(0), true), (uuid(1), false)]
    );
    plugins.offer(offer([gpus(GPU, 0..2), shared(SHARED, 2)]));
    assert_eq!(
        kubelet.listed(GPU).await,
        [(uuid(0), true), (uuid(1), true)]
    );
}

#[tokio::test(start_paused = true)]
async fn a_name_that_goes_is_withdrawn_by_an_empty_list_and_closed_later() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([gpus(GPU, 0..2)])).await;
    plugins.offer(offer([shared(SHARED, 4)]));
    let before = tokio::time::Instant::now();
    assert_eq!(kubelet.listed(GPU).await, []);
    assert_eq!(kubelet.registered().await, SHARED);
    assert_eq!(kubelet.listed(SHARED).await.len(), 4);
    assert_eq!(before.elapsed(), Duration::ZERO);
    let names = |plugins: &Plugins| -> Vec<String> {
        let statuses = plugins.status().into_iter();
        statuses.map(|status| status.name).collect()
    };
    assert_eq!(names(&plugins), [SHARED]);
    assert_eq!(folder.sockets().len(), 2);
    kubelet.ended(GPU).await;
    assert!(before.elapsed() >= Duration::from_secs(5));
    kubelet.quiet(60).await;
    assert_eq!(folder.sockets(), ["nvidia-gpu.shared.sock"]);
    // Later it is as new.
    plugins.offer(offer([gpus(GPU, 0..2)]));
    assert_eq!(kubelet.listed(SHARED).await, []);
    assert_eq!(kubelet.registered().await, GPU);
    assert_eq!(kubelet.listed(GPU).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_name_that_comes_back_before_it_is_closed_goes_on() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([gpus(GPU, 0..2)])).await;
    plugins.offer(offer([]));
    assert_eq!(kubelet.listed(GPU).await, []);
    kubelet.quiet(3).await;
    plugins.offer(offer([gpus(GPU, 0..1)]));
    assert_eq!(kubelet.listed(GPU).await, [(uuid(0), true)]);
    kubelet.quiet(3600).await;
}

/// Back and forth faster than anybody looks: the last counts, and nothing is registered again.
#[tokio::test(start_paused = true)]
async fn a_flip_and_back_is_one_stream() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([shared(SHARED, 4)])).await;
    plugins.offer(offer([gpus(GPU, 0..1)]));
    plugins.offer(offer([shared(SHARED, 4)]));
    kubelet.quiet(3600).await;
    assert_eq!(folder.sockets(), ["nvidia-gpu.shared.sock"]);
    assert!(plugins.wait_listed(Duration::ZERO).await);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_name_without_a_kubelet_is_closed() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder, offer([gpus(GPU, 0..2)])).await;
    kubelet.crash().await;
    plugins.offer(offer([]));
    assert!(plugins.wait_listed(Duration::from_secs(10)).await);
    let mut kubelet = Kubelet::start(&folder);
    kubelet.quiet(3600).await;
    assert!(folder.sockets().is_empty());
}
