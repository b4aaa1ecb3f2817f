// SPDX-License-Identifier: Apache-2.0
//! The loop: see what is wanted and what is there, bring the layout there, publish what is.
//!
//! ```text
//!  wake: watches, driver events, kubelet, slow tick
//!    v
//!  told ──> resolve ──┐
//!  driver ─> reading ─┴─> decide ──change──> fence, act, read back ─┐
//!    ^                       └─────────── nothing to do ────────────┤
//!    └────────────── publish: device lists, labels, status <────────┘
//! ```
//!
//! Each round starts from what is there now, so nothing is lost with a missed event or a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use config::deviceplugin::Config;
use deviceplugin::{Offer, Plugins, PodResources};
use geometry::inventory::Inventory;
use kubeapi::GpuNodeStatus;
use plan::Warning;
use publish::Resource;
use snapshot::Reading;
use tokio::sync::Notify;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use units::{Code, GpuUuid};

use crate::change::Round;
use crate::cluster::{Cluster, ConnectError, NodeSeen};
use crate::decide::{self, Allocation, Desired, Health, Kept, Told, driver_is_replaced};
use crate::events;
use crate::machine::{Machine, with_lost};
use crate::neighbours::Neighbours;
use crate::serve::Shown;
use crate::settings::Settings;
use crate::surroundings::Surroundings;

/// How often everything is looked at without a reason: foreign changes and lost events.
pub(crate) const SLOW_TICK: Duration = Duration::from_secs(30);
/// How often soon after the start: a node that has just booted is still settling.
pub(crate) const YOUNG_TICK: Duration = Duration::from_secs(10);
/// How long after its start an agent looks oftener.
const YOUNG: Duration = Duration::from_secs(180);
/// How often while something is awaited that sends no event: pods that end, a driver that comes.
const FAST_TICK: Duration = Duration::from_secs(1);

/// So many events wait for an API server that is away.
const MOST_EVENTS: usize = 50;

/// Why the agent cannot start. Nothing about hardware, configuration or a silent API server is
/// such a reason.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No way to the API server is configured.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The system gives no threads or signals.
    #[error("cannot start: {0}")]
    Runtime(std::io::Error),
    /// The address for health and metrics cannot be had.
    #[error("cannot serve health and metrics at {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
}

/// The agent of one node.
pub struct Agent {
    pub(crate) settings: Arc<Settings>,
    pub(crate) surroundings: Surroundings,
    pub(crate) machine: Arc<Machine>,
    pub(crate) cluster: Option<Cluster>,
    pub(crate) plugins: Plugins,
    pub(crate) pod_resources: Option<PodResources>,
    pub(crate) memory: Memory,
    pub(crate) shown: Arc<Shown>,
    wake: Arc<Notify>,
    pub(crate) begun: Instant,
}

/// What outlives a round. Losing it costs a repetition; only faults that the driver has told of are
/// lost with it, until it tells of them again.
#[derive(Default)]
pub(crate) struct Memory {
    /// The last good sharing config and strategy.
    pub kept: Kept,
    /// The settings in force, and since when, in seconds since 1970.
    pub in_force: Option<(Config, u64)>,
    /// The last inventory, for GPUs that are lost.
    pub last: Option<Inventory>,
    pub health: Health,
    /// A change that failed: it is not tried again until something is different.
    pub failed: Option<Failed>,
    /// Devices that containers have, as last heard.
    pub allocated: Vec<Allocation>,
    /// What was offered last, with nothing fenced.
    pub offer: Option<Offer>,
    /// Whether something was offered since the start.
    pub has_published: bool,
    pub generated: Option<String>,
    pub status: Option<GpuNodeStatus>,
    /// When all that is written was written last, whether it was new or not.
    pub written: Option<Instant>,
    /// What has been told as an event.
    pub told: BTreeSet<String>,
    /// Events that could not be written yet.
    pub unwritten: Vec<crate::write::Told>,
    /// What the pods on this node are, as last looked at.
    pub neighbours: Option<Neighbours>,
    /// Whether the kubelet has said who has devices.
    pub has_heard: bool,
    /// Processes that were found to have a slice open that was to go.
    pub in_the_way: BTreeSet<u32>,
    /// When a reboot of the node was asked for.
    pub reboots_since: Option<Instant>,
    /// Why the node could not be rebooted: that is not tried again.
    pub cannot_reboot: Option<String>,
}

