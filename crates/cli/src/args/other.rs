// SPDX-License-Identifier: Apache-2.0
//! Arguments of `slicewright config`, `sim` and `explain`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The verbs of `slicewright config`.
#[derive(Debug, Subcommand)]
pub enum ConfigVerb {
    /// Report every fault of configuration files, with line and column.
    #[command(after_help = "\
Examples:
  slicewright config check config.yaml
  slicewright config check examples/*.yaml

Takes NVIDIA's MIG configurations and device plugin configurations, bare or in a ConfigMap; told
apart by content. Exit code 0: valid, perhaps with warnings; 2: a file has errors.")]
    Check(CheckArgs),
}

/// Arguments of `config check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Files; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
}

/// The verbs of `slicewright sim`.
#[derive(Debug, Subcommand)]
pub enum SimVerb {
    /// Make a world of simulated GPUs that keeps its state in a file.
    #[command(after_help = "\
Examples:
  slicewright sim create 8xH100-80GB-SXM world.json
  slicewright sim create 2xA100-80GB,1xT4 world.json --latency 50ms")]
    Create {
        /// Boards with counts, by index: 2xA100-80GB,1xT4.
        spec: String,
        /// The file to make.
        file: PathBuf,
        /// Time that each changing driver call takes: 50ms, 1s.
        #[arg(long, value_name = "TIME", value_parser = milliseconds, default_value = "0ms")]
        latency: u64,
        /// Number from which UUIDs are made.
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Driver version: 535.183.01 cannot tell profiles while MIG is off.
        #[arg(long, value_name = "VERSION", value_parser = nvmlsim::driver_version)]
        driver_version: Option<String>,
    },
    /// Show a world: its GPUs, instances, holders and faults.
    Show {
        /// The world.
        file: PathBuf,
    },
    /// Make the driver misbehave.
    #[command(after_help = "\
Examples:
  slicewright sim fault world.json \"fail create-gi gpu=1 nth=3 code=INSUFFICIENT_RESOURCES\"
  slicewright sim fault world.json \"kill-after destroy-ci gpu=0\" \"slow any every ms=20\"
  slicewright sim fault world.json \"xid gpu=0 79\" \"lose gpu=0\"
  slicewright sim fault world.json clear

A rule is what happens (fail, fail-after, hang, slow, kill-before, kill-after), on which call (any,
change, read, set-mode, create-gi, destroy-gi, create-ci, destroy-ci, reset, or an NVML function),
and where: gpu=, nth=, every.")]
    Fault {
        /// The world.
        file: PathBuf,
        /// Rules.
        #[arg(required = true, value_name = "RULE")]
        rules: Vec<String>,
    },
    /// Reboot the machine: instances go, modes go or stay as the board does it.
    Reboot {
        /// The world.
        file: PathBuf,
    },
    /// Use a GPU or a slice, until standard input ends or as long as a command runs.
    #[command(after_help = "\
Examples:
  slicewright sim hold world.json MIG-0a1b2c3d-...
  slicewright sim hold world.json GPU-0a1b2c3d-... -- sleep 60

Stands for a program that runs there: the driver refuses to take the slice away meanwhile.")]
    Hold {
        /// The world.
        file: PathBuf,
        /// UUID of a GPU or of a MIG device.
        uuid: String,
        /// Command to run instead.
        #[arg(last = true)]
        command: Vec<OsString>,
    },
}

/// Arguments of `explain`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  slicewright explain                       all codes, a line each
  slicewright explain layout-does-not-fit")]
pub struct ExplainArgs {
    /// The code that was printed.
    pub code: Option<String>,
}

/// `50ms` or `2s`, in milliseconds.
fn milliseconds(text: &str) -> Result<u64, String> {
    let (digits, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(digits), _) => (digits, 1),
        (None, Some(digits)) => (digits, 1000),
        (None, None) => return Err("write a time such as 50ms or 2s".to_owned()),
    };
    let number: u64 = digits
        .parse()
        .map_err(|_| "write a time such as 50ms or 2s")?;
    number
        .checked_mul(factor)
        .ok_or_else(|| "too long".to_owned())
}
