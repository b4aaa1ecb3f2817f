// SPDX-License-Identifier: Apache-2.0
//! The device plugin: what a node publishes, served to its kubelet.
//!
//! An [`Offer`] is everything that the kubelet may be told, as plain data. [`Plugins`] serves the
//! latest one: each resource on a socket of its own, registered with the kubelet again whenever
//! that is needed, and withdrawn when it goes away. Every answer comes from the offer; no driver
//! is asked. [`PodResources`] asks the kubelet who has what.
//!
//! ```text
//!   offer() ──> current list ──> streams of the kubelet        Board: what the kubelet has
//!                    │
//!                  plugin: a task a resource, looks around every second
//!                    serve ──> register ──> wait ──┬─ kubelet.sock is another ──> register
//!                      ^                           ├─ the stream was lost ──────> register
//!                      │                           ├─ own socket is gone ──> serve again
//!                      └── offered again ── close <┴─ withdrawn, and the kubelet knows
//! ```
//!
//! This crate knows the kubelet and neither the API server nor a driver.

#![forbid(unsafe_code)]

mod board;
mod error;
mod kubelet;
mod next;
mod offer;
mod plugin;
mod plugins;
mod pod_resources;
mod server;
mod service;
mod sockets;
pub mod wire;

pub use board::PluginStatus;
pub use error::Error;
pub use offer::Offer;
pub use plugins::Plugins;
pub use pod_resources::{Holding, PodResources};
pub use sockets::{Connection, Identity, Listener, Sockets};
