// SPDX-License-Identifier: Apache-2.0
//! What Slicewright has in common with the API server: the names of labels and annotations, its own
//! kinds, and ClusterPolicy as far as it is read.
//!
//! Plain data and conversions. This crate speaks to no API server.

#![forbid(unsafe_code)]

mod cluster_policy;
mod gpu_node;
pub mod names;

pub use cluster_policy::{ClusterPolicySpec, cluster_policy, cluster_policy_crd, is_managed_by_us};
pub use gpu_node::{
    Condition, Finding, GpuNode, GpuNodeSpec, GpuNodeStatus, GpuStatus, MigConfigStatus,
    ResourceStatus, SliceStatus, gpu_node_crd,
};
