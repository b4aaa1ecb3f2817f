// SPDX-License-Identifier: Apache-2.0
//! The embedded API server with as many objects as a large cluster has, by a client in this process.
//! Nobody has given budgets: these are what a test does not notice.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::try_join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use simcluster::{ApiServer, Settings};

use crate::agent::resident_mb;
use crate::figure::{Budget, Figure, median};

const OBJECTS: usize = 10_000;
const WATCHERS: usize = 100;
const RUNS: usize = 9;
/// Of one page, as kube's watchers ask.
const PAGE: u32 = 500;

/// Memory, a whole list, and a change seen by all watchers.
///
/// # Errors
/// If the server refuses something.
pub fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(measure_all())
}

async fn measure_all() -> Result<Vec<Figure>, Box<dyn Error>> {
    let server = ApiServer::new(&Settings::default());
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client("default"));
    let before = resident_mb(std::process::id())?;
    for number in 0..OBJECTS {
        maps.create(&PostParams::default(), &object(number)).await?;
    }
    let grown = resident_mb(std::process::id())? - before;
    let mut lists = Vec::new();
    for _ in 0..RUNS {
        lists.push(list(&maps).await?);
    }
    let changes = changes(&server, &maps).await?;
    let figure = |name: &str, most, measured, unit, runs| Figure {
        name: format!("embedded API server with {OBJECTS} objects, {name}"),
        budget: Budget::AtMost(most),
        measured,
        unit,
        runs,
        original: "",
    };
    let ms = |times| median(times).as_secs_f64() * 1e3;
    let seen = format!("a change seen by {WATCHERS} watchers");
    Ok(vec![
        figure("resident", 100.0, grown, "MB", 1),
        figure("list of all", 1000.0, ms(lists), "ms", RUNS),
        figure(&seen, 100.0, ms(changes), "ms", RUNS),
    ])
}

fn object(number: usize) -> ConfigMap {
    let data = (0..4).map(|key| (format!("key-{key}"), format!("value {key} of {number}")));
    let mut map = ConfigMap {
        data: Some(data.collect::<BTreeMap<_, _>>()),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(format!("map-{number:05}"));
    map
}

/// The time of a list of all, page by page.
async fn list(maps: &Api<ConfigMap>) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let mut parameters = ListParams::default().limit(PAGE);
    let mut count = 0;
    loop {
        let page = maps.list(&parameters).await?;
        count += page.items.len();
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => parameters.continue_token = Some(token),
            None => break,
        }
    }
    match count {
        OBJECTS => Ok(begun.elapsed()),
        _ => Err(format!("{count} objects listed").into()),
    }
}

/// Times from a write until every watcher has it.
async fn changes(
    server: &ApiServer,
    maps: &Api<ConfigMap>,
) -> Result<Vec<Duration>, Box<dyn Error>> {
    let version = maps.list(&ListParams::default().limit(1)).await?;
    let version = version.metadata.resource_version.unwrap_or_default();
    let mut streams = Vec::new();
    for _ in 0..WATCHERS {
        let maps: Api<ConfigMap> = Api::default_namespaced(server.client("default"));
        let stream = maps.watch(&WatchParams::default(), &version).await?;
        streams.push(stream.boxed());
    }
    let mut times = Vec::new();
    for run in 0..RUNS {
        let name = format!("new-{run}");
        let mut map = object(0);
        map.metadata.name = Some(name.clone());
        let begun = Instant::now();
        maps.create(&PostParams::default(), &map).await?;
        try_join_all(
            streams
                .iter_mut()
                .map(async |stream| match stream.next().await {
                    Some(Ok(WatchEvent::Added(map))) if map.name_any() == name => Ok(()),
                    other => Err(format!("a watcher got {other:?}")),
                }),
        )
        .await?;
        times.push(begun.elapsed());
    }
    Ok(times)
}
