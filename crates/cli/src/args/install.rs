// SPDX-License-Identifier: Apache-2.0
//! Arguments of `slicewright install`.

use clap::{Args, Subcommand, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  slicewright install --image registry.example/slicewright:0.1.0 | kubectl apply -f -
  slicewright install --compat          names that existing scripts for GPU Operator look for
  slicewright install --gpu-operator    beside GPU Operator: its ClusterPolicy is left alone

Nothing is changed by this command: it prints. A job in what it prints creates ClusterPolicy.";

/// What is to be installed, and where.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub struct InstallArgs {
    /// Something else than to print.
    #[command(subcommand)]
    pub verb: Option<InstallVerb>,
    /// Namespace [default: slicewright; with --compat or --gpu-operator: gpu-operator].
    #[arg(short, long, value_name = "NAME")]
    pub namespace: Option<String>,
    /// Image of Slicewright.
    #[arg(
        long,
        value_name = "IMAGE",
        default_value = "slicewright.dev/slicewright:dev"
    )]
    pub image: String,
    /// When the image is fetched.
    #[arg(
        long,
        value_enum,
        value_name = "POLICY",
        default_value = "if-not-present"
    )]
    pub pull_policy: PullPolicy,
    /// Where the driver is installed on the nodes: / or, with the driver's container,
    /// /run/nvidia/driver.
    #[arg(long, value_name = "DIR", default_value = "/run/nvidia/driver")]
    pub driver_root: String,
    /// The container toolkit's nvidia-cdi-hook on the nodes; empty: containers get no hooks.
    #[arg(
        long,
        value_name = "PATH",
        default_value = "/usr/local/nvidia/toolkit/nvidia-cdi-hook"
    )]
    pub cdi_hook_path: String,
    /// Strategy of the ClusterPolicy.
    #[arg(long, value_name = "STRATEGY", default_value = "single",
          value_parser = ["none", "single", "mixed"])]
    pub strategy: String,
    /// Only on nodes with this label; may be repeated.
    #[arg(long, value_name = "KEY=VALUE")]
    pub node_selector: Vec<String>,
    /// Name things as scripts for GPU Operator look for them.
    #[arg(long)]
    pub compat: bool,
    /// GPU Operator is installed: nothing is there for its ClusterPolicy.
    #[arg(long)]
    pub gpu_operator: bool,
}

/// What the job of an installation does.
#[derive(Debug, Subcommand)]
pub enum InstallVerb {
    /// Create the kind ClusterPolicy and an object of it, if there is no such kind; never change one.
    ClusterPolicy {
        /// Strategy of the ClusterPolicy.
        #[arg(long, value_name = "STRATEGY", default_value = "single",
              value_parser = ["none", "single", "mixed"])]
        strategy: String,
    },
}

/// When an image is fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PullPolicy {
    /// If the node does not have it.
    IfNotPresent,
    /// Always.
    Always,
    /// Never: it is on the node.
    Never,
}
