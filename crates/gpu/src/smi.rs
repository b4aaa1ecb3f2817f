// SPDX-License-Identifier: Apache-2.0
//! Reset of GPUs through the driver's `nvidia-smi`, for NVML has no reset.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use units::GpuUuid;

use crate::error::Error;
use crate::traits::Reset;

/// How often a running reset is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Resets GPUs with `nvidia-smi --gpu-reset`.
#[derive(Clone, Debug)]
pub struct SmiReset {
    /// The program, as a path or a name to look for; inside the driver root if there is one.
    pub nvidia_smi: PathBuf,
    /// Where the driver is installed if not at `/`, such as `/run/nvidia/driver`: the program is
    /// run with that as its root.
    pub driver_root: Option<PathBuf>,
    /// How long a reset may take before the program is ended. A node of eight GPUs takes under a
    /// minute.
    pub timeout: Duration,
}

impl SmiReset {
    fn command(&self, gpus: &[GpuUuid]) -> Command {
        let mut command = Command::new(&self.nvidia_smi);
        if let Some(root) = &self.driver_root {
            within(&mut command, root.clone());
        }
        let uuids: Vec<&str> = gpus.iter().map(GpuUuid::as_str).collect();
        command.args(["--gpu-reset", "-i", &uuids.join(",")]);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs the command; what it said if it succeeded or failed, or why it could not.
    fn run(&self, mut command: Command) -> Result<(bool, String), String> {
        let program = self.nvidia_smi.display();
        let mut child = command
            .spawn()
            .map_err(|error| format!("cannot run {program}: {error}"))?;
        let deadline = Instant::now() + self.timeout;
        loop {
            match child.try_wait() {
                Ok(Some(status)) => return Ok((status.success(), said(&mut child))),
                Ok(None) if Instant::now() < deadline => std::thread::sleep(POLL),
                outcome => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return Err(match outcome {
                        Err(error) => format!("lost sight of {program}: {error}"),
                        Ok(_) => format!(
                            "{program} had not finished after {} s and was ended",
                            self.timeout.as_secs()
                        ),
                    });
                }
            }
        }
    }
}

/// Lets a command run with another root. A program `chroot` may not be there: images of agents hold
/// nothing but the agent.
fn within(command: &mut Command, root: PathBuf) {
    let enter = move || {
        rustix::process::chroot(&root)?;
        rustix::process::chdir("/")?;
        Ok(())
    };
    // SAFETY: between fork and exec only two system calls are made, on a path that is there; nothing
    // is allocated or locked.
    unsafe { command.pre_exec(enter) };
}

/// What a finished program printed.
fn said(child: &mut Child) -> String {
    let mut bytes = Vec::new();
    if let Some(stdout) = &mut child.stdout {
        let _ = stdout.read_to_end(&mut bytes);
    }
    if let Some(stderr) = &mut child.stderr {
        let _ = stderr.read_to_end(&mut bytes);
    }
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join(" ")
}

impl Reset for SmiReset {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error> {
        let failed = |reason| Error::Reset {
            gpus: gpus.to_vec(),
            reason,
        };
        let (success, said) = self.run(self.command(gpus)).map_err(failed)?;
        if success {
            return Ok(());
        }
        Err(failed(reason(&said)))
    }
}

/// What hinders a reset, first in our words where they are known. The texts are those of captures
/// from several drivers.
fn reason(said: &str) -> String {
    let lower = said.to_ascii_lowercase();
    let hint = if lower.contains("in use by another") || lower.contains("being used by") {
        "a process or service still has the GPU open (nvidia-persistenced, DCGM, a display and the \
         nvidia_drm module count too)"
    } else if lower.contains("nvlink") {
        "it must be reset together with its NVLink peers"
    } else if lower.contains("insufficient permissions") {
        "it needs root"
    } else if said.is_empty() {
        return "nvidia-smi failed without a word".to_owned();
    } else {
        return format!("nvidia-smi said: {said}");
    };
    format!("{hint}; nvidia-smi said: {said}")
}
