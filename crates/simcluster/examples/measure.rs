// SPDX-License-Identifier: Apache-2.0
//! Figures of the embedded API server: 10,000 objects made and listed, a change told to 100 watchers,
//! and the memory that all of it takes. `cargo run --release -p simcluster --example measure`.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::future::join_all;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use simcluster::{ApiServer, Settings};

const OBJECTS: usize = 10_000;
const WATCHERS: usize = 100;
const CHANGES: usize = 100;

type Error = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Error> {
    let before = resident_kib()?;
    let server = ApiServer::new(&Settings::default());
    let maps: Api<ConfigMap> = Api::default_namespaced(server.client("default"));
    let start = Instant::now();
    let mut version = String::new();
    for number in 0..OBJECTS {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(format!("map-{number:05}"));
        map.data = Some([("number".to_owned(), number.to_string())].into());
        let made = maps.create(&PostParams::default(), &map).await?;
        version = made.resource_version().unwrap_or_default();
    }
    tell("10,000 objects are created", start.elapsed());
    let start = Instant::now();
    let listed = maps.list(&ListParams::default()).await?.items.len();
    assert_eq!(listed, OBJECTS);
    tell("10,000 objects are listed", start.elapsed());
    println!("memory of 10,000 objects: {} KiB", resident_kib()? - before);

    let watchers = (0..WATCHERS).map(|_| async {
        let stream = maps.watch(&WatchParams::default(), &version).await;
        let mut stream = stream.map_err(Error::from)?.boxed();
        let mut seen = 0;
        while seen < CHANGES {
            match stream.next().await {
                Some(Ok(WatchEvent::Modified(_))) => seen += 1,
                other => return Err(format!("{other:?}").into()),
            }
        }
        Ok::<(), Error>(())
    });
    let start = Instant::now();
    let changes = async {
        for number in 0..CHANGES {
            let patch = Patch::Merge(json!({"data": {"number": format!("new {number}")}}));
            maps.patch("map-00000", &PatchParams::default(), &patch)
                .await?;
        }
        Ok::<(), Error>(())
    };
    let (seen, changed) = futures::join!(join_all(watchers), changes);
    changed?;
    seen.into_iter().collect::<Result<Vec<()>, Error>>()?;
    tell("100 changes reach 100 watchers", start.elapsed());
    Ok(())
}

fn tell(what: &str, took: Duration) {
    println!("{what}: {:.0} ms", took.as_secs_f64() * 1000.0);
}

fn resident_kib() -> Result<u64, Error> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.unwrap_or_default().parse()?)
}
