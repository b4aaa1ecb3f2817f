// SPDX-License-Identifier: Apache-2.0
//! The HTTP face: one router, handed to a client in the process or bound to a port.

mod answer;
mod body;
mod discovery;
mod watch;

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

use self::answer::Wanted;
use crate::failure::Failure;
use crate::request::{self, Form, Query, Target, Url};
use crate::state::{Ask, State};
use crate::table::Include;
use crate::write::{self, Deletion, Write, Written};

/// Tells the time. In virtual time it follows tokio's clock.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How often a write that is overtaken by another is drafted again (`GuaranteedUpdate`'s patience
/// with patches is 5 in the real server).
const ATTEMPTS: usize = 5;

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
        let form = request::form(text(&request, &header::ACCEPT))?;
        match request::target(request.uri().path()) {
            Target::Objects(url) => self.objects(url, form, request).await,
            Target::Unknown => Err(Failure::unknown_resource()),
            target => discovery::answer(&self.state().kinds, &target, form),
        }
    }

    async fn objects(
        &self,
        url: Url,
        form: Form,
        request: Request<Body>,
    ) -> Result<Response, Failure> {
        let kind = self.state().kind(&url)?;
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let mut ask = Ask {
            kind,
            namespace: url.namespace,
            name: url.name,
            subresource: url.subresource,
            method: request.method().to_string(),
            manager: manager(&query, &request),
            has_applied: text(&request, &header::CONTENT_TYPE).starts_with(body::APPLY_PATCH),
            query,
            now: (self.inner.clock)(),
        };
        ask.is_dry_run()?;
        let wanted = Wanted {
            form,
            include: Include::of(ask.query.get("includeObject")),
            now: ask.now,
        };
        if ask.method == "GET" {
            return self.read(ask, wanted);
        }
        let body = body::read(request).await?;
        ask.now = (self.inner.clock)();
        let (has_name, is_plain) = (!ask.name.is_empty(), ask.subresource.is_empty());
        let written = match (ask.method.as_str(), has_name, is_plain) {
            ("POST", false, true) => self.change(&ask, Write::Create(body.object()?)),
            ("PUT", true, _) => self.change(&ask, Write::Update(body.object()?)),
            ("PATCH", true, _) => self.change(&ask, Write::Patch(body.patch()?)),
            ("DELETE", true, true) => {
                let deletion = Deletion::of(&ask, &body.options()?)?;
                self.write(|state| state.delete(&ask, &deletion))
            }
            ("DELETE", false, true) => {
                let deletion = Deletion::of(&ask, &body.options()?)?;
                let objects = self.write(|state| state.delete_collection(&ask, &deletion))?;
                return Ok(answer::list(
                    &ask.kind,
                    wanted,
                    objects,
                    &serde_json::json!({}),
                ));
            }
            _ => Err(Failure::method_not_allowed()),
        }?;
        let mut response = answer::object(&ask.kind, wanted, written.code, written.object);
        answer::warn(&mut response, &written.warnings);
        Ok(response)
    }

    fn read(&self, ask: Ask, wanted: Wanted) -> Result<Response, Failure> {
        if ask.kind.is_review {
            return Err(Failure::method_not_allowed());
        }
        if ask.query.is("watch") {
            return watch::answer(self, ask, wanted);
        }
        let state = self.state();
        if ask.name.is_empty() {
            let page = state.list(&ask)?;
            return Ok(answer::list(
                &ask.kind,
                wanted,
                page.objects,
                &page.metadata,
            ));
        }
        let object = write::shown(&ask, state.live(&ask)?);
        Ok(answer::object(&ask.kind, wanted, 200, object))
    }

    /// Drafts a write and keeps it; again, if another one came in between.
    fn change(&self, ask: &Ask, write: Write) -> Result<Written, Failure> {
        for _ in 0..ATTEMPTS {
            let draft = self.state().draft(ask, write.clone())?;
            let written = self.write(|state| state.commit(ask, draft))?;
            if let Some(written) = written {
                return Ok(written);
            }
        }
        Err(Failure::stale(&ask.kind, &ask.name))
    }
}

/// A header; empty if it is not there.
fn text<'a>(request: &'a Request<Body>, name: &header::HeaderName) -> &'a str {
    let value = request.headers().get(name);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Who writes: the parameter `fieldManager`, else the first word of the client's name.
fn manager(query: &Query, request: &Request<Body>) -> String {
    match query.get("fieldManager") {
        "" => match text(request, &header::USER_AGENT).split('/').next() {
            None | Some("") => "unknown".to_owned(),
            Some(agent) => agent.to_owned(),
        },
        manager => manager.to_owned(),
    }
}

async fn handle(
    extract::State(server): extract::State<ApiServer>,
    request: Request<Body>,
) -> Response {
    match server.answer(request).await {
        Ok(response) => response,
        Err(failure) => answer::json(failure.code, &failure.to_status()),
    }
}
