// SPDX-License-Identifier: Apache-2.0
//! Watches: a stream of JSON lines.
//!
//! Each watch reads the store's own history from where it is, woken by a change of the version. So
//! none holds up a write, and one that falls behind the history gets 410 as any other late comer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::response::Response;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep_until};

use super::answer::Wanted;
use super::{ApiServer, answer};
use crate::convert;
use crate::failure::{Cause, Failure};
use crate::list::Filter;
use crate::state::{Ask, State};
use crate::store::Change;

/// How long a watch lasts that says nothing: the real server chooses from this to twice as long.
const LONGEST: Duration = Duration::from_secs(1800);

/// How often a bookmark comes.
const BOOKMARK: Duration = Duration::from_secs(60);

/// One watch.
struct Watch {
    server: ApiServer,
    ask: Ask,
    wanted: Wanted,
    filter: Filter,
    /// Whether the columns of a table are still to be told.
    has_header: bool,
    /// Up to this version everything has been sent or stands in `lines`.
    position: u64,
    /// What is to be sent.
    lines: VecDeque<Bytes>,
    end: Instant,
    next_bookmark: Instant,
    is_over: bool,
    wake: tokio::sync::watch::Receiver<u64>,
}

/// Begins a watch.
///
/// # Errors
/// 400 or 422 for parameters that cannot be.
pub fn answer(server: &ApiServer, ask: Ask, wanted: Wanted) -> Result<Response, Failure> {
    let filter = Filter::of(&ask)?;
    let asked = ask.query.resource_version()?;
    let wants_initial = ask.query.is("sendInitialEvents");
    check(&ask)?;
    let lasts = ask
        .query
        .number("timeoutSeconds")?
        .map_or(LONGEST, Duration::from_secs);
    let now = Instant::now();
    let state = server.state();
    let mut watch = Watch {
        server: server.clone(),
        wanted,
        has_header: true,
        filter,
        position: asked.unwrap_or(0),
        lines: VecDeque::new(),
        end: now + lasts,
        next_bookmark: now + BOOKMARK,
        is_over: false,
        wake: server.inner.version.subscribe(),
        ask,
    };
    let is_synthetic = watch.position == 0 && watch.ask.query.get("sendInitialEvents") != "false";
    if wants_initial || is_synthetic {
        watch.begin(&state, wants_initial);
    } else if watch.position == 0 {
        watch.position = state.store.version();
    }
    watch.catch_up(&state);
    drop(state);
    let lines = futures::stream::unfold(watch, |mut watch| async {
        let line = watch.next().await?;
        Some((Ok::<_, Infallible>(line), watch))
    });
    let mut response = answer::json(200, &Value::Null);
    *response.body_mut() = Body::from_stream(lines);
    Ok(response)
}

/// Which parameters go together (`ValidateListOptions`).
fn check(ask: &Ask) -> Result<(), Failure> {
    let matching = ask.query.get("resourceVersionMatch");
    let mut causes = Vec::new();
    if ask.query.has("sendInitialEvents") {
        if matching != "NotOlderThan" {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden("resourceVersionMatch", why));
        }
    } else if !matching.is_empty() {
        let why =
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        causes.push(Cause::forbidden("resourceVersionMatch", why));
    }
    match causes.is_empty() {
        true => Ok(()),
        false => Err(Failure::invalid_options("ListOptions", &causes)),
    }
}

impl Watch {
    /// Every object as if it were created now, and word that these are all.
    fn begin(&mut self, state: &State, with_end: bool) {
        let objects: Vec<Value> = state
            .store
            .list(&self.ask.kind.place(), &self.ask.namespace)
            .map(|(_, object)| convert::shown(&self.ask.kind, object))
            .filter(|shown| self.filter.takes(shown))
            .collect();
        for object in objects {
            self.push("ADDED", object);
        }
        self.position = state.store.version();
        if with_end {
            let mut bookmark = self.bookmark();
            bookmark["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
            self.push("BOOKMARK", bookmark);
        }
    }

    /// Reads the history up to now.
    fn catch_up(&mut self, state: &State) {
        let place = self.ask.kind.place();
        let changes: Vec<Change> = match state.store.changes_since(&place, self.position) {
            Ok(changes) => changes.cloned().collect(),
            Err(forgotten) => {
                let message = format!(
                    "too old resource version: {} ({})",
                    self.position, forgotten.oldest
                );
                self.line("ERROR", &Failure::expired(message).to_status());
                self.is_over = true;
                return;
            }
        };
        let prefix = match self.ask.namespace.as_str() {
            "" => String::new(),
            namespace => format!("{namespace}/"),
        };
        for change in &changes {
            if change.key.starts_with(&prefix) {
                self.show(change);
            }
        }
        self.position = self.position.max(state.store.version());
    }

    /// A change as this watch sees it: an object may come into its view, or go out of it.
    fn show(&mut self, change: &Change) {
        let kind = &self.ask.kind;
        let before = change
            .before
            .as_ref()
            .map(|before| convert::shown(kind, before));
        let object = convert::shown(kind, &change.object);
        let was_seen = before
            .as_ref()
            .is_some_and(|before| self.filter.takes(before));
        let is_seen = !change.is_removal && self.filter.takes(&object);
        match (was_seen, is_seen, before) {
            (false, true, _) => self.push("ADDED", object),
            (true, true, _) => self.push("MODIFIED", object),
            (true, false, Some(mut before)) => {
                before["metadata"]["resourceVersion"] = json!(change.version.to_string());
                self.push("DELETED", before);
            }
            _ => {}
        }
    }

    fn push(&mut self, kind: &str, object: Value) {
        let header = self.has_header;
        self.wanted.now = (self.server.inner.clock)();
        let object = answer::formed(&self.ask.kind, self.wanted, object, header);
        self.has_header = false;
        self.line(kind, &object);
    }

    fn line(&mut self, kind: &str, object: &Value) {
        let line = json!({"type": kind, "object": object});
        self.lines.push_back(Bytes::from(format!("{line}\n")));
    }

    /// Tells the version up to which everything has been told, if the client wants that.
    fn mark(&mut self) {
        if self.ask.query.is("allowWatchBookmarks") {
            let bookmark = self.bookmark();
            self.push("BOOKMARK", bookmark);
        }
    }

    fn bookmark(&self) -> Value {
        json!({
            "kind": self.ask.kind.kind,
            "apiVersion": self.ask.kind.api_version(),
            "metadata": {"resourceVersion": self.position.to_string()},
        })
    }

    /// The next line, when there is one.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.lines.pop_front() {
                return Some(line);
            }
            if self.is_over {
                return None;
            }
            tokio::select! {
                biased;
                changed = self.wake.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                    let server = self.server.clone();
                    self.catch_up(&server.state());
                }
                () = sleep_until(self.end) => {
                    self.is_over = true;
                    self.mark();
                }
                () = sleep_until(self.next_bookmark) => {
                    self.next_bookmark += BOOKMARK;
                    self.mark();
                }
            }
        }
    }
}
