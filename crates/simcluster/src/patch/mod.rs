// SPDX-License-Identifier: Apache-2.0
//! How a write changes an object, by the rules of the real API server. Pure functions over JSON.
//!
//! [`json`], [`merge`] and [`strategic`] change an object, and [`record_update`] notes who did; with
//! [`apply`] both are one. What lists and maps are of a kind is in its [`MergeKeys`].

mod apply;
mod json;
mod keys;
mod kubectl;
mod managed;
mod set;
mod strategic;
mod typed;

pub use apply::{ApplyError, Cause, Manager, apply, record_update};
pub use json::{json, merge};
pub use keys::MergeKeys;
pub use strategic::strategic;

/// Why a patch does not change an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch: the API server answers 400, `BadRequest`, in these words.
    #[error("{0}")]
    Malformed(String),
    /// It does not go with this object: 422, `Invalid`, always in the same words.
    #[error("the server rejected our request due to an error in our request")]
    Refused,
    /// What it asks for makes no sense; the real API server answers 500.
    #[error("{0}")]
    Failed(String),
}
