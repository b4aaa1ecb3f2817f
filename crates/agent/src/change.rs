// SPDX-License-Identifier: Apache-2.0
//! Bringing the layout to what is wanted.
//!
//! ```text
//! decide ──refused──────────────────────────────────────────────> failed, with the reason
//!   │ change
//!   v
//! fence what goes ─> kubelet agrees ─> who has it? ──somebody──> fence lifted, failed
//!                                         │ nobody
//!   pending ─> pause clients ─> apply ─> resume clients ─> success, or failed and put back
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use geometry::inventory::Inventory;
use host::{Ending, Intent};
use plan::{Plan, Refusal, Wish};
use publish::Node;
use snapshot::CapHandle;
use tokio::time::Instant;
use units::{Code, GpuUuid};

use crate::agent::{Agent, Failed, Layout};
use crate::cluster::NodeSeen;
use crate::decide::{self, Desired, Goes, LabelChange, MigChange, MigDecision, State, Told, pause};
use crate::kept;

/// When a change is tried again that did not begin: what was in the way may be gone, but each try
/// withdraws devices for a moment.
const RETRY: Duration = Duration::from_secs(300);

/// What a round of the loop goes by.
#[derive(Clone, Copy)]
pub(crate) struct Round<'a> {
    /// What is asked for.
    pub told: &'a Told,
    /// The node in the cluster; `None` without one.
    pub node: Option<&'a NodeSeen>,
    /// The node's hardware, with what the inventory does not say.
    pub facts: &'a Node,
    /// Its GPUs.
    pub inventory: &'a Inventory,
}

impl Agent {
    /// Brings the layout to what is wanted, if that is possible and hurts nobody. Whether hardware
    /// was touched.
    pub(crate) async fn settle(&mut self, round: Round<'_>, desired: &Desired) -> (Layout, bool) {
        let outcome = self.reach(round, desired).await;
        // Not before: the change that a crash cut short is ended above.
        self.lift_leftover_pause(round.told).await;
        outcome
    }

    async fn reach(&mut self, round: Round<'_>, desired: &Desired) -> (Layout, bool) {
        if let Some(outcome) = self.resolve_journal(desired, round.inventory).await {
            return (outcome, true);
        }
        let wanted = desired.mig.as_ref().map(|mig| mig.name.clone());
        let layout = |state, reason| Layout {
            state: Some(state),
            wanted: wanted.clone(),
            reason,
            waits: false,
        };
        match decide::decide(
            desired.mig.as_ref(),
            round.inventory,
            &self.memory.allocated,
        ) {
            MigDecision::Leave => (Layout::default(), false),
            MigDecision::Applied { .. } => {
                self.forget_failures();
                (layout(State::Success, None), false)
            }
            MigDecision::Refused { refusal, .. } => {
                // Holders go without an event.
                let waits = refusal.code == Code::InUse;
                let reason = Some((refusal.code, sentence(&refusal)));
                let failed = layout(State::Failed, reason);
                (Layout { waits, ..failed }, false)
            }
            MigDecision::Change(change) => self.change(round, &change).await,
        }
    }

    /// What is wanted is there: what was in the way is no longer.
    fn forget_failures(&mut self) {
        self.memory.failed = None;
        if let Err(error) = kept::keep_reboot(&self.settings.paths.state, None) {
            tracing::warn!("cannot forget a reboot that was asked for: {error}");
        }
    }

    /// Ends a change that was begun and not ended; `None` if there is none.
    async fn resolve_journal(
        &mut self,
        desired: &Desired,
        inventory: &Inventory,
    ) -> Option<Layout> {
        let wish = desired
            .mig
            .as_ref()
            .and_then(|mig| mig.entries.as_ref().ok());
        let wish: Option<Wish> = wish.and_then(|it| plan::resolve(it, inventory).ok());
        let machine = Arc::clone(&self.machine);
        let workers = self.surroundings.workers;
        let recovered = workers
            .run(move || match machine.open_change(wish.as_ref())? {
                Some(toward) => machine.recover(toward),
                None => Ok(None),
            })
            .await;
        let reason = match recovered {
            Ok(Ok(None)) => return None,
            Ok(Ok(Some(outcome))) => {
                tracing::info!(
                    "a change that was cut short was ended: {:?}",
                    outcome.ending
                );
                fault(&outcome.ending)
            }
            Ok(Err(error)) => Some((error.code(), error.to_string())),
            Err(panic) => Some((Code::DriverFailed, format!("recovery ended: {panic}"))),
        };
        Some(Layout {
            state: reason
                .as_ref()
                .map_or(Some(State::Pending), |_| Some(State::Failed)),
            wanted: desired.mig.as_ref().map(|mig| mig.name.clone()),
            // What is wanted is looked at in the next round, at once.
            waits: true,
            reason,
        })
    }

