// SPDX-License-Identifier: Apache-2.0
//! Commands that run before and after a change, from a hooks file of mig-parted.
//!
//! ```text
//! version: v1
//! hooks:
//!   pre-apply-mode:
//!   - command: /usr/bin/systemctl
//!     args: [stop, nvidia-dcgm]
//! ```
//!
//! `apply-start` runs first and `apply-exit` last, always; `pre-apply-mode` if a mode changes,
//! `pre-apply-config` if instances change. The first command that fails stops the rest.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde::Deserialize;
use units::Code;

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// When a hook runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before anything.
    Start,
    /// Before modes change.
    BeforeMode,
    /// Before instances change.
    BeforeConfig,
    /// After everything, also after a failure.
    Exit,
}

impl Moment {
    const ALL: [Self; 4] = [
        Self::Start,
        Self::BeforeMode,
        Self::BeforeConfig,
        Self::Exit,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Start => "apply-start",
            Self::BeforeMode => "pre-apply-mode",
            Self::BeforeConfig => "pre-apply-config",
            Self::Exit => "apply-exit",
        }
    }
}

/// Hooks, ready to run. The default has none.
#[derive(Debug, Default)]
pub struct Hooks {
    by_name: BTreeMap<String, Vec<Hook>>,
    variables: BTreeMap<String, String>,
    debug: bool,
}

#[derive(Debug, Deserialize)]
struct HooksFile {
    #[serde(default)]
    hooks: BTreeMap<String, Vec<Hook>>,
}

#[derive(Debug, Deserialize)]
struct Hook {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    envs: BTreeMap<String, String>,
    workdir: Option<String>,
}

impl Hooks {
    /// Reads a hooks file. Hooks see their own `envs` and `variables`, nothing else; what they
    /// print is shown with `debug`.
    ///
    /// # Errors
    /// If the file cannot be read or is not a hooks file.
    pub fn read(
        path: &Path,
        variables: BTreeMap<String, String>,
        debug: bool,
        output: &mut Output<'_>,
    ) -> Result<Self, Failure> {
        let text = files::read(&path.to_string_lossy(), Code::ConfigInvalid)?;
        let file: HooksFile = serde_saphyr::from_str(&text).map_err(|error| {
            let message = format!("{} is not a hooks file: {error}", path.display());
            Failure::new(Code::ConfigInvalid, message)
        })?;
        for name in file.hooks.keys() {
            if Moment::ALL.iter().all(|moment| moment.name() != name) {
                let message = format!("{}: hook {name:?} never runs", path.display());
                output.warn(Code::UnknownKey, message);
            }
        }
        Ok(Self {
            by_name: file.hooks,
            variables,
            debug,
        })
    }

    /// Runs the commands of a moment.
    ///
    /// # Errors
    /// `hook-failed`, for the first that cannot be started or does not end with status 0.
    pub fn run(&self, moment: Moment, output: &mut Output<'_>) -> Result<(), Failure> {
        for hook in self.by_name.get(moment.name()).into_iter().flatten() {
            self.run_one(moment, hook, output)?;
        }
        Ok(())
    }

    fn run_one(&self, moment: Moment, hook: &Hook, output: &mut Output<'_>) -> Result<(), Failure> {
        let failed = |reason: String| {
            let message = format!("hook {}: {} {reason}", moment.name(), hook.command);
            Failure::new(Code::HookFailed, message)
        };
        let mut command = Command::new(&hook.command);
        command
            .args(&hook.args)
            .env_clear()
            .envs(&hook.envs)
            .envs(&self.variables);
        if let Some(folder) = hook.workdir.as_deref().filter(|folder| !folder.is_empty()) {
            command.current_dir(folder);
        }
        let ended = command
            .output()
            .map_err(|error| failed(format!("cannot be started: {error}")))?;
        if self.debug {
            for bytes in [&ended.stdout, &ended.stderr] {
                for line in String::from_utf8_lossy(bytes).lines() {
                    output.note(format_args!("{}: {line}", moment.name()));
                }
            }
        }
        if ended.status.success() {
            Ok(())
        } else {
            Err(failed(format!("ended with {}", ended.status)))
        }
    }
}
