// SPDX-License-Identifier: Apache-2.0
//! The agent as a process: its threads, its log, its end by a signal.

use tokio::signal::unix::{SignalKind, signal};
use tracing_subscriber::filter::LevelFilter;

use crate::agent::{Agent, StartError};
use crate::settings::Settings;
use crate::surroundings::Surroundings;

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// For programs: a JSON object a line.
    Json,
}

/// Runs the agent until SIGTERM or SIGINT.
///
/// # Errors
/// See [`StartError`].
pub fn run(settings: Settings, format: LogFormat) -> Result<(), StartError> {
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    // Somebody who has a log of his own keeps it.
    let _ = match format {
        LogFormat::Text => log.try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    // One thread: the work is waiting. What blocks has threads of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(StartError::Runtime)?;
    let surroundings = Surroundings::of_machine(&settings.paths.driver_root_here);
    runtime.block_on(async {
        let stop = terminated().map_err(StartError::Runtime)?;
        let agent = Agent::start(settings, surroundings).await?;
        agent.run(stop).await;
        Ok(())
    })
}

fn terminated() -> std::io::Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = term.recv() => {}
            _ = int.recv() => {}
        }
    })
}
