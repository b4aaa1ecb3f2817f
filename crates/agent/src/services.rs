// SPDX-License-Identifier: Apache-2.0
//! Services of the node that keep GPUs open: stopped while a layout changes, where that is allowed,
//! and started again on every way out. What was stopped is on disk before it is, so that an agent
//! that was killed meanwhile is not the end of them.

use std::time::Duration;

use units::Code;

use crate::agent::Agent;
use crate::kept;
use crate::surroundings::NodePrograms;

/// The longest that services may take to stop or start: systemd gives each 90 seconds.
const LONGEST: Duration = Duration::from_secs(300);

impl Agent {
    /// Stops those services that run.
    ///
    /// # Errors
    /// If one cannot be stopped, or it could not be remembered. Those that were are started again.
    pub(crate) async fn stop_services(&self, services: &[String]) -> Result<(), (Code, String)> {
        let programs = &*self.surroundings.programs;
        let running = match running(programs, services).await {
            Ok(running) if running.is_empty() => return Ok(()),
            Ok(running) => running,
            Err(why) => return Err((Code::InUse, why)),
        };
        let state = &self.settings.paths.state;
        // Besides those that a crash left stopped.
        let mut stopped = kept::services(state);
        stopped.retain(|service| !running.contains(service));
        stopped.extend(running.iter().cloned());
        let kept = kept::keep_services(state, &stopped);
        let stopped = match kept {
            Ok(()) => systemctl(programs, "stop", &running).await,
            Err(error) => Err(format!("cannot remember what is stopped: {error}")),
        };
        if let Err(why) = stopped {
            self.start_services().await;
            return Err((Code::InUse, why));
        }
        tracing::info!("stopped for the change: {}", running.join(", "));
        Ok(())
    }

    /// Starts the services again that were stopped, in reverse, also by an agent before this one.
    pub(crate) async fn start_services(&self) {
        let state = &self.settings.paths.state;
        let mut services = kept::services(state);
        if services.is_empty() {
            return;
        }
        services.reverse();
        if let Err(why) = systemctl(&*self.surroundings.programs, "start", &services).await {
            // What is remembered is tried again in the next round.
            tracing::warn!("{why}");
            return;
        }
        tracing::info!("started again: {}", services.join(", "));
        if let Err(error) = kept::keep_services(state, &[]) {
            tracing::warn!("cannot forget what was stopped: {error}");
        }
    }
}

/// Which of them run.
async fn running(programs: &dyn NodePrograms, services: &[String]) -> Result<Vec<String>, String> {
    let mut words = vec!["systemctl", "is-active", "--"];
    words.extend(services.iter().map(String::as_str));
    let output = programs.run(&words, LONGEST).await;
    let output = output.map_err(|error| format!("systemctl is-active: {error}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    // Its status tells whether all run: that is no failure.
    let states: Vec<&str> = said.lines().map(str::trim).collect();
    if states.len() != services.len() {
        let why = String::from_utf8_lossy(&output.stderr);
        return Err(format!("systemctl is-active: {}", why.trim()));
    }
    let active = services.iter().zip(states);
    let active = active.filter(|(_, state)| ["active", "activating", "reloading"].contains(state));
    Ok(active.map(|(service, _)| service.clone()).collect())
}

async fn systemctl(
    programs: &dyn NodePrograms,
    verb: &str,
    services: &[String],
) -> Result<(), String> {
    let mut words = vec!["systemctl", verb, "--"];
    words.extend(services.iter().map(String::as_str));
    match programs.run(&words, LONGEST).await {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(format!("{}: {}", words.join(" "), why.trim()))
        }
        Err(error) => Err(format!("{}: {error}", words.join(" "))),
    }
}
