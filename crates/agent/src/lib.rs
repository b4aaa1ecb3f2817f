// SPDX-License-Identifier: Apache-2.0
//! The node agent: what MIG Manager, device plugin, GPU Feature Discovery and their config-managers
//! do, from one snapshot of the hardware.
//!
//! [`Agent`] is the loop. What it decides is in [`decide`], as pure functions; what touches the
//! world is thin: the API server ([`cluster`], [`write`]), driver and journal ([`machine`]), the
//! kubelet (crate `deviceplugin`). `docs/agent.md` tells it for people.
//!
//! It must never end because of the state of hardware, configuration, kubelet or API server.

#![forbid(unsafe_code)]

mod agent;
mod cdi_files;
mod change;
mod clients;
mod cluster;
mod cluster_policy;
pub mod decide;
mod events;
mod fence;
mod kept;
mod machine;
mod neighbours;
mod objects;
pub mod on_node;
mod process;
mod publishing;
mod reboot;
mod serve;
mod services;
mod settings;
mod status;
mod surroundings;
mod write;

pub use agent::{Agent, StartError};
pub use cdi::Hooks as CdiHooks;
pub use cluster::ConnectError;
pub use cluster_policy::{
    ClusterPolicyError, ClusterPolicyIs, create_cluster_policy, ensure_cluster_policy,
};
pub use process::{LogFormat, run};
pub use settings::{Kubernetes, Overrides, Paths, Settings};
pub use surroundings::{DriverOpener, NodePrograms, Surroundings, Workers};
