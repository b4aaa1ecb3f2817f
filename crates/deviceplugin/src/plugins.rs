// SPDX-License-Identifier: Apache-2.0
//! All resources of the node.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::board::{Board, PluginStatus};
use crate::offer::{Offer, Offered};
use crate::plugin::Plugin;
use crate::service::Current;
use crate::sockets::Sockets;

/// The device plugins of a node: serves the latest [`Offer`] to the kubelet, and never ends by
/// itself. Dropped, it ends like [`Plugins::stop`], but leaves the sockets' files.
pub struct Plugins {
    shared: Arc<Shared>,
    tasks: Mutex<JoinSet<()>>,
}

/// What the plugins have in common.
pub(crate) struct Shared {
    /// Where sockets are.
    pub(crate) sockets: Sockets,
    /// Folder of the plugins' sockets.
    pub(crate) folder: PathBuf,
    /// The kubelet's socket; `None`: it is told nothing.
    pub(crate) kubelet: Option<PathBuf>,
    /// What the kubelet has.
    pub(crate) board: Board,
    /// True: all is to end.
    pub(crate) stopping: watch::Sender<bool>,
    /// What each resource is now, as long as it has a plugin.
    resources: Mutex<BTreeMap<String, watch::Sender<Current>>>,
}

impl Shared {
    fn resources(&self) -> MutexGuard<'_, BTreeMap<String, watch::Sender<Current>>> {
        lock(&self.resources)
    }

    /// Forgets a resource that is closed, unless it was offered again meanwhile; whether it did.
    pub(crate) fn forget(&self, name: &str) -> bool {
        let mut resources = self.resources();
        let offered = |sender: &watch::Sender<Current>| sender.borrow().offered.is_some();
        if resources.get(name).is_some_and(offered) {
            return false;
        }
        resources.remove(name);
        self.board.remove(name);
        true
    }

    /// Makes this what a resource is now. Its streams are woken only if their list is another.
    fn publish(&self, sender: &watch::Sender<Current>, name: &str, offered: Option<Offered>) {
        let withdrawn = offered.is_none();
        let list = offered.as_ref().map(Offered::list).unwrap_or_default();
        let mut version = 0;
        sender.send_if_modified(|current| {
            if current.offered.is_some() == withdrawn {
                current.since = Instant::now();
            }
            let changed = current.list != list;
            current.offered = offered;
            current.list = list;
            current.version += u64::from(changed);
            version = current.version;
            changed
        });
        self.board.update(name, |state| {
            state.version = version;
            state.withdrawn = withdrawn;
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing that is done under a lock can leave half of it behind.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Plugins {
    /// Starts with nothing offered. Sockets are made in `folder`, and the kubelet is told of them
    /// on its socket; `None`: it is told nothing. `/var/lib/kubelet/device-plugins` and
    /// `kubelet.sock` in it, usually.
    ///
    /// Works on the tokio runtime that [`Plugins::offer`] is called on.
    pub fn start(sockets: Sockets, folder: PathBuf, kubelet: Option<PathBuf>) -> Self {
        let shared = Shared {
            sockets,
            folder,
            kubelet,
            board: Board::default(),
            stopping: watch::Sender::new(false),
            resources: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
            tasks: Mutex::default(),
        }
    }

    /// Offers this from now on. Lists that change are sent at once, what is new is served and
    /// registered, and a name that is no longer there is withdrawn by an empty list, and served
    /// until the kubelet knows.
    pub fn offer(&self, offer: Offer) {
        let offer = Arc::new(offer);
        let mut offered: BTreeMap<String, Offered> = Offered::all(&offer)
            .map(|it| (it.resource().name.clone(), it))
            .collect();
        let mut resources = self.shared.resources();
        for (name, sender) in resources.iter() {
            self.shared.publish(sender, name, offered.remove(name));
        }
        let mut tasks = lock(&self.tasks);
        // Those that have ended.
        while tasks.try_join_next().is_some() {}
        for (name, offered) in offered {
            let short_name = offered.resource().short_name().to_owned();
            let sender = watch::Sender::new(Current {
                list: offered.list(),
                offered: Some(offered),
                version: 1,
                since: Instant::now(),
            });
            self.shared.board.add(&name, 1);
            let plugin = Plugin::new(&name, &short_name, &self.shared, sender.subscribe());
            resources.insert(name, sender);
            tasks.spawn(plugin.run());
        }
    }

    /// How far each offered resource is, by name.
    pub fn status(&self) -> Vec<PluginStatus> {
        self.shared.board.statuses()
    }

    /// Waits until the kubelet was sent the current list of every resource, the empty ones of those
    /// that are being withdrawn included; whether that happened within the time.
    ///
    /// Sent is not yet read: what the kubelet counts with, [`crate::PodResources::allocatable`]
    /// tells.
    pub async fn wait_listed(&self, bound: Duration) -> bool {
        self.shared.board.wait_listed(bound).await
    }

    /// Ends all streams and servers and removes the sockets, without a last list: to the kubelet
    /// the devices are unhealthy until a plugin registers again, and pods keep them.
    pub async fn stop(self) {
        self.shared.stopping.send_replace(true);
        let mut tasks = std::mem::take(&mut *lock(&self.tasks));
        while tasks.join_next().await.is_some() {}
    }
}
