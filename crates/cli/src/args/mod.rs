// SPDX-License-Identifier: Apache-2.0
//! The command line as typed: verbs, flags and their help texts.
//!
//! Nothing is read or checked here beyond what clap does; each verb's module turns its arguments
//! into what it works with. Environment variables are not read here either: [`crate::Env`] has them.

mod agent;
mod host;
mod install;
mod other;

pub use agent::AgentArgs;
pub use host::{
    ApplyArgs, AssertArgs, CheckpointArgs, ExportArgs, GenerateArgs, HostArgs, HostVerb,
    RestoreArgs, SelftestArgs, WishArgs,
};
pub use install::{InstallArgs, InstallVerb, PullPolicy};
pub use other::{CheckArgs, ConfigVerb, ExplainArgs, SimVerb};

use clap::{Parser, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  Try it without a GPU, on eight simulated H100:
    slicewright host apply --sim 8xH100-80GB-SXM -f examples/mig-config.yaml -c all-balanced
  See what a change would do on this machine:
    slicewright host plan -c all-1g.10gb
  Ask what a code means:
    slicewright explain in-use

Exit codes:
  0  done, nothing to do, or valid (warnings too)
  1  a difference or finding was reported
  2  wrong usage, or something cannot be read
  3  refused: not possible or not safe; nothing was touched
  4  failed half way and put back
  5  failed and needs a person";

/// Shares NVIDIA GPUs by MIG: plans a change first, does only what is needed, and can go back.
#[derive(Debug, Parser)]
#[command(name = "slicewright", version, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    /// How to print: table, wide, json or yaml.
    #[arg(
        short,
        long,
        global = true,
        value_enum,
        help_heading = "Global options",
        value_name = "FORMAT",
        hide_possible_values = true
    )]
    pub output: Option<Format>,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// How a result is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns for people.
    Table,
    /// The same with more columns.
    Wide,
    /// Stable, versioned JSON.
    Json,
    /// The same as YAML.
    Yaml,
    /// The lines of `nvidia-smi -L` (`host list` only).
    NvidiaSmi,
}

/// The groups of commands.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Look at and change the GPUs of this machine, or of a simulated one.
    Host(HostArgs),
    /// Run the agent of a node: device plugin, labels, MIG and sharing by label.
    Agent(Box<AgentArgs>),
    /// Print the manifest that installs the agent on a cluster.
    Install(InstallArgs),
    /// Work with configuration files.
    Config {
        /// What to do with them.
        #[command(subcommand)]
        verb: ConfigVerb,
    },
    /// Make and handle simulated worlds, to try things without a GPU.
    Sim {
        /// What to do with the world.
        #[command(subcommand)]
        verb: SimVerb,
    },
    /// A program of the node that the agent runs in the node's own files.
    #[command(name = ::agent::on_node::VERB, hide = true)]
    OnNode {
        /// The program and its arguments.
        #[arg(last = true, required = true)]
        words: Vec<String>,
    },
    /// Say what a code means and what to do about it.
    Explain(ExplainArgs),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }
}
