// SPDX-License-Identifier: Apache-2.0
//! What a node publishes, decided from plain data: resources and their devices, labels, and the
//! answers to the kubelet.
//!
//! A [`Node`] is one reading of the hardware with the settings in force. [`resources`] and
//! [`labels`] follow from it alone, so that they cannot disagree; [`withhold`] keeps a device that
//! is allocated under one name from being offered under another. [`allocate`] and [`preferred`]
//! answer the kubelet from what was published, without asking the driver. The names and answers are
//! those of NVIDIA's device plugin and GPU Feature Discovery; where these crash, lie or choose at
//! random, `docs/published.md` says what happens here.
//!
//! This crate is pure: no I/O, no clock, no environment, no randomness.

#![forbid(unsafe_code)]

mod allocate;
mod found;
mod hardware;
mod health;
mod label;
mod name;
mod node;
mod prefer;
mod resource;
mod share;
mod withhold;

pub use allocate::{
    AllocateFlags, Answer, CDI_VENDOR, CdiExtra, DeviceNode, IMEX_CHANNEL_0, Mount, allocate,
    cdi_name,
};
pub use hardware::{Hardware, Slice, hardware};
pub use health::{APPLICATION_XIDS, Fault, XidPolicy};
pub use label::{MODEL_PREFIX, is_ours, labels};
pub use node::{Fabric, Node, PciFunction, SliceFacts};
pub use prefer::{Ancestor, Link, Links, PreferenceRequest, preferred};
pub use resource::{Device, Resource, resources};
pub use withhold::{Allocated, device_uuid, withhold};
