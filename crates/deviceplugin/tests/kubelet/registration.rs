// SPDX-License-Identifier: Apache-2.0
//! Who is told of what, and when again.

use std::time::Duration;

use deviceplugin::Plugins;
use deviceplugin::wire::deviceplugin as wire;

use crate::offers::{gpus, offer, uuid};
use crate::stand_in::{Event, Folder, Kubelet};

const GPU: &str = "nvidia.com/gpu";
const SHARED: &str = "nvidia.com/gpu.shared";

fn start(folder: &Folder) -> Plugins {
    Plugins::start(
        folder.place.clone(),
        folder.path().to_owned(),
        Some(folder.kubelet_socket()),
    )
}

/// A kubelet that knows two GPUs.
async fn listening(folder: &Folder) -> (Kubelet, Plugins) {
    let mut kubelet = Kubelet::start(folder);
    let plugins = start(folder);
    plugins.offer(offer([gpus(GPU, 0..2)]));
    assert_eq!(kubelet.registered().await, GPU);
    assert_eq!(kubelet.listed(GPU).await.len(), 2);
    (kubelet, plugins)
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_served_registered_and_listed() {
    for folder in Folder::both() {
        let mut kubelet = Kubelet::start(&folder);
        let plugins = start(&folder);
        plugins.offer(offer([gpus(GPU, 0..2)]));
        let options = wire::DevicePluginOptions {
            pre_start_required: false,
            get_preferred_allocation_available: true,
        };
        let request = wire::RegisterRequest {
            version: "v1beta1".into(),
            endpoint: "nvidia-gpu.sock".into(),
            resource_name: GPU.into(),
            options: Some(options),
        };
        assert_eq!(kubelet.event().await, Event::Registered(request));
        let device = |index: u32| wire::Device {
            id: uuid(index),
            health: "Healthy".into(),
            topology: Some(wire::TopologyInfo {
                nodes: vec![wire::NumaNode { id: 0 }],
            }),
        };
        let list = vec![device(0), device(1)];
        assert_eq!(kubelet.event().await, Event::Listed(GPU.into(), list));
        assert!(folder.has("nvidia-gpu.sock"));
        assert!(plugins.wait_listed(Duration::from_secs(1)).await);
        let status = plugins.status();
        assert_eq!(status.len(), 1);
        assert!(status[0].registered && status[0].listed, "{status:?}");
        kubelet.quiet(3600).await;
        plugins.stop().await;
        kubelet.ended(GPU).await;
        assert!(!folder.has("nvidia-gpu.sock"));
    }
}

/// A killed kubelet leaves its socket; the next one makes it anew.
#[tokio::test(start_paused = true)]
async fn a_restarted_kubelet_is_told_once() {
    for folder in Folder::both() {
        let (mut kubelet, plugins) = listening(&folder).await;
        kubelet.crash().await;
        let mut kubelet = Kubelet::start(&folder);
        assert_eq!(kubelet.registered().await, GPU);
        assert_eq!(kubelet.listed(GPU).await.len(), 2);
        kubelet.quiet(3600).await;
        assert!(plugins.wait_listed(Duration::ZERO).await);
    }
}

/// The real kubelet removes all sockets at its start.
#[tokio::test(start_paused = true)]
async fn a_kubelet_that_empties_the_folder_is_told_once() {
    for folder in Folder::both() {
        let (mut kubelet, _plugins) = listening(&folder).await;
        kubelet.crash().await;
        folder.empty();
        let mut kubelet = Kubelet::start(&folder);
        assert_eq!(kubelet.registered().await, GPU);
        assert_eq!(kubelet.listed(GPU).await.len(), 2);
        assert!(folder.has("nvidia-gpu.sock"));
        kubelet.quiet(3600).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_replaced_folder_is_noticed() {
    let folder = Folder::new();
    let (mut kubelet, _plugins) = listening(&folder).await;
    kubelet.crash().await;
    std::fs::remove_dir_all(folder.path()).unwrap();
    tokio::time::advance(Duration::from_secs(10)).await;
    std::fs::create_dir(folder.path()).unwrap();
    let mut kubelet = Kubelet::start(&folder);
    assert_eq!(kubelet.registered().await, GPU);
    assert_eq!(kubelet.listed(GPU).await.len(), 2);
    kubelet.quiet(3600).await;
}

/// The kubelet must have let go of the old stream before it is told again.
#[tokio::test(start_paused = true)]
async fn a_removed_socket_is_made_and_told_again() {
    for folder in Folder::both() {
        let (mut kubelet, _plugins) = listening(&folder).await;
        let socket = folder.path().join("nvidia-gpu.sock");
        folder.place.remove(&socket).unwrap();
        kubelet.ended(GPU).await;
        assert_eq!(kubelet.registered().await, GPU);
        assert_eq!(kubelet.listed(GPU).await.len(), 2);
        assert!(folder.has("nvidia-gpu.sock"));
        kubelet.quiet(3600).await;
    }
}

/// As with a kubelet that the connection was lost to.
#[tokio::test(start_paused = true)]
async fn a_kubelet_that_hangs_up_is_told_again() {
    for folder in Folder::both() {
        let (mut kubelet, _plugins) = listening(&folder).await;
        kubelet.hang_up().await;
        assert_eq!(kubelet.registered().await, GPU);
        assert_eq!(kubelet.listed(GPU).await.len(), 2);
        kubelet.quiet(3600).await;
    }
}

/// Kubelet 1.37 refuses a second plugin on a socket, and never lets go of the first one then.
#[tokio::test(start_paused = true)]
async fn a_kubelet_that_holds_on_to_a_socket_is_told_of_another() {
    let folder = Folder::new();
    let mut kubelet = Kubelet::start(&folder);
    kubelet.believe_in("nvidia-gpu.sock");
    let plugins = start(&folder);
    plugins.offer(offer([gpus(GPU, 0..2)]));
    match kubelet.event().await {
        Event::Registered(request) => assert_eq!(request.endpoint, "nvidia-gpu-1.sock"),
        other => panic!("no registration: {other:?}"),
    }
    assert_eq!(kubelet.listed(GPU).await.len(), 2);
    assert_eq!(folder.sockets(), ["nvidia-gpu-1.sock"]);
    kubelet.quiet(3600).await;
}

/// As by a relabelling of the folder.
#[tokio::test(start_paused = true)]
async fn rights_of_sockets_are_nobodys_restart() {
    let folder = Folder::new();
    let (mut kubelet, _plugins) = listening(&folder).await;
    for socket in ["kubelet.sock", "nvidia-gpu.sock"] {
        let rights = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(folder.path().join(socket), rights).unwrap();
    }
    kubelet.quiet(3600).await;
}

#[tokio::test(start_paused = true)]
async fn a_dead_kubelet_is_waited_for() {
    for folder in Folder::both() {
        let plugins = start(&folder);
        plugins.offer(offer([gpus(GPU, 0..1)]));
        // None was ever there.
        assert!(!plugins.wait_listed(Duration::from_secs(3600)).await);
        let status = plugins.status();
        assert!(!status[0].registered, "{status:?}");
        assert_eq!(status[0].last_error, None);
        // One was there and is dead.
        Kubelet::start(&folder).crash().await;
        assert!(!plugins.wait_listed(Duration::from_secs(3600)).await);
        let error = plugins.status()[0].last_error.clone().unwrap();
        assert!(error.contains("kubelet.sock"), "{error}");
        let mut kubelet = Kubelet::start(&folder);
        assert_eq!(kubelet.registered().await, GPU);
        assert_eq!(kubelet.listed(GPU).await.len(), 1);
        assert_eq!(plugins.status()[0].last_error, None);
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_kubelet_resources_are_served_only() {
    let folder = Folder::new();
    let mut kubelet = Kubelet::start(&folder);
    let plugins = Plugins::start(folder.place.clone(), folder.path().to_owned(), None);
    plugins.offer(offer([gpus(GPU, 0..1)]));
    kubelet.quiet(3600).await;
    assert_eq!(folder.sockets(), ["nvidia-gpu.sock"]);
}

/// A restart of the agent must not tell the kubelet that the devices are gone.
#[tokio::test(start_paused = true)]
async fn a_stop_sends_no_empty_list() {
    let folder = Folder::new();
    let (mut kubelet, plugins) = listening(&folder).await;
    plugins.stop().await;
    kubelet.ended(GPU).await;
    let plugins = start(&folder);
    plugins.offer(offer([gpus(GPU, 0..2)]));
    assert_eq!(kubelet.registered().await, GPU);
    assert_eq!(kubelet.listed(GPU).await.len(), 2);
}

/// What is not ours is replaced, as the original does: a socket that a dead plugin left.
#[tokio::test(start_paused = true)]
async fn a_stale_socket_is_replaced() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("nvidia-gpu.shared.sock"), "").unwrap();
    let mut kubelet = Kubelet::start(&folder);
    let plugins = start(&folder);
    plugins.offer(offer([gpus(SHARED, 0..1)]));
    assert_eq!(kubelet.registered().await, SHARED);
    assert_eq!(kubelet.listed(SHARED).await.len(), 1);
}

/// The folder may come later than the plugin.
#[tokio::test(start_paused = true)]
async fn a_missing_folder_is_waited_for() {
    let folder = Folder::new();
    std::fs::remove_dir_all(folder.path()).unwrap();
    let plugins = start(&folder);
    plugins.offer(offer([gpus(GPU, 0..1)]));
    assert!(!plugins.wait_listed(Duration::from_secs(60)).await);
    let error = plugins.status()[0].last_error.clone().unwrap();
    assert!(error.starts_with("cannot serve on"), "{error}");
    std::fs::create_dir(folder.path()).unwrap();
    let mut kubelet = Kubelet::start(&folder);
    assert_eq!(kubelet.registered().await, GPU);
}
