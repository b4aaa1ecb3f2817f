// SPDX-License-Identifier: Apache-2.0
//! Arguments of `slicewright host`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const HOST_EXAMPLES: &str = "\
Examples:
  slicewright host list
  slicewright host plan -f config.yaml -c all-balanced
  slicewright host apply --gpu 0,2 --layout \"3g.40gb,2x1g.10gb\"
  slicewright host rollback

Without a GPU, put --sim before or after any verb:
  slicewright host list --sim 2xA100-80GB,1xT4
  slicewright sim create 8xH100-80GB-SXM world.json
  slicewright host apply --sim world.json -c all-1g.10gb";

/// The machine and the verb.
#[derive(Debug, Args)]
#[command(after_help = HOST_EXAMPLES)]
pub struct HostArgs {
    /// Use a simulated driver: SPEC is boards such as 8xH100-80GB-SXM or 2xA100-80GB,1xT4, gone
    /// afterwards; FILE is a world of `slicewright sim create` that keeps its state.
    #[arg(
        long,
        global = true,
        value_name = "SPEC|FILE",
        help_heading = "Global options"
    )]
    pub sim: Option<String>,
    /// Folder of journal and history [default: /var/lib/slicewright; with --sim FILE: FILE.state].
    #[arg(
        long,
        global = true,
        value_name = "DIR",
        help_heading = "Global options"
    )]
    pub state_dir: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub verb: HostVerb,
}

/// The verbs of `slicewright host`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Show GPUs, MIG modes and instances.
    #[command(after_help = "\
Examples:
  slicewright host list
  slicewright host list -o wide         with UUIDs, PCI addresses and driver ids
  slicewright host list -o nvidia-smi   exactly the lines of `nvidia-smi -L`
  slicewright host list -o json         everything that was read")]
    List,
    /// Show what each board can be cut into, and where.
    #[command(after_help = "\
Examples:
  slicewright host profiles
  slicewright host profiles --sim 1xA30

Placements are start:size in the board's placement units (memory slices). FROM says how placements
are known: driver, captured, documented, or derived (an estimate).")]
    Profiles,
    /// Write the configurations that fit this hardware, as NVIDIA's generator does.
    #[command(after_help = "\
Examples:
  slicewright host generate-config
  slicewright host generate-config -f config.yaml")]
    GenerateConfig(GenerateArgs),
    /// Show what a change would do, and touch nothing.
    #[command(after_help = "\
Examples:
  slicewright host plan -f config.yaml -c all-balanced
  slicewright host plan -c all-1g.10gb            the configurations of `host generate-config`
  slicewright host plan --gpu 0 --layout 7x1g.10gb
  slicewright host plan -c all-balanced -o json   for programs

Exit code 0: nothing to do; 1: there is something to do; 3: refused.")]
    Plan(PlanArgs),
    /// Change the GPUs: plan, write the journal, act, read back.
    #[command(after_help = "\
Examples:
  slicewright host apply -f config.yaml -c all-balanced
  slicewright host apply --gpu 0,2 --layout \"3g.40gb,2x1g.10gb\"
  slicewright host apply --layout off
  slicewright host apply -c all-balanced --dry-run

Instances that both layouts contain stay as they are. If something fails half way, the old layout is
put back (exit code 4). `slicewright host rollback` goes back later.")]
    Apply(ApplyArgs),
    /// Check that the GPUs are as the configuration says.
    #[command(after_help = "\
Examples:
  slicewright host assert -f config.yaml -c all-balanced
  slicewright host assert -f config.yaml -c all-balanced --valid-config   needs no GPU

Exit code 0: they are; 1: they are not.")]
    Assert(AssertArgs),
    /// Write what is there as a configuration.
    #[command(after_help = "\
Examples:
  slicewright host export
  slicewright host export -l tuesday -f tuesday.yaml

A configuration says how many of each profile, not where. `host checkpoint` keeps places.")]
    Export(ExportArgs),
    /// Write the exact layout to a file that `restore` takes.
    #[command(after_help = "\
Examples:
  slicewright host checkpoint -f before.json")]
    Checkpoint(CheckpointArgs),
    /// Bring back the exact layout of a checkpoint file.
    #[command(after_help = "\
Examples:
  slicewright host restore -f before.json
  slicewright host restore -f before.json --dry-run")]
    Restore(RestoreArgs),
    /// Go back to the layout before the last apply, at its exact places.
    Rollback,
    /// Finish or undo a change that was cut short.
    Recover,
    /// Show what was changed on this machine, newest last.
    History,
    /// Walk the driver and print a transcript that can be sent in.
    #[command(after_help = "\
