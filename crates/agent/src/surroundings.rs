// SPDX-License-Identifier: Apache-2.0
//! What an agent stands on besides its settings: a machine, or a simulated node in a process with
//! others, in virtual time.

use std::io;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::time::Duration;

use deviceplugin::Sockets;
use futures::future::BoxFuture;
use host::{Clock, OpenDriver, SystemClock};

use crate::on_node;

/// Opens the node's driver.
pub type DriverOpener = Arc<dyn Fn() -> Result<OpenDriver, host::Error> + Send + Sync>;

/// What an agent stands on. Clones are the same.
#[derive(Clone)]
pub struct Surroundings {
    /// The way to the API server; `None`: the one that the settings name.
    pub client: Option<kube::Client>,
    /// Opens the node's driver.
    pub driver: DriverOpener,
    /// Programs of the node.
    pub programs: Arc<dyn NodePrograms>,
    /// The time of day. How long something takes is measured by tokio's clock.
    pub clock: Arc<dyn Clock + Send>,
    /// Where the sockets of kubelet and plugins are.
    pub sockets: Sockets,
    /// Where work is done that blocks.
    pub workers: Workers,
    /// Which boot of the node it is; empty if nobody knows.
    pub boot_id: String,
}

impl Surroundings {
    /// This machine, with its driver below `driver_root`.
    pub fn of_machine(driver_root: &Path) -> Self {
        let root = driver_root.to_owned();
        Self {
            client: None,
            driver: Arc::new(move || OpenDriver::of_machine(Some(&root))),
            programs: Arc::new(OnNode),
            clock: Arc::new(SystemClock),
            sockets: Sockets::unix(),
            workers: Workers::Threads,
            // Only told to people, so that a system without it works all the same.
            boot_id: host::boot_id().unwrap_or_default(),
        }
    }
}

/// Programs of the node itself, such as `systemctl` and `reboot`.
pub trait NodePrograms: Send + Sync {
    /// Runs one to its end.
    ///
    /// # Errors
    /// If it cannot be started, or takes longer than that.
    fn run<'a>(
        &'a self,
        words: &'a [&'a str],
        longest: Duration,
    ) -> BoxFuture<'a, io::Result<Output>>;
}

/// The programs of the node that this process runs on.
struct OnNode;

impl NodePrograms for OnNode {
    fn run<'a>(
        &'a self,
        words: &'a [&'a str],
        longest: Duration,
    ) -> BoxFuture<'a, io::Result<Output>> {
        Box::pin(on_node::run(words, longest))
    }
}

/// Where work is done that blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workers {
    /// On threads that may block.
    Threads,
    /// Where it is asked for: with a driver in the process, in virtual time.
    Inline,
}

impl Workers {
    /// Does the work.
    ///
    /// # Errors
    /// What it panicked with, where it has a thread of its own.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        match self {
            Self::Inline => Ok(work()),
            Self::Threads => {
                let done = tokio::task::spawn_blocking(work).await;
                done.map_err(|panic| panic.to_string())
            }
        }
    }
}
