// SPDX-License-Identifier: Apache-2.0
//! kube-rs on the embedded server: the client's calls, and a `Controller` with a finalizer that lives
//! through simulated hours.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use kube::api::{
    DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
};
use kube::runtime::controller::{Action, Controller};
use kube::runtime::finalizer::{Event, finalizer};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::json;
use simcluster::{ApiServer, Settings};
use tokio::time::{Instant, interval, timeout};

const FINALIZER: &str = "slicewright.dev/mirror";
/// More than anything here takes, of simulated time.
const BOUND: Duration = Duration::from_secs(3600);

/// A server whose time is tokio's.
fn server() -> ApiServer {
    let start = Instant::now();
    let epoch = Timestamp::from_second(1_700_000_000).unwrap();
    let clock = move || {
        let passed = SignedDuration::try_from(start.elapsed()).unwrap();
        epoch.checked_add(passed).unwrap()
    };
    ApiServer::new(&Settings {
        clock: Arc::new(clock),
        ..Settings::default()
    })
}

fn config_map(name: &str) -> ConfigMap {
    let data = BTreeMap::from([("k".to_owned(), "v".to_owned())]);
    let mut map = ConfigMap {
        data: Some(data),
        ..ConfigMap::default()
    };
    map.metadata.name = Some(name.to_owned());
    map
}

#[tokio::test(start_paused = true)]
async fn a_client_creates_changes_watches_and_deletes() {
    let client = server().client("default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let made = maps
        .create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    assert_eq!(
        made.creation_timestamp().unwrap().0.as_second(),
        1_700_000_000
    );

    let (parameters, version) = (WatchParams::default().timeout(5), made.resource_version());
    let stream = maps.watch(&parameters, version.as_deref().unwrap());
    let mut stream = stream.await.unwrap().boxed();
    let patch = Patch::Merge(json!({"data": {"k": "w"}}));
    maps.patch("a", &PatchParams::default(), &patch)
        .await
        .unwrap();
    maps.delete("a", &DeleteParams::default()).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        match event.unwrap() {
            WatchEvent::Added(map) => seen.push(("added", map.data.unwrap()["k"].clone())),
            WatchEvent::Modified(map) => seen.push(("modified", map.data.unwrap()["k"].clone())),
            WatchEvent::Deleted(map) => seen.push(("deleted", map.data.unwrap()["k"].clone())),
            WatchEvent::Bookmark(_) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        seen,
        [("modified", "w".to_owned()), ("deleted", "w".to_owned())]
    );

    let error = maps.get("a").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.is_not_found()));
    let spaces: Api<Namespace> = Api::all(client);
    let names = spaces.list(&ListParams::default()).await.unwrap();
    let names: Vec<String> = names.iter().map(ResourceExt::name_any).collect();
    assert_eq!(
        names,
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_comes_too_late_gets_410() {
    let start = Timestamp::from_second(1_700_000_000).unwrap();
    let server = ApiServer::new(&Settings {
        clock: Arc::new(move || start),
        kept_changes: 3,
        ..Settings::default()
    });
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client("default"));
    let made = maps
        .create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    for value in 0..5 {
        let patch = Patch::Merge(json!({"data": {"k": value.to_string()}}));
        maps.patch("a", &PatchParams::default(), &patch)
            .await
            .unwrap();
    }
    let old = made.resource_version().unwrap();
    let mut stream = maps
        .watch(&WatchParams::default(), &old)
        .await
        .unwrap()
        .boxed();
    match stream.next().await.unwrap().unwrap() {
        WatchEvent::Error(status) => {
            assert_eq!((status.code, status.reason.as_str()), (410, "Expired"))
        }
        other => panic!("{other:?}"),
    }
    assert!(stream.next().await.is_none());
}

/// What the controller under test does: a secret for each config map, taken away again by a
/// finalizer, and looked at once a minute.
struct Mirror {
    client: Client,
    applied: AtomicU32,
}

async fn reconcile(
    map: Arc<ConfigMap>,
    mirror: Arc<Mirror>,
) -> Result<Action, kube::runtime::finalizer::Error<kube::Error>> {
    let maps: Api<ConfigMap> = Api::default_namespaced(mirror.client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(mirror.client.clone());
    finalizer(&maps, FINALIZER, map, |event| async {
        match event {
            Event::Apply(map) => {
                mirror.applied.fetch_add(1, Ordering::Relaxed);
                let mut secret = Secret::default();
                secret.metadata.name = Some(map.name_any());
                match secrets.create(&PostParams::default(), &secret).await {
                    Err(kube::Error::Api(status)) if status.is_already_exists() => {}
                    made => drop(made?),
                }
                Ok(Action::requeue(Duration::from_secs(60)))
            }
            Event::Cleanup(map) => {
                secrets
                    .delete(&map.name_any(), &DeleteParams::default())
                    .await?;
                Ok(Action::await_change())
            }
        }
    })
    .await
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let mut ticks = interval(Duration::from_secs(1));
    let wait = async {
        while !holds().await {
            ticks.tick().await;
        }
    };
    assert!(timeout(BOUND, wait).await.is_ok(), "never: {what}");
}

#[tokio::test(start_paused = true)]
async fn a_controller_lives_through_a_day() {
    let client = server().client("default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let secrets: Api<Secret> = Api::default_namespaced(client.clone());
    let mirror = Arc::new(Mirror {
        client,
        applied: AtomicU32::new(0),
    });
    let controller = Controller::new(maps.clone(), watcher::Config::default())
        .owns(secrets.clone(), watcher::Config::default())
        .run(
            reconcile,
            |_, error, _| panic!("{error}"),
            Arc::clone(&mirror),
        )
        .for_each(|_| std::future::ready(()));
    let task = tokio::spawn(controller);

    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    let mirrored = async || secrets.get_opt("a").await.unwrap().is_some();
    until("the secret is made", mirrored).await;
    let map = maps.get("a").await.unwrap();
    assert_eq!(map.finalizers(), [FINALIZER]);
    let version = map.resource_version();

    let before = mirror.applied.load(Ordering::Relaxed);
    let day = Duration::from_secs(24 * 3600);
    assert!(timeout(day, std::future::pending::<()>()).await.is_err());
    let looks = mirror.applied.load(Ordering::Relaxed) - before;
    // Once a minute, and once more or less at the ends; a write that changes nothing would double it.
    assert!((24 * 60 - 1..=24 * 60).contains(&looks), "{looks}");
    assert_eq!(maps.get("a").await.unwrap().resource_version(), version);

    maps.delete("a", &DeleteParams::default()).await.unwrap();
    until("both are gone", async || {
        let map = maps.get_opt("a").await.unwrap();
        map.is_none() && secrets.get_opt("a").await.unwrap().is_none()
    })
    .await;
    task.abort();
}

#[tokio::test]
async fn the_same_server_on_a_port() {
    let server = ApiServer::new(&Settings::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let serving = server.clone();
    let task = tokio::spawn(async move { serving.serve(listener).await });
    let client = Client::try_from(kube::Config::new(address.parse().unwrap())).unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client, "default");
    maps.create(&PostParams::default(), &config_map("a"))
        .await
        .unwrap();
    let inside: Api<ConfigMap> = Api::namespaced(server.client("default"), "default");
    assert_eq!(inside.get("a").await.unwrap().data.unwrap()["k"], "v");
    task.abort();
}