/// A change that failed.
#[derive(Clone, Debug)]
pub(crate) struct Failed {
    pub fingerprint: u64,
    pub code: Code,
    pub message: String,
    /// Whether a reboot of the node may help.
    pub needs_reboot: bool,
    /// When it is tried again though nothing is different; `None`: never.
    pub until: Option<Instant>,
}

/// What became of the layout in a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layout {
    /// What the state label says; `None`: as it is.
    pub state: Option<decide::State>,
    /// Name of the MIG config that is wanted.
    pub wanted: Option<String>,
    /// Why it failed, with its code.
    pub reason: Option<(Code, String)>,
    /// Whether something is waited for.
    pub waits: bool,
}

impl Agent {
    /// Prepares everything; nothing is touched yet.
    ///
    /// # Errors
    /// See [`StartError`].
    pub async fn start(settings: Settings, surroundings: Surroundings) -> Result<Self, StartError> {
        let wake = Arc::new(Notify::new());
        let cluster = match &settings.kubernetes {
            Some(about) => {
                let client = surroundings.client.clone();
                Some(Cluster::watch(about.clone(), client, Arc::clone(&wake)).await?)
            }
            None => None,
        };
        let shown = Arc::new(Shown::default());
        if let Some(address) = settings.listen {
            let served = crate::serve::start(address, Arc::clone(&shown)).await;
            served.map_err(|source| StartError::Listen {
                address: address.to_string(),
                source,
            })?;
        }
        let paths = &settings.paths;
        let sockets = || surroundings.sockets.clone();
        let pod_resources = paths.pod_resources.clone();
        let pod_resources = pod_resources.map(|socket| PodResources::new(sockets(), socket));
        let plugins = Plugins::start(sockets(), paths.plugins.clone(), paths.kubelet.clone());
        Ok(Self {
            machine: Arc::new(Machine::new(paths.clone(), surroundings.clone())),
            plugins,
            cluster,
            pod_resources,
            memory: Memory {
                kept: crate::kept::in_force(&settings.paths.state),
                ..Memory::default()
            },
            settings: Arc::new(settings),
            surroundings,
            shown,
            wake,
            begun: Instant::now(),
        })
    }

    /// Works until `stop` is ready. Then lists and sockets are closed without withdrawing
    /// anything, so that running pods and the next agent find what they knew.
    pub async fn run(mut self, stop: impl Future<Output = ()>) {
        let mut events = events::follow(Arc::clone(&self.machine), self.surroundings.workers);
        tokio::pin!(stop);
        loop {
            let pause = tokio::select! {
                pause = self.round() => pause,
                () = &mut stop => break,
            };
            tokio::select! {
                () = self.wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
                Some(event) = events.recv() => self.note_events(event, &mut events),
                () = &mut stop => break,
            }
        }
        self.remove_label_file();
        self.plugins.stop().await;
        self.machine.close();
    }

    fn note_events(
        &mut self,
        first: Option<gpu::Event>,
        more: &mut UnboundedReceiver<Option<gpu::Event>>,
    ) {
        let now = self.begun.elapsed();
        let mut next = Some(first);
        while let Some(event) = next {
            let fault = event.and_then(|event| events::fault(&event, &self.settings.xids));
            if let Some(fault) = fault {
                tracing::warn!(gpu = %fault.gpu, "{}", fault.what);
                self.memory.health.report(now, fault);
            }
            next = more.try_recv().ok();
        }
    }

    /// One round; how long to wait for the next if nothing happens.
    async fn round(&mut self) -> Duration {
        let settings = Arc::clone(&self.settings);
        let (told, node) = match &mut self.cluster {
            None => (Told::default(), None),
            Some(cluster) => match cluster.told(&settings) {
                Some(told) => (told, cluster.node()),
                None => {
                    self.shown.waiting(cluster.awaited());
                    return SLOW_TICK;
                }
            },
        };
        if self.yields_to_rivals(node.as_ref()).await {
            return SLOW_TICK;
        }
        self.look_around().await;
        if self.reboots() {
            return FAST_TICK;
        }
        if driver_is_replaced(&told.labels) {
            self.let_go(node.as_ref(), "the driver is being replaced")
                .await;
            return FAST_TICK;
        }
        let reading = match self.read().await {
            Ok(reading) => reading,
            Err(reason) => {
                self.let_go(node.as_ref(), &reason).await;
                return FAST_TICK;
            }
        };
        self.serve(&told, node.as_ref(), reading).await
    }

