// SPDX-License-Identifier: Apache-2.0
//! The device plugin as the kubelet meets it: calls over its socket, in this process.

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use deviceplugin::wire::deviceplugin as wire;
use deviceplugin::{Offer, Plugins, Sockets};
use publish::{Node, resources};
use tonic::transport::{Channel, Endpoint};
use wire::device_plugin_client::DevicePluginClient;

use crate::figure::{Budget, Figure, median};
use crate::preferred::{self, ORIGINAL, WANTED};

const RUNS: usize = 101;
/// Longest wait for the socket.
const SERVED: Duration = Duration::from_secs(5);

/// Four of 16 GPUs, and a changed list.
///
/// # Errors
/// If the plugin does not serve, or answers wrongly.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let name = format!("slicewright-figures-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let figures = runtime.block_on(serve(folder.clone()));
    std::fs::remove_dir_all(folder)?;
    figures
}

async fn serve(folder: PathBuf) -> Result<Vec<Figure>, Box<dyn Error>> {
    let (node, links) = preferred::node(preferred::in_groups)?;
    let offer = |node: &Node| Offer {
        resources: resources(node).0,
        links: links.clone(),
        ..Offer::default()
    };
    let plugins = Plugins::start(Sockets::unix(), folder.clone(), None);
    plugins.offer(offer(&node));
    let socket = format!("unix:{}", folder.join("nvidia-gpu.sock").display());
    let endpoint = Endpoint::from_shared(socket)?;
    let channel = tokio::time::timeout(SERVED, async {
        loop {
            match endpoint.connect().await {
                Ok(channel) => break channel,
                Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        }
    });
    let mut client = DevicePluginClient::new(channel.await?);
    let figures = vec![
        prefer(&mut client).await?,
        change(&mut client, |gpus| {
            let mut node = node.clone();
            if let Some(inventory) = &mut node.inventory {
                inventory.gpus.truncate(gpus);
            }
            plugins.offer(offer(&node));
        })
        .await?,
    ];
    plugins.stop().await;
    Ok(figures)
}

async fn prefer(client: &mut DevicePluginClient<Channel>) -> Result<Figure, Box<dyn Error>> {
    let mut lists = client.list_and_watch(wire::Empty {}).await?.into_inner();
    let list = lists.message().await?.ok_or("no list")?;
    let available: Vec<String> = list.devices.into_iter().map(|device| device.id).collect();
    let request = || wire::PreferredAllocationRequest {
        container_requests: vec![wire::ContainerPreferredAllocationRequest {
            available_device_i_ds: available.clone(),
            must_include_device_i_ds: Vec::new(),
            allocation_size: WANTED.try_into().unwrap_or_default(),
        }],
    };
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let answer = client.get_preferred_allocation(request()).await?;
        times.push(begun.elapsed());
        let answers = answer.into_inner().container_responses;
        if answers
            .first()
            .is_none_or(|it| it.device_i_ds.len() != WANTED)
        {
            return Err(format!("{answers:?} is not {WANTED}").into());
        }
    }
    let how = "in four groups, over gRPC";
    Ok(preferred::figure(how, ORIGINAL, times))
}

/// From a changed offer to the list at the other end of the socket.
async fn change(
    client: &mut DevicePluginClient<Channel>,
    offer: impl Fn(usize),
) -> Result<Figure, Box<dyn Error>> {
    let mut lists = client.list_and_watch(wire::Empty {}).await?.into_inner();
    lists.message().await?;
    let mut times = Vec::new();
    for gpus in [1, 2].into_iter().cycle().take(RUNS) {
        let begun = Instant::now();
        offer(gpus);
        let list = lists.message().await?.ok_or("the stream ended")?;
        times.push(begun.elapsed());
        if list.devices.len() != gpus {
            return Err(format!("{list:?} is not {gpus}").into());
        }
    }
    Ok(Figure {
        name: "a changed offer, until the kubelet has the list".to_owned(),
        budget: Budget::AtMost(1_000_000.0),
        runs: times.len(),
        measured: median(times).as_secs_f64() * 1e6,
        unit: "us",
        original: "never: a restart",
    })
}
