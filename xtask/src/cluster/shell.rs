// SPDX-License-Identifier: Apache-2.0
//! Running programs for the cluster: every wait has an end, and nothing of the caller's
//! environment gets in.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// Where the programs of the system are. A caller's PATH may lack the folders of `sbin`.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The variable that marks every process of a cluster; its value is the cluster's folder. It is how
/// they are found again, whatever became of the process that started them.
pub const MARK: &str = "SLICEWRIGHT_CLUSTER_PROCESS";

/// Runs a program to its end, at most `seconds` long, and returns what it prints.
///
/// # Errors
/// If it cannot be started, fails, or takes longer.
pub fn run<S: AsRef<str>>(seconds: u32, words: &[S]) -> Result<String, Error> {
    run_with(seconds, words, "")
}

/// As [`run`], with `input` on standard input.
///
/// # Errors
/// As [`run`].
pub fn run_with<S: AsRef<str>>(seconds: u32, words: &[S], input: &str) -> Result<String, Error> {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let line = words.join(" ");
    let failed = |source| Error::Run {
        command: line.clone(),
        source,
    };
    let mut child = Command::new("timeout")
        .args(["--kill-after=5", &seconds.to_string()])
        .args(&words)
        .env("PATH", PATH)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input to the end says by its status whether that is bad.
        let _ = stdin.write_all(input.as_bytes());
    }
    let result = child.wait_with_output().map_err(failed)?;
    match result.status.code() {
        Some(0) => Ok(String::from_utf8_lossy(&result.stdout).into_owned()),
        Some(124 | 137) => Err(Error::Late {
            what: line,
            seconds,
        }),
        _ => Err(Error::Failed {
            command: line,
            stderr: String::from_utf8_lossy(&result.stderr).trim().to_owned(),
        }),
    }
}

/// Starts a program of the cluster in `folder` that stays, with its output in `log/NAME.log`.
///
/// # Errors
/// If it cannot be started.
pub fn start<S: AsRef<str>>(folder: &Path, name: &str, words: &[S]) -> Result<(), Error> {
    use std::os::unix::process::CommandExt;
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    let log = log(folder, name);
    let write = |source| Error::Write {
        path: log.clone(),
        source,
    };
    let output = File::options().create(true).append(true).open(&log);
    let output = output.map_err(write)?;
    let (program, arguments) = words.split_first().unwrap_or((&"true", &[]));
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .env(MARK, folder)
        .current_dir(folder)
        // A terminal's interrupt is for the task, not for the cluster.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(write)?)
        .stderr(output)
        .spawn()
        .map_err(|source| Error::Run {
            command: words.join(" "),
            source,
        })?;
    // Somebody has to collect it when it ends; its end is looked for elsewhere.
    thread::spawn(move || child.wait());
    Ok(())
}

/// Where a program of the cluster writes.
pub fn log(folder: &Path, name: &str) -> std::path::PathBuf {
    folder.join("log").join(format!("{name}.log"))
}

/// Asks `probe` until it has an answer, at most `seconds` long.
///
/// # Errors
/// Those of the probe at once; and if the time is over.
pub fn until<T>(
    what: &str,
    seconds: u32,
    mut probe: impl FnMut() -> Result<Option<T>, Error>,
) -> Result<T, Error> {
    let start = Instant::now();
    loop {
        if let Some(answer) = probe()? {
            return Ok(answer);
        }
        if start.elapsed() >= Duration::from_secs(seconds.into()) {
            let what = what.to_owned();
            return Err(Error::Late { what, seconds });
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Writes a file and the folders above it.
///
/// # Errors
/// If one of them cannot be written.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(path);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(path, text))
        .map_err(|source| Error::Write {
            path: path.to_owned(),
            source,
        })
}