    /// Brings the layout there and publishes.
    async fn serve(
        &mut self,
        told: &Told,
        node: Option<&NodeSeen>,
        mut reading: Reading,
    ) -> Duration {
        let settings = Arc::clone(&self.settings);
        let Some(inventory) = reading.node.inventory.clone() else {
            return FAST_TICK;
        };
        let desired = decide::resolve(told, &settings, Some(&inventory), &self.memory.kept);
        self.hear_allocations().await;
        if !self.memory.has_heard {
            // Without knowing who has what, a device could be offered twice.
            let reason = "waiting for the kubelet to say who has devices";
            self.shown.waiting(reason.to_owned());
            return FAST_TICK;
        }
        let round = Round {
            told,
            node,
            facts: &reading.node,
            inventory: &inventory,
        };
        let (layout, changed) = self.settle(round, &desired).await;
        if self.reboots() {
            return FAST_TICK;
        }
        if changed {
            match self.read().await {
                Ok(again) => reading = again,
                Err(reason) => {
                    self.let_go(node, &reason).await;
                    return FAST_TICK;
                }
            }
        }
        let waits = self.publish(told, node, desired, reading, &layout).await;
        match (waits || layout.waits, self.memory.health.next()) {
            (true, _) => FAST_TICK,
            (false, Some(_)) => Duration::from_secs(5),
            (false, None) if self.is_young() => YOUNG_TICK,
            (false, None) => SLOW_TICK,
        }
    }

    /// Whether the agent has just started.
    pub(crate) fn is_young(&self) -> bool {
        self.begun.elapsed() < YOUNG
    }

    /// Reads the hardware on a thread that may block.
    pub(crate) async fn read(&mut self) -> Result<Reading, String> {
        let machine = Arc::clone(&self.machine);
        let file = self.machine_type_file();
        let workers = self.surroundings.workers;
        let reading = workers.run(move || machine.read(&file)).await;
        let reading = match reading {
            Ok(Ok(reading)) => reading,
            Ok(Err(error)) => return Err(error.to_string()),
            Err(panic) => return Err(format!("the reading ended: {panic}")),
        };
        if let Some(inventory) = &reading.node.inventory {
            self.memory.health.seen(self.begun.elapsed(), inventory);
        }
        Ok(reading)
    }

    fn machine_type_file(&self) -> PathBuf {
        let in_force = self.memory.in_force.as_ref();
        let default = Config::default();
        let config = in_force.map_or(&default, |(config, _)| config);
        PathBuf::from(&config.flags.gfd.machine_type_file)
    }

    /// Closes the driver and takes no more pods; those that run keep what they have.
    async fn let_go(&mut self, node: Option<&NodeSeen>, reason: &str) {
        let machine = Arc::clone(&self.machine);
        // The last to let go unloads the library, which may take a while.
        let _ = self.surroundings.workers.run(move || machine.close()).await;
        self.shown.waiting(reason.to_owned());
        self.fence_all(reason);
        let why = Warning {
            code: Code::DriverMissing,
            message: reason.to_owned(),
        };
        self.tell("DriverUnavailable", why.code, reason).await;
        self.write_idle(node, &why).await;
    }

    /// Asks the kubelet which devices containers have; without an answer the last one stands.
    pub(crate) async fn hear_allocations(&mut self) -> bool {
        let Some(pod_resources) = &self.pod_resources else {
            self.memory.has_heard = true;
            return true;
        };
        match pod_resources.held().await {
            Ok(holdings) => {
                let mut allocated = Vec::new();
                for holding in holdings {
                    for id in &holding.ids {
                        allocated.push(Allocation {
                            pod: format!("{}/{}", holding.namespace, holding.pod),
                            resource: holding.resource.clone(),
                            id: id.clone(),
                        });
                    }
                }
                allocated.sort();
                let before = &self.memory.allocated;
                let some_left = before.iter().any(|it| !allocated.contains(it));
                if (some_left || !self.memory.has_heard) && !self.is_whole(&allocated).await {
                    return false;
                }
                self.memory.allocated = allocated;
                self.memory.has_heard = true;
                true
            }
            Err(error) => {
                tracing::warn!("{error}");
                false
            }
        }
    }

