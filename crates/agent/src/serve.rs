// SPDX-License-Identifier: Apache-2.0
//! Health, readiness and metrics over HTTP.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::get;
use tokio::net::TcpListener;

/// What is shown of the agent.
#[derive(Default)]
pub struct Shown(Mutex<Now>);

#[derive(Clone, Default)]
struct Now {
    /// What is waited for; `None`: it serves.
    waits_for: Option<String>,
    is_ready: bool,
    figures: Figures,
}

/// What metrics tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Devices by resource: healthy, unhealthy, allocated.
    pub resources: Vec<(String, usize, usize, usize)>,
    /// GPUs that the driver shows.
    pub gpus: usize,
    /// Slices that there are.
    pub slices: usize,
    /// Findings by code.
    pub findings: Vec<(String, usize)>,
    /// Whether the layout is as wanted; `None`: nothing is wanted.
    pub layout_applied: Option<bool>,
}

impl Shown {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It waits for something and is not ready.
    pub fn waiting(&self, reason: String) {
        let mut now = self.now();
        if now.waits_for.as_ref() != Some(&reason) {
            tracing::info!("{reason}");
        }
        now.waits_for = Some(reason);
    }

    /// Others serve, and it is not to.
    pub fn yielding(&self, reason: String) {
        self.waiting(reason);
        self.now().is_ready = true;
    }

    /// It serves.
    pub fn serving(&self, figures: Figures) {
        let mut now = self.now();
        now.waits_for = None;
        now.is_ready = true;
        now.figures = figures;
    }
}

/// Serves `/healthz`, `/readyz` and `/metrics`.
///
/// # Errors
/// If the address cannot be had.
pub async fn start(address: SocketAddr, shown: Arc<Shown>) -> std::io::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let router = Router::new()
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(shown);
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::warn!("health and metrics are not served any more: {error}");
        }
    });
    Ok(())
}

/// Ready once devices were offered, or are not to be. One that waits for its driver later stays ready:
/// its pods have what they have, and a rollout must not stop there.
async fn ready(State(shown): State<Arc<Shown>>) -> (StatusCode, String) {
    let now = shown.now().clone();
    match (now.is_ready, now.waits_for) {
        (true, _) => (StatusCode::OK, "ok\n".to_owned()),
        (false, reason) => {
            let reason = reason.unwrap_or_else(|| "starting".to_owned());
            (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n"))
        }
    }
}

async fn metrics(State(shown): State<Arc<Shown>>) -> ([(&'static str, &'static str); 1], String) {
    let now = shown.now().clone();
    let kind = ("content-type", "text/plain; version=0.0.4");
    ([kind], text(&now))
}

/// A metric with its samples, by labels.
type Family = (&'static str, &'static str, Vec<(String, usize)>);

fn text(now: &Now) -> String {
    let mut text = String::new();
    for (name, help, samples) in families(now) {
        // Writing to a string cannot fail.
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (labels, value) in samples {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    }
    text
}

fn families(now: &Now) -> Vec<Family> {
    let figures = &now.figures;
    let one = |value| vec![(String::new(), value)];
    let serving = now.waits_for.is_none() && now.is_ready;
    let mut devices = Vec::new();
    let mut allocated = Vec::new();
    for (name, healthy, unhealthy, held) in &figures.resources {
        for (health, count) in [("healthy", healthy), ("unhealthy", unhealthy)] {
            let labels = format!("{{resource=\"{name}\",health=\"{health}\"}}");
            devices.push((labels, *count));
        }
        allocated.push((format!("{{resource=\"{name}\"}}"), *held));
    }
    let findings = figures.findings.iter();
    let findings = findings.map(|(code, count)| (format!("{{code=\"{code}\"}}"), *count));
    let applied = figures.layout_applied.map(usize::from);
    vec![
        (
            "slicewright_serving",
            "Whether devices are served now.",
            one(usize::from(serving)),
        ),
        (
            "slicewright_gpus",
            "GPUs that the driver shows.",
            one(figures.gpus),
        ),
        (
            "slicewright_slices",
            "Slices that there are.",
            one(figures.slices),
        ),
        (
            "slicewright_devices",
            "Devices offered to the kubelet.",
            devices,
        ),
        (
            "slicewright_devices_allocated",
            "Devices that containers have.",
            allocated,
        ),
        (
            "slicewright_findings",
            "What a person should know, by code.",
            findings.collect(),
        ),
        (
            "slicewright_layout_applied",
            "Whether the MIG layout is as the label wants it.",
            applied.map(one).unwrap_or_default(),
        ),
    ]
}
