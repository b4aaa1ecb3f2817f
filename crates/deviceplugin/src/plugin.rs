// SPDX-License-Identifier: Apache-2.0
//! One resource: served, registered, looked after until it is withdrawn.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::board::State;
use crate::kubelet::register;
use crate::next::{Hold, Next, SETTLE, Told, View, back_off, next};
use crate::plugins::Shared;
use crate::server::Server;
use crate::service::{Current, OPTIONS, Service, closed};
use crate::sockets::Identity;
use crate::wire::deviceplugin::RegisterRequest;

/// How often sockets are looked at. A look is a few microseconds, so this costs nothing, and sees
/// what watching a folder misses: a folder that was replaced, a socket that was bound over.
const LOOK: Duration = Duration::from_secs(1);
/// Version of the kubelet's interface.
const VERSION: &str = "v1beta1";

/// What a kubelet says (1.37) that knows another plugin on this socket. It never lets go of that
/// one then, so only another socket helps.
const CONNECTED: &str = "already connected";

/// The plugin of one resource.
pub(crate) struct Plugin {
    name: String,
    /// The name without its prefix.
    short_name: String,
    /// Sockets that the kubelet would not have.
    refused: u32,
    shared: Arc<Shared>,
    current: watch::Receiver<Current>,
    stopping: watch::Receiver<bool>,
    server: Option<Server>,
    told: Option<Told>,
    hold: Option<Hold>,
    failures: u32,
}

impl Plugin {
    /// The plugin of a resource, which does nothing yet.
    pub(crate) fn new(
        name: &str,
        short_name: &str,
        shared: &Arc<Shared>,
        current: watch::Receiver<Current>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            short_name: short_name.to_owned(),
            refused: 0,
            shared: Arc::clone(shared),
            current,
            stopping: shared.stopping.subscribe(),
            server: None,
            told: None,
            hold: None,
            failures: 0,
        }
    }

    /// Does what is to be done until the resource is withdrawn or all is stopped.
    pub(crate) async fn run(mut self) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stopping = self.stopping.clone();
        loop {
            let wait = match next(&self.view()) {
                Next::Close => {
                    self.close().await;
                    if self.shared.forget(&self.name) {
                        return;
                    }
                    false
                }
                Next::Lost => {
                    self.lose();
                    false
                }
                Next::Wait => true,
                act => tokio::select! {
                    biased;
                    done = self.act(act) => !done,
                    () = closed(&mut stopping) => break,
                },
            };
            if wait {
                tokio::select! {
                    biased;
                    _ = look.tick() => {}
                    () = closed(&mut stopping) => break,
                }
            }
        }
        self.close().await;
    }

    fn view(&self) -> View {
        let at_board = |state: &State| (state.heard, !state.streams.is_empty());
        let (heard, listens) = self
            .shared
            .board
            .look(&self.name, at_board)
            .unwrap_or_default();
        let current = self.current.borrow();
        let sockets = &self.shared.sockets;
        View {
            served: self.server.as_ref().is_some_and(Server::is_there),
            kubelet: self.kubelet().and_then(|path| sockets.identity(&path)),
            told: self.told,
            heard,
            listens,
            hold: self.hold,
            withdrawn: current.offered.is_none().then_some(current.since),
            now: Instant::now(),
        }
    }

    /// File name of the socket.
    fn endpoint(&self) -> String {
        match self.refused {
            0 => format!("nvidia-{}.sock", self.short_name),
            number => format!("nvidia-{}-{number}.sock", self.short_name),
        }
    }

    fn kubelet(&self) -> Option<PathBuf> {
        self.shared.kubelet.clone()
    }

    /// Serves or registers; whether that worked.
    async fn act(&mut self, act: Next) -> bool {
        let outcome = match act {
            Next::Register(kubelet) => self.register(kubelet).await,
            _ => self.serve().await,
        };
        let error = outcome.err().map(|error| error.to_string());
        let works = error.is_none();
        self.shared
            .board
            .update(&self.name, |state| state.error = error);
        works
    }

    async fn serve(&mut self) -> Result<(), crate::Error> {
        self.close().await;
        let service = |closing| Service {
            name: self.name.clone(),
            current: self.current.clone(),
            closing,
            shared: Arc::clone(&self.shared),
        };
        let socket = self.shared.folder.join(self.endpoint());
        self.server = Some(Server::open(&self.shared.sockets, socket, service).await?);
        Ok(())
    }

    async fn register(&mut self, kubelet: Identity) -> Result<(), crate::Error> {
        let Some(socket) = self.kubelet() else {
            return Ok(());
        };
        let request = RegisterRequest {
            version: VERSION.to_owned(),
            endpoint: self.endpoint(),
            resource_name: self.name.clone(),
            options: Some(OPTIONS),
        };
        // It may open its stream before its answer is here.
        let shared = Arc::clone(&self.shared);
        let board = &shared.board;
        board.update(&self.name, |state| state.heard = false);
        let outcome = register(&shared.sockets, &socket, kubelet, request).await;
        match &outcome {
            Ok(()) => {
                let at = Instant::now();
                self.told = Some(Told { kubelet, at });
                self.failures = 0;
            }
            Err(error) => {
                if error.says(CONNECTED) {
                    self.close().await;
                    self.refused += 1;
                }
                self.told = None;
                self.failures = self.failures.saturating_add(1);
                self.hold(kubelet, back_off(self.failures));
            }
        }
        board.update(&self.name, |state| state.registered = outcome.is_ok());
        outcome
    }

    /// The kubelet has let go of the plugin, or is about to.
    fn lose(&mut self) {
        if let Some(told) = self.told.take() {
            self.hold(told.kubelet, SETTLE);
        }
        let board = &self.shared.board;
        board.update(&self.name, |state| state.registered = false);
    }

    fn hold(&mut self, kubelet: Identity, time: Duration) {
        let until = Instant::now() + time;
        self.hold = Some(Hold { kubelet, until });
    }

    /// Ends what is served.
    async fn close(&mut self) {
        if let Some(server) = self.server.take() {
            server.close().await;
            self.lose();
        }
    }
}
