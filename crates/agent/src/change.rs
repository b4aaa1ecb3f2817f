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
use std::time::{Duration, Instant};

use geometry::inventory::Inventory;
use host::{Ending, Intent};
use plan::{Refusal, Wish};
use units::{Code, GpuUuid};

use crate::agent::{Agent, Failed, Layout};
use crate::cluster::NodeSeen;
use crate::decide::{
    self, Desired, LabelChange, MigChange, MigDecision, State, Told, apps, pause, resume,
};

/// How long clients of the GPU may take to end (source: NVIDIA's MIG manager allows 5 minutes each).
const CLIENTS_END: Duration = Duration::from_secs(300);

impl Agent {
    /// Brings the layout to what is wanted, if that is possible and hurts nobody. Whether hardware
    /// was touched.
    pub(crate) async fn settle(
        &mut self,
        told: &Told,
        node: Option<&NodeSeen>,
        desired: &Desired,
        inventory: &Inventory,
    ) -> (Layout, bool) {
        self.lift_leftover_pause(told).await;
        if let Some(outcome) = self.resolve_journal(desired, inventory).await {
            return (outcome, true);
        }
        let wanted = desired.mig.as_ref().map(|mig| mig.name.clone());
        let layout = |state, reason| Layout {
            state: Some(state),
            wanted: wanted.clone(),
            reason,
            waits: false,
        };
        match decide::decide(desired.mig.as_ref(), inventory, &self.memory.allocated) {
            MigDecision::Leave => (Layout::default(), false),
            MigDecision::Applied { .. } => {
                self.memory.failed = None;
                (layout(State::Success, None), false)
            }
            MigDecision::Refused { refusal, .. } => {
                // Holders go without an event.
                let waits = refusal.code == Code::InUse;
                let reason = Some((refusal.code, sentence(&refusal)));
                let failed = layout(State::Failed, reason);
                (Layout { waits, ..failed }, false)
            }
            MigDecision::Change(change) => self.change(told, node, &change).await,
        }
    }

