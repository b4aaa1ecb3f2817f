// SPDX-License-Identifier: Apache-2.0
//! How a write changes an object, by the rules of the real API server. Pure functions over JSON.

mod json;

pub use json::{json, merge};

/// Why a patch does not change an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no patch: the API server answers 400, `BadRequest`, in these words.
    #[error("{0}")]
    Malformed(String),
    /// It does not go with this object: 422, `Invalid`, always in the same words.
    #[error("the server rejected our request due to an error in our request")]
    Refused,
}
