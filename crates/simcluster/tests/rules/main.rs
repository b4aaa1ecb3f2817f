// SPDX-License-Identifier: Apache-2.0
//! The rules of the real API server, as conversations in `rules/*.txt`. The answers in them are what a
//! real kube-apiserver says, and the embedded one must say the same.
//!
//! `cargo test` asks the embedded server. With `RULES_KUBECONFIG` set to a file, as the scenario "the
//! rules of the API server" of `cargo xtask e2e` does, the real server behind it is asked, and
//! `UPDATE_EXPECT=1` then records its answers anew.

#![allow(clippy::unwrap_used)]

mod ask;
mod talk;

use std::path::{Path, PathBuf};

use kube::Client;
use simcluster::{ApiServer, Settings};
use talk::Server;

/// The real server, if one is given.
const REAL: &str = "RULES_KUBECONFIG";

async fn server() -> Server {
    let client = match std::env::var_os(REAL) {
        None => ApiServer::new(&Settings::default()).client("default"),
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(PathBuf::from(path)).unwrap();
            let options = kube::config::KubeConfigOptions::default();
            let config = kube::Config::from_custom_kubeconfig(file, &options);
            let mut config = config.await.unwrap();
            // Some of the questions are wrong on purpose.
            config.default_retry = false;
            Client::try_from(config).unwrap()
        }
    };
    Server::new(client).await
}

#[test]
fn the_server_keeps_the_rules() {
    let is_real = std::env::var_os(REAL).is_some();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(!is_real)
        .build();
    runtime.unwrap().block_on(hold_all(is_real));
}

async fn hold_all(is_real: bool) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "txt"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let server = server().await;
    let mut differences = Vec::new();
    for path in files {
        let recorded = std::fs::read_to_string(&path).unwrap();
        let said = server.hold(&recorded).await;
        if is_real && std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(&path, &said).unwrap();
        } else if said != recorded {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            differences.push(format!("{name}:\n{}", talk::difference(&recorded, &said)));
        }
    }
    server.leave().await;
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}