    /// Lets clients run again that a crash left paused.
    async fn lift_leftover_pause(&self, told: &Told) {
        self.label(&resume(&told.labels)).await;
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
        let recovered =
            tokio::task::spawn_blocking(move || match machine.open_change(wish.as_ref())? {
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

    async fn change(
        &mut self,
        told: &Told,
        node: Option<&NodeSeen>,
        change: &MigChange,
    ) -> (Layout, bool) {
        let wanted = Some(change.name.clone());
        let failed = |reason: (Code, String), waits| Layout {
            state: Some(State::Failed),
            wanted: wanted.clone(),
            reason: Some(reason),
            waits,
        };
        if let Some(known) = &self.memory.failed
            && known.fingerprint == change.fingerprint
        {
            let reason = (known.code, known.message.clone());
            return (failed(reason, false), false);
        }
        self.memory.failed = None;
        if let Err(refusal) = self.free(told, change).await {
            return (failed((refusal.code, sentence(&refusal)), true), false);
        }
        if !self.say_pending(told, node).await {
            self.fence_devices(BTreeMap::new());
            return (
                Layout {
                    waits: true,
                    ..Layout::default()
                },
                false,
            );
        }
        match self.act(told, change).await {
            Err(reason) => (failed(reason, false), false),
            Ok(None) => {
                let success = Layout {
                    state: Some(State::Success),
                    wanted,
                    ..Layout::default()
                };
                (success, true)
            }
            Ok(Some((code, message))) => {
                self.memory.failed = Some(Failed {
                    fingerprint: change.fingerprint,
                    code,
                    message: message.clone(),
                });
                (failed((code, message), false), true)
            }
        }
    }

    /// Withdraws what goes and makes sure that nobody has it. Nothing is withdrawn if it is known
    /// already that somebody has: this is tried again and again until pods end.
    async fn free(&mut self, told: &Told, change: &MigChange) -> Result<(), Refusal> {
        let may_hurt = self.may(told, kubeapi::names::MAY_DISRUPT, self.settings.may_disrupt);
        let hurts = |agent: &Self| match change.goes.hurts(&agent.memory.allocated) {
            Some(refusal) if !may_hurt => Err(refusal),
            _ => Ok(()),
        };
        hurts(self)?;
        let goes: BTreeSet<String> = change.goes.uuids().map(str::to_owned).collect();
        let reason = format!("the layout is changed to {}", change.name);
        let fenced = self.fence(&goes, &reason).await;
        let free = fenced.and_then(|()| hurts(self));
        if free.is_err() {
            self.fence_devices(BTreeMap::new());
        }
        free
    }

    /// What the node's annotation allows, else the settings.
    fn may(&self, told: &Told, annotation: &str, setting: bool) -> bool {
        match told.annotations.get(annotation).map(String::as_str) {
            Some("true") => true,
            Some("false") => false,
            _ => setting,
        }
    }

    /// Says that a change is under way. A change that cannot be told is not begun.
    async fn say_pending(&self, told: &Told, node: Option<&NodeSeen>) -> bool {
        let Some(_) = node else { return true };
        let key = kubeapi::names::MIG_CONFIG_STATE;
        if told.labels.get(key).is_some_and(|state| state == "pending") {
            return true;
        }
        self.label(&[(key.to_owned(), Some(State::Pending.to_string()))].into())
            .await
    }

    /// Changes the hardware, with the clients of the GPUs paused meanwhile; why it was put back, if
    /// it was.
    ///
    /// # Errors
    /// If the hardware was not touched: what was in the way may be gone the next time.
    async fn act(
        &mut self,
        told: &Told,
        change: &MigChange,
    ) -> Result<Option<(Code, String)>, (Code, String)> {
        let paused = pause(&told.labels);
        if !self.label(&paused).await || !self.clients_ended(&paused).await {
            self.resume_after(&paused).await;
            let message =
                "clients of the GPU did not end in time; see the pods of DCGM on this node";
            return Err((Code::InUse, message.to_owned()));
        }
        tracing::info!("the layout is changed to {}", change.name);
        let (machine, plan) = (Arc::clone(&self.machine), change.plan.clone());
        let intent = Intent::apply(&change.name);
        let applied = tokio::task::spawn_blocking(move || machine.apply(&plan, &intent)).await;
        let reset: Vec<GpuUuid> = change
            .plan
            .gpus
            .iter()
            .filter(|gpu| gpu.resets())
            .map(|gpu| gpu.uuid.clone())
            .collect();
        self.note_reset(&reset);
        self.resume_after(&paused).await;
        match applied {
            Ok(Ok(outcome)) => Ok(fault(&outcome.ending)),
            Ok(Err(error)) => Err((error.code(), error.to_string())),
            Err(panic) => Ok(Some((
                Code::DriverFailed,
                format!("the change ended: {panic}"),
            ))),
        }
    }

    /// Lets clients run again that were paused here.
    async fn resume_after(&self, paused: &LabelChange) {
        let set = paused.iter();
        let set = set.filter_map(|(key, value)| Some((key.clone(), value.clone()?)));
        self.label(&resume(&set.collect())).await;
    }

    /// Waits until the pods of paused clients are gone.
    async fn clients_ended(&self, paused: &LabelChange) -> bool {
        let apps = apps(paused);
        let Some(cluster) = self.cluster.as_ref().filter(|_| !apps.is_empty()) else {
            return true;
        };
        let begun = Instant::now();
        while begun.elapsed() < CLIENTS_END {
            let pods = cluster.pods_on_node().await;
            let runs = |pod: &decide::PodOnNode| !pod.is_ours && apps.contains(&pod.app.as_str());
            match pods {
                Ok(pods) if !pods.iter().any(runs) => return true,
                Ok(_) => {}
                Err(error) => tracing::warn!("{error}"),
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        false
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
