// SPDX-License-Identifier: Apache-2.0
//! Programs of the node itself, such as `systemctl`: they need its files and its `/run`.
//!
//! A process can only move into another mount namespace while it has a single thread, which an agent
//! has not. So this program starts itself once more, and that moves and becomes the other.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The verb by which this program starts itself.
pub const VERB: &str = "on-node";
/// Where programs of a node are looked for; the last is that of systems that are read only.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/bin";

/// Becomes a program of the node that the first process is of; why that is not possible.
pub fn exec(words: &[String]) -> io::Error {
    let Some((program, arguments)) = words.split_first() else {
        return io::Error::from(io::ErrorKind::InvalidInput);
    };
    let moved = File::open("/proc/1/ns/mnt").and_then(|namespace| {
        let kind = Some(LinkNameSpaceType::Mount);
        Ok(move_into_link_name_space(namespace.as_fd(), kind)?)
    });
    match moved {
        Ok(()) => Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .exec(),
        Err(error) => error,
    }
}

/// Runs a program of the node to its end.
///
/// # Errors
/// If it cannot be started, or takes longer.
pub async fn run(words: &[&str], longest: Duration) -> io::Result<Output> {
    if std::process::id() == 1 {
        let message = "the agent does not see the processes of the node (hostPID)";
        return Err(io::Error::other(message));
    }
    let child = tokio::process::Command::new(std::env::current_exe()?)
        .arg(VERB)
        .arg("--")
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let late = |_| {
        io::Error::new(
            io::ErrorKind::TimedOut,
            format!("{} hangs", words.join(" ")),
        )
    };
    tokio::time::timeout(longest, child).await.map_err(late)?
}
