// SPDX-License-Identifier: Apache-2.0
//! The HTTP face: one router, handed to a client in the process or bound to a port.

mod answer;
mod body;
mod discovery;
mod objects;
mod openapi;
mod protobuf;
mod review;
mod watch;
mod webhook;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::body::Body;
use axum::extract;
use axum::http::{Request, header};
use axum::response::Response;
use axum::serve::ListenerExt;
use jiff::Timestamp;
use tokio::net::TcpListener;
use tower::ServiceExt;

use crate::failure::Failure;
use crate::request::{self, Target};
use crate::state::State;

/// Tells the time. In virtual time it follows tokio's clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// What a server is made of.
#[derive(Clone)]
pub struct Settings {
    /// Where the time comes from.
    pub clock: Clock,
    /// From which uids and generated names follow.
    pub seed: u64,
    /// Changes of a resource that are remembered: a watch from before them gets 410.
    pub kept_changes: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clock: Arc::new(Timestamp::now),
            seed: 1,
            kept_changes: 10_000,
        }
    }
}

/// An API server. Clones are the same server.
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
}

struct Inner {
    state: Mutex<State>,
    /// The version of the newest change: watches wake by it.
    version: tokio::sync::watch::Sender<u64>,
    clock: Clock,
    /// Services that are answered in the process, by namespace and name.
    services: Mutex<BTreeMap<(String, String), Router>>,
}

impl ApiServer {
    /// A new cluster with nothing but its first namespaces.
    pub fn new(settings: &Settings) -> Self {
        let now = (settings.clock)();
        let state = State::new(settings.kept_changes, settings.seed, now);
        let version = state.store.version();
        Self {
            inner: Arc::new(Inner {
                state: Mutex::new(state),
                version: tokio::sync::watch::Sender::new(version),
                clock: Arc::clone(&settings.clock),
                services: Mutex::default(),
            }),
        }
    }

    /// The server as a service.
    pub fn router(&self) -> Router {
        Router::new().fallback(handle).with_state(self.clone())
    }

    /// A client in the same process: no socket is in between. Must be called in a tokio runtime.
    pub fn client(&self, default_namespace: &str) -> kube::Client {
        let service = self
            .router()
            .map_request(|request: Request<kube::client::Body>| request.map(Body::new));
        kube::Client::new(service, default_namespace)
    }

    /// Serves on a socket until the task is ended.
    ///
    /// # Errors
    /// If the socket fails.
    pub async fn serve(&self, listener: TcpListener) -> std::io::Result<()> {
        // A watch's events are small: without this they wait for the client's acknowledgement.
        let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
        axum::serve(listener, self.router()).await
    }

    fn services(&self) -> MutexGuard<'_, BTreeMap<(String, String), Router>> {
        let services = self.inner.services.lock();
        services.unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in a test's thread leaves the state as the last whole write made it.
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with the state and wakes the watches if it wrote.
    fn write<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let answer = act(&mut state);
        let version = state.store.version();
        drop(state);
        self.inner.version.send_if_modified(|known| {
            let is_newer = *known < version;
            *known = version;
            is_newer
        });
        answer
    }

    async fn answer(&self, request: Request<Body>) -> Result<Response, Failure> {
        let target = request::target(request.uri().path());
        if target == Target::Unknown {
            return Err(Failure::unknown_resource());
        }
        let form = request::form(text(&request, &header::ACCEPT))?;
        match target {
            Target::Objects(url) => self.objects(url, form, request).await,
            target => discovery::answer(&self.state().kinds, &target, form),
        }
    }
}

/// A header; empty if it is not there.
fn text<'a>(request: &'a Request<Body>, name: &header::HeaderName) -> &'a str {
    let value = request.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

async fn handle(
    extract::State(server): extract::State<ApiServer>,
    request: Request<Body>,
) -> Response {
    match server.answer(request).await {
        Ok(response) => response,
        // Where nothing knows the path, not even a `Status` is there.
        Err(failure) if failure.code == 404 && failure.reason.is_empty() => {
            answer::text(404, &failure.message)
        }
        Err(failure) => answer::json(failure.code, &failure.to_status()),
    }
}