    async fn change(&mut self, round: Round<'_>, change: &MigChange) -> (Layout, bool) {
        let Round { told, node, .. } = round;
        let layout = |state, reason, waits| Layout {
            state,
            wanted: Some(change.name.clone()),
            reason,
            waits,
        };
        let failed = |reason, waits| layout(Some(State::Failed), Some(reason), waits);
        if let Some(known) = self.known_failure(change) {
            return self.after_failure(round, change, &known).await;
        }
        if let Some(reason) = self.still_open(&change.goes.minors(round.facts)).await {
            return (failed(reason, false), false);
        }
        let reason = format!("the layout is changed to {}", change.name);
        if let Err(refusal) = self.free(told, &change.goes, &reason).await {
            return (failed((refusal.code, sentence(&refusal)), true), false);
        }
        // A change that cannot be told is not begun.
        if node.is_some() && !self.say(told, State::Pending).await {
            self.fence_devices(BTreeMap::new());
            return (layout(None, None, true), false);
        }
        let ending = match self.act(round, change).await {
            Ok(ending) => ending,
            Err((code, message)) => {
                // A process that is in the way is looked for before anything is withdrawn again.
                if self.memory.in_the_way.is_empty() {
                    self.memory.failed = Some(Failed {
                        fingerprint: change.fingerprint,
                        code,
                        message: message.clone(),
                        needs_reboot: false,
                        until: Some(Instant::now() + RETRY),
                    });
                }
                return (failed((code, message), false), false);
            }
        };
        let Some((code, message)) = fault(&ending) else {
            return (layout(Some(State::Success), None, false), true);
        };
        let known = Failed {
            fingerprint: change.fingerprint,
            code,
            message,
            needs_reboot: needs_reboot(&ending),
            until: None,
        };
        self.memory.failed = Some(known.clone());
        let (layout, _) = self.after_failure(round, change, &known).await;
        (layout, true)
    }

    /// This very change, if it has failed and is not to be tried again yet.
    fn known_failure(&mut self, change: &MigChange) -> Option<Failed> {
        let known = self.memory.failed.take()?;
        let is_over = known.until.is_some_and(|until| until <= Instant::now());
        if known.fingerprint == change.fingerprint && !is_over {
            self.memory.failed = Some(known);
        }
        self.memory.failed.clone()
    }

    /// What becomes of a change that was put back: a reboot, if it may help and is allowed.
    async fn after_failure(
        &mut self,
        round: Round<'_>,
        change: &MigChange,
        known: &Failed,
    ) -> (Layout, bool) {
        if known.needs_reboot && self.may_reboot(round.told) {
            return (self.reboot(round, change).await, true);
        }
        let hint = match known.needs_reboot {
            true => format!(
                "; a reboot of the node may bring it: allow that by the annotation {}=true on it",
                kubeapi::names::MAY_REBOOT
            ),
            false => String::new(),
        };
        let failed = Layout {
            state: Some(State::Failed),
            wanted: Some(change.name.clone()),
            reason: Some((known.code, format!("{}{hint}", known.message))),
            waits: false,
        };
        (failed, false)
    }

    /// Withdraws what goes and makes sure that nobody has it. Nothing is withdrawn if it is known
    /// already that somebody has: this is tried again and again until pods end.
    pub(crate) async fn free(
        &mut self,
        told: &Told,
        goes: &Goes,
        reason: &str,
    ) -> Result<(), Refusal> {
        let may_hurt = self.may(told, kubeapi::names::MAY_DISRUPT, self.settings.may_disrupt);
        let hurts = |agent: &Self| match goes.hurts(&agent.memory.allocated) {
            Some(refusal) if !may_hurt => Err(refusal),
            _ => Ok(()),
        };
        hurts(self)?;
        let uuids: BTreeSet<String> = goes.uuids().map(str::to_owned).collect();
        let fenced = self.fence(&uuids, reason).await;
        let free = fenced.and_then(|()| hurts(self));
        if free.is_err() {
            self.fence_devices(BTreeMap::new());
        }
        free
    }

    /// What the node's annotation allows, else the settings.
    pub(crate) fn may(&self, told: &Told, annotation: &str, setting: bool) -> bool {
        match told.annotations.get(annotation).map(String::as_str) {
            Some("true") => true,
            Some("false") => false,
            _ => setting,
        }
    }

    /// Says what becomes of a change; whether it is told.
    pub(crate) async fn say(&self, told: &Told, state: State) -> bool {
        let (key, state) = (kubeapi::names::MIG_CONFIG_STATE, state.to_string());
        if told.labels.get(key) == Some(&state) {
            return true;
        }
        self.label(&[(key.to_owned(), Some(state))].into()).await
    }