    /// Tells of something once, until it is told that it is over.
    pub(crate) async fn tell(&mut self, reason: &'static str, code: Code, note: &str) {
        let note = format!("{note} [{code}]");
        if !self.memory.told.insert(note.clone()) {
            return;
        }
        tracing::warn!("{note}");
        self.event(true, reason, note).await;
    }

    /// Writes an event to the node, with those that could not be written before.
    pub(crate) async fn event(&mut self, is_warning: bool, reason: &'static str, note: String) {
        self.memory.unwritten.push(crate::write::Told {
            is_warning,
            reason,
            note,
        });
        self.write_events().await;
    }

    /// Writes the events that are still to be written.
    pub(crate) async fn write_events(&mut self) {
        let events = std::mem::take(&mut self.memory.unwritten);
        let Some(cluster) = &self.cluster else {
            return;
        };
        let mut events = events.into_iter();
        while let Some(event) = events.next() {
            if let Err(error) = cluster.tell(&event, self.surroundings.clock.now()).await {
                tracing::warn!("{error}");
                // The others would wait for the same.
                self.memory.unwritten.push(event);
                self.memory.unwritten.extend(events);
                break;
            }
        }
        // An API server that is away for long gets what is new.
        let excess = self.memory.unwritten.len().saturating_sub(MOST_EVENTS);
        self.memory.unwritten.drain(..excess);
    }

    /// Seconds since 1970 at which these settings came into force.
    pub(crate) fn since(&mut self, config: &Config) -> u64 {
        match &self.memory.in_force {
            Some((known, since)) if known == config => *since,
            _ => {
                let now =
                    u64::try_from(self.surroundings.clock.now().as_second()).unwrap_or_default();
                self.memory.in_force = Some((config.clone(), now));
                now
            }
        }
    }

    /// The reading as it is published: with faults, settings and what is lost.
    pub(crate) fn as_published(&mut self, mut reading: Reading, desired: &Desired) -> Reading {
        let since = self.since(&desired.config);
        let node = &mut reading.node;
        if let Some(inventory) = node.inventory.take() {
            let merged = with_lost(inventory, self.memory.last.as_ref());
            self.memory.last = Some(merged.clone());
            node.inventory = Some(merged);
        }
        node.faults = self.memory.health.faults();
        node.timestamp = (!desired.config.flags.gfd.no_timestamp).then_some(since);
        node.config = desired.config.clone();
        reading
    }

    /// Lists everything that was offered as unusable, for this reason.
    pub(crate) fn fence_all(&mut self, reason: &str) {
        let devices = self.offered().iter().flat_map(|it| &it.devices);
        let fenced = devices.map(|device| (device.hardware.uuid().to_owned(), reason.to_owned()));
        self.fence_devices(fenced.collect());
    }

    /// Offers nothing any more. Containers keep what they have.
    pub(crate) fn withdraw(&mut self) {
        if self.memory.offer.take().is_some() {
            self.plugins.offer(Offer::default());
        }
    }

    /// What was offered last.
    pub(crate) fn offered(&self) -> &[Resource] {
        let offer = self.memory.offer.as_ref();
        offer.map_or(&[], |offer| &offer.resources)
    }

    /// Offers the same as before, with exactly these devices listed as unusable.
    pub(crate) fn fence_devices(&self, fenced: BTreeMap<String, String>) {
        if let Some(offer) = &self.memory.offer {
            self.plugins.offer(Offer {
                fenced,
                ..offer.clone()
            });
        }
    }

    /// GPUs were reset.
    pub(crate) fn note_reset(&mut self, gpus: &[GpuUuid]) {
        self.memory.health.reset(self.begun.elapsed(), gpus);
    }
}
