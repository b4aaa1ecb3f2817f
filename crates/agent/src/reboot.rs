// SPDX-License-Identifier: Apache-2.0
//! Rebooting the node, where a change of the MIG mode takes no effect without and it is allowed.
//!
//! ```text
//! put back, as a reset did not bring the mode
//!   ─> allowed? ─> not tried before? ─> fence all, nobody has any ─> mode left pending
//!   ─> kept on disk ─> state rebooting ─> `reboot` ─> wait for the end
//! after the boot: as any start; a mode that is still not there ─> failed
//! ```

use std::time::Duration;

use geometry::inventory::Inventory;
use host::Intent;
use plan::{Policy, Refusal};
use tokio::time::Instant;
use units::Code;

use crate::agent::{Agent, Layout};
use crate::change::Round;
use crate::decide::{self, Goes, MigChange, RebootAsked, State, Told};
use crate::kept;
use crate::surroundings::NodePrograms;

/// How long a machine may take to go down: systemd gives its services 90 seconds each.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the call for it may take.
const ASKED: Duration = Duration::from_secs(60);

impl Agent {
    /// Whether the node is going down, as was asked for.
    pub(crate) fn reboots(&self) -> bool {
        let since = self.memory.reboots_since;
        since.is_some_and(|since| since.elapsed() < LONGEST)
    }

    /// Whether the node may be rebooted.
    pub(crate) fn may_reboot(&self, told: &Told) -> bool {
        self.may(told, kubeapi::names::MAY_REBOOT, self.settings.may_reboot)
    }

    /// Reboots the node for a change, if nothing speaks against it.
    pub(crate) async fn reboot(&mut self, round: Round<'_>, change: &MigChange) -> Layout {
        let done = self.try_reboot(round, change).await;
        let refusal = done.err();
        Layout {
            state: Some(match refusal {
                Some(_) => State::Failed,
                None => State::Rebooting,
            }),
            wanted: Some(change.name.clone()),
            // Pods end without an event.
            waits: refusal.as_ref().is_some_and(|it| it.code == Code::InUse),
            reason: refusal.map(|refusal| (refusal.code, refusal.message)),
        }
    }

    async fn try_reboot(&mut self, round: Round<'_>, change: &MigChange) -> Result<(), Refusal> {
        let cannot = |message: String| {
            let message = format!("the node cannot be rebooted: {message}");
            Refusal::new(Code::RebootNeeded, message)
        };
        if let Some(why) = &self.memory.cannot_reboot {
            return Err(cannot(why.clone()));
        }
        let state = self.settings.paths.state.clone();
        let asked = RebootAsked {
            wanted: change.name.clone(),
            boot_id: self.machine.boot_id().to_owned(),
        };
        let in_vain = self.memory.reboots_since.is_some();
        decide::may_reboot(kept::reboot(&state).as_ref(), &asked, in_vain)?;
        let reason = format!("the node is rebooted for {}", change.name);
        self.free(round.told, &Goes::all(round.inventory), &reason)
            .await?;
        self.leave_pending(round.inventory, change).await?;
        kept::keep_reboot(&state, Some(&asked)).map_err(|error| cannot(error.to_string()))?;
        if !self.say(round.told, State::Rebooting).await {
            return Err(cannot("it could not be told on the node".to_owned()));
        }
        self.event(false, "Rebooting", reason.clone()).await;
        self.shown.waiting(reason);
        if let Err(why) = reboot_node(&*self.surroundings.programs).await {
            self.memory.cannot_reboot = Some(why.clone());
            return Err(cannot(why));
        }
        self.memory.reboots_since = Some(Instant::now());
        Ok(())
    }

    /// Sets the modes without a reset, so that the boot brings them.
    async fn leave_pending(
        &self,
        inventory: &Inventory,
        change: &MigChange,
    ) -> Result<(), Refusal> {
        let policy = Policy {
            reset: false,
            ..Policy::default()
        };
        let plan = plan::plan(inventory, &change.wish, &policy)?;
        let intent = Intent::apply(&change.name);
        let ending = self.apply(plan, intent).await;
        let ending = ending.map_err(|(code, message)| Refusal::new(code, message))?;
        match ending.code().zip(ending.message()) {
            Some((code, message)) => Err(Refusal::new(code, message)),
            None => Ok(()),
        }
    }
}

/// Reboots the node, by the program that every init brings with it.
async fn reboot_node(programs: &dyn NodePrograms) -> Result<(), String> {
    let output = programs.run(&["reboot"], ASKED).await;
    let output = output.map_err(|error| format!("reboot: {error}"))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "reboot: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
    }
}
