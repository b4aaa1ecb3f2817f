// SPDX-License-Identifier: Apache-2.0
//! Runs the commands around a change that a hooks file of mig-parted names.
//!
//! `apply-start` runs first and `apply-exit` last, always; `pre-apply-mode` if a mode changes,
//! `pre-apply-config` if instances change. The first command that fails stops the rest.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use config::hooks::{self, Hook, Point};
use units::Code;

use crate::env::Env;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Hooks, ready to run. The default has none.
#[derive(Debug, Default)]
pub struct Hooks {
    hooks: hooks::Hooks,
    variables: BTreeMap<String, String>,
    debug: bool,
}

impl Hooks {
    /// The hooks of a file named by flag or environment; none without one. They see their own
    /// `envs` and `variables`, nothing else; what they print is shown with `debug`.
    ///
    /// # Errors
    /// If the file cannot be used.
    pub fn read(
        file: Option<&PathBuf>,
        debug: bool,
        env: &Env,
        mut variables: BTreeMap<String, String>,
        output: &mut Output<'_>,
    ) -> Result<Self, Failure> {
        const VARIABLE: &str = "MIG_PARTED_HOOKS_FILE";
        let file = file.map(|file| file.display().to_string());
        let Some(file) = file.or_else(|| env.get(VARIABLE).map(str::to_owned)) else {
            return Ok(Self::default());
        };
        let text = files::read(&file, Code::ConfigInvalid)?;
        let (hooks, warnings) = hooks::parse(files::shown(&file), &text)?;
        for warning in &warnings {
            output.warn(warning.code, warning);
        }
        variables.insert(VARIABLE.to_owned(), file);
        let debug = debug || env.is_true("MIG_PARTED_DEBUG");
        Ok(Self {
            hooks,
            variables,
            debug,
        })
    }

    /// Runs the commands of a point.
    ///
    /// # Errors
    /// `hook-failed`, for the first that cannot be started or does not end with status 0.
    pub fn run(&self, point: Point, output: &mut Output<'_>) -> Result<(), Failure> {
        self.hooks
            .at(point)
            .iter()
            .try_for_each(|hook| self.run_one(point, hook, output))
    }

    fn run_one(&self, point: Point, hook: &Hook, output: &mut Output<'_>) -> Result<(), Failure> {
        let point = point.as_str();
        let failed = |reason: String| {
            Failure::new(
                Code::HookFailed,
                format!("hook {point}: {} {reason}", hook.command),
            )
        };
        let mut command = Command::new(&hook.command);
        command
            .args(&hook.args)
            .env_clear()
            .envs(&hook.envs)
            .envs(&self.variables);
        if let Some(folder) = &hook.workdir {
            command.current_dir(folder);
        }
        let ended = command.output();
        let ended = ended.map_err(|error| failed(format!("cannot be started: {error}")))?;
        if self.debug {
            for bytes in [&ended.stdout, &ended.stderr] {
                for line in String::from_utf8_lossy(bytes).lines() {
                    output.note(format_args!("{point}: {line}"));
                }
            }
        }
        if ended.status.success() {
            return Ok(());
        }
        Err(failed(format!("ended with {}", ended.status)))
    }
}
