// SPDX-License-Identifier: Apache-2.0
//! What the kubelet has of each resource, for all who wait for it.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How far one resource is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginStatus {
    /// Full name of the resource.
    pub name: String,
    /// Whether the kubelet has taken its registration.
    pub registered: bool,
    /// Whether the kubelet was sent the current list, and still listens.
    pub listed: bool,
    /// What failed last, until it works again.
    pub last_error: Option<String>,
}

/// What is known of one resource.
#[derive(Debug, Default)]
pub(crate) struct State {
    /// Version of the current list, from 1.
    pub(crate) version: u64,
    /// Whether it is withdrawn.
    pub(crate) withdrawn: bool,
    /// Whether the kubelet has taken its registration.
    pub(crate) registered: bool,
    /// Whether the kubelet has opened a stream since it was last told of the resource.
    pub(crate) heard: bool,
    /// Streams that are open, by number, and the version that each was sent last.
    pub(crate) streams: BTreeMap<u64, u64>,
    /// What failed last.
    pub(crate) error: Option<String>,
}

impl State {
    fn is_listed(&self) -> bool {
        self.streams.values().any(|sent| *sent == self.version)
    }
}

#[derive(Debug, Default)]
struct States {
    by_name: BTreeMap<String, State>,
    /// How many streams there ever were.
    streams: u64,
}

/// The states of all resources.
#[derive(Debug, Default)]
pub(crate) struct Board(watch::Sender<States>);

impl Board {
    /// Puts a resource on, with the version of its first list.
    pub(crate) fn add(&self, name: &str, version: u64) {
        let state = State {
            version,
            ..State::default()
        };
        self.0.send_modify(|states| {
            states.by_name.insert(name.to_owned(), state);
        });
    }

    /// Changes the state of a resource that is on the board.
    pub(crate) fn update(&self, name: &str, change: impl FnOnce(&mut State)) {
        self.0.send_modify(|states| {
            if let Some(state) = states.by_name.get_mut(name) {
                change(state);
            }
        });
    }

    /// Takes a resource off.
    pub(crate) fn remove(&self, name: &str) {
        self.0.send_modify(|states| {
            states.by_name.remove(name);
        });
    }

    /// A look at the state of a resource.
    pub(crate) fn look<T>(&self, name: &str, at: impl FnOnce(&State) -> T) -> Option<T> {
        self.0.borrow().by_name.get(name).map(at)
    }

    /// Notes a new stream of a resource; its number.
    pub(crate) fn open_stream(&self, name: &str) -> u64 {
        let mut number = 0;
        self.0.send_modify(|states| {
            states.streams += 1;
            number = states.streams;
            if let Some(state) = states.by_name.get_mut(name) {
                state.streams.insert(number, 0);
                state.heard = true;
            }
        });
        number
    }

    /// How far all resources are, by name. Withdrawn ones are not among them.
    pub(crate) fn statuses(&self) -> Vec<PluginStatus> {
        let states = self.0.borrow();
        let offered = states.by_name.iter().filter(|(_, state)| !state.withdrawn);
        offered
            .map(|(name, state)| PluginStatus {
                name: name.clone(),
                registered: state.registered,
                listed: state.is_listed(),
                last_error: state.error.clone(),
            })
            .collect()
    }

    /// Whether the kubelet is sent every current list within that time. For a withdrawn resource
    /// that is the empty one, which only streams that are open get.
    pub(crate) async fn wait_listed(&self, bound: Duration) -> bool {
        let mut states = self.0.subscribe();
        let known = |state: &State| {
            let gone = state.withdrawn && state.streams.is_empty();
            gone || state.is_listed()
        };
        let listed = states.wait_for(|states| states.by_name.values().all(known));
        timeout(bound, listed).await.is_ok_and(|it| it.is_ok())
    }
}
