// SPDX-License-Identifier: Apache-2.0
//! A Kubernetes API server in the process, for tests and demonstrations: not for production. Nobody
//! is asked who they are, and everybody may do everything.
//!
//! ```text
//!   kube::Client      kubectl
//!        └─────┬─────────┘
//!            serve        HTTP: what is asked, in which form it is answered, streams of a watch
//!              │
//!     write ─ list        pure: what a request makes of the objects, which of them it means
//!       │      │
//!     patch  selector     pure: how objects change, and which are meant, as the real server does it
//!       └──┬───┘
//!     store, kind         objects with their history, facts about resources
//! ```
//!
//! Everything below `serve` is synchronous and takes the time as an argument, so the server runs in
//! virtual time and gives the same answers in each run. [`patch`] and [`selector`] know no resource
//! but by what they are told.

#![forbid(unsafe_code)]

mod admission;
mod convert;
mod defaults;
mod failure;
mod kind;
mod list;
mod owners;
pub mod patch;
mod quota;
mod random;
mod request;
mod schema;
pub mod selector;
mod serve;
mod state;
mod store;
mod table;
mod write;

pub use serve::{ApiServer, Clock, Settings};