    /// Changes the hardware, with the clients of the GPUs paused meanwhile.
    ///
    /// # Errors
    /// If the hardware was not touched: what was in the way may be gone the next time.
    async fn act(
        &mut self,
        round: Round<'_>,
        change: &MigChange,
    ) -> Result<Ending, (Code, String)> {
        let paused = pause(&round.told.labels);
        if let Err(reason) = self.pause_clients(round.told, &paused).await {
            self.resume_after(&paused).await;
            return Err(reason);
        }
        if let Err(reason) = self.nobody_has(&change.goes.minors(round.facts)).await {
            self.resume_after(&paused).await;
            return Err(reason);
        }
        tracing::info!("the layout is changed to {}", change.name);
        let applied = self
            .apply(change.plan.clone(), Intent::apply(&change.name))
            .await;
        if applied.is_ok() {
            let gpus = change.plan.gpus.iter().filter(|gpu| gpu.resets());
            let reset: Vec<GpuUuid> = gpus.map(|gpu| gpu.uuid.clone()).collect();
            self.note_reset(&reset);
            self.memory.health.destroyed(&change.goes.instances);
        }
        self.resume_after(&paused).await;
        applied
    }

    /// Makes sure that no process has these capability devices open, and remembers who has.
    async fn nobody_has(&mut self, minors: &BTreeSet<u32>) -> Result<(), (Code, String)> {
        let handles = self.handles(minors).await?;
        self.memory.in_the_way = handles.iter().map(|handle| handle.pid).collect();
        let refusal = decide::opened(&handles);
        refusal.map_or(Ok(()), |refusal| Err((refusal.code, refusal.message)))
    }

    /// Whether a process that was in the way the last time still is.
    async fn still_open(&mut self, minors: &BTreeSet<u32>) -> Option<(Code, String)> {
        let known = std::mem::take(&mut self.memory.in_the_way);
        if known.is_empty() {
            return None;
        }
        // Where that cannot be looked up, it is found out below.
        let mut handles = self.handles(minors).await.unwrap_or_default();
        handles.retain(|handle| known.contains(&handle.pid));
        self.memory.in_the_way = handles.iter().map(|handle| handle.pid).collect();
        decide::opened(&handles).map(|refusal| (refusal.code, refusal.message))
    }

    /// Who has these capability devices open, looked up on a thread that may block: a node has
    /// thousands of open files.
    ///
    /// # Errors
    /// If that cannot be known: then nothing is touched.
    async fn handles(&self, minors: &BTreeSet<u32>) -> Result<BTreeSet<CapHandle>, (Code, String)> {
        let minors = minors.clone();
        let machine = Arc::clone(&self.machine);
        let workers = self.surroundings.workers;
        let looked = workers.run(move || machine.cap_handles(&minors)).await;
        let handles = looked.map_err(std::io::Error::other).flatten();
        handles.map_err(|error| {
            let message = format!("who has slices open cannot be looked up in /proc: {error}");
            (Code::InUse, message)
        })
    }

    /// Carries a plan out, on a thread that may block.
    ///
    /// # Errors
    /// As [`Self::act`]. What a panic left is found in the journal.
    pub(crate) async fn apply(&self, plan: Plan, intent: Intent) -> Result<Ending, (Code, String)> {
        let machine = Arc::clone(&self.machine);
        let workers = self.surroundings.workers;
        let applied = workers.run(move || machine.apply(&plan, &intent)).await;
        match applied {
            Ok(Ok(outcome)) => Ok(outcome.ending),
            Ok(Err(error)) => Err((error.code(), error.to_string())),
            Err(panic) => Err((Code::DriverFailed, format!("the change ended: {panic}"))),
        }
    }

    /// Sets labels; whether it was done.
    pub(crate) async fn label(&self, change: &LabelChange) -> bool {
        let Some(cluster) = self.cluster.as_ref().filter(|_| !change.is_empty()) else {
            return true;
        };
        let done = cluster.patch_node(change, &LabelChange::new()).await;
        done.inspect_err(|error| tracing::warn!("{error}")).is_ok()
    }
}

/// Why a change did not end well, if it did not.
fn fault(ending: &Ending) -> Option<(Code, String)> {
    ending.code().zip(ending.message())
}

/// Whether a change was put back as the mode did not come without a reboot.
fn needs_reboot(ending: &Ending) -> bool {
    matches!(ending, Ending::PutBack { cause }
        if matches!(cause.code, Code::ResetNeeded | Code::RebootNeeded))
}

/// A refusal with its choices.
fn sentence(refusal: &Refusal) -> String {
    if refusal.choices.is_empty() {
        return refusal.message.clone();
    }
    let shown: Vec<&str> = refusal
        .choices
        .iter()
        .take(40)
        .map(String::as_str)
        .collect();
    format!("{}; there are: {}", refusal.message, shown.join(", "))
}