Examples:
  slicewright host selftest                      reads only
  slicewright host selftest --mutate --gpu 3     also creates and destroys every profile at every
                                                 place of idle GPU 3, and puts it back
  slicewright host selftest --mutate --gpu 0 --sim 1xH100-80GB-SXM

Exit code 0: all checks passed; 1: some did not.")]
    Selftest(SelftestArgs),
}

/// What is wanted, as `nvidia-mig-parted` takes it, or as a layout.
#[derive(Clone, Debug, Args)]
pub struct WishArgs {
    /// Configuration file in NVIDIA's format, bare or in a ConfigMap; - is standard input. Without
    /// it -c chooses among the configurations of `host generate-config`
    /// [env: MIG_PARTED_CONFIG_FILE].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub config_file: Option<String>,
    /// Name of the configuration; not needed if the file has only one
    /// [env: MIG_PARTED_SELECTED_CONFIG].
    #[arg(short = 'c', long, value_name = "NAME")]
    pub selected_config: Option<String>,
    /// A layout instead: profiles with counts such as "3g.40gb,2x1g.10gb"; `empty` is MIG on
    /// without instances, `off` is MIG off.
    #[arg(long, value_name = "LAYOUT", conflicts_with_all = ["config_file", "selected_config"])]
    pub layout: Option<String>,
    /// GPUs that get the layout, by index or UUID [default: all with MIG].
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "layout")]
    pub gpu: Vec<String>,
    /// Change the MIG mode only [env: MIG_PARTED_MODE_CHANGE_ONLY].
    #[arg(short, long)]
    pub mode_only: bool,
    /// Reset no GPU: a mode change that needs a reset stays pending [env: MIG_PARTED_SKIP_RESET].
    #[arg(short, long)]
    pub skip_reset: bool,
}

/// Arguments of `host plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What is wanted.
    #[command(flatten)]
    pub wish: WishArgs,
}

/// Arguments of `host apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// What is wanted.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Commands to run before and after, in mig-parted's format [env: MIG_PARTED_HOOKS_FILE].
    #[arg(short = 'k', long, value_name = "FILE")]
    pub hooks_file: Option<PathBuf>,
    /// Show what the hooks print [env: MIG_PARTED_DEBUG].
    #[arg(short, long)]
    pub debug: bool,
    /// Only plan.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `host assert`.
#[derive(Debug, Args)]
pub struct AssertArgs {
    /// What should be.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Only check that the file is valid and has the configuration.
    #[arg(short = 'a', long, conflicts_with = "layout")]
    pub valid_config: bool,
}

/// Arguments of `host generate-config`.
#[derive(Debug, Args)]
pub struct GenerateArgs {
    /// Write to this file instead of standard output [env: MIG_PARTED_OUTPUT_FILE].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
}

/// Arguments of `host export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// Write to this file instead of standard output [env: MIG_PARTED_OUTPUT_FILE].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub output_file: Option<PathBuf>,
    /// Name of the configuration [env: MIG_PARTED_CONFIG_LABEL] [default: current].
    #[arg(short = 'l', long, value_name = "NAME")]
    pub config_label: Option<String>,
}

/// Arguments of `host checkpoint`.
#[derive(Debug, Args)]
pub struct CheckpointArgs {
    /// File to write [env: MIG_PARTED_CHECKPOINT_FILE] [default: standard output].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub checkpoint_file: Option<PathBuf>,
}

/// Arguments of `host restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// File that `host checkpoint` or `nvidia-mig-parted checkpoint` wrote; - is standard input
    /// [env: MIG_PARTED_CHECKPOINT_FILE].
    #[arg(short = 'f', long, value_name = "FILE")]
    pub checkpoint_file: Option<String>,
    /// Restore the MIG modes only [env: MIG_PARTED_MODE_CHANGE_ONLY].
    #[arg(short, long)]
    pub mode_only: bool,
    /// Commands to run before and after, in mig-parted's format [env: MIG_PARTED_HOOKS_FILE].
    #[arg(short = 'k', long, value_name = "FILE")]
    pub hooks_file: Option<PathBuf>,
    /// Show what the hooks print [env: MIG_PARTED_DEBUG].
    #[arg(short, long)]
    pub debug: bool,
    /// Only plan.
    #[arg(long)]
    pub dry_run: bool,
}

/// Arguments of `host selftest`.
#[derive(Debug, Args)]
pub struct SelftestArgs {
    /// Also create and destroy every profile at every place of the GPU, which must be idle and in
    /// MIG mode, and put everything back.
    #[arg(long, requires = "gpu")]
    pub mutate: bool,
    /// GPU to look at, by index or UUID [default: all].
    #[arg(long, value_name = "GPU")]
    pub gpu: Option<String>,
}
