// SPDX-License-Identifier: Apache-2.0
//! Which objects a request means: label and field selectors, parsed and matched as the real API
//! server does, refused in its words.

mod fields;
mod labels;
mod names;

pub use fields::{Fields, Selectable};
pub use labels::Labels;
pub use names::{key_faults, value_faults};

/// Why a selector is none: the API server answers 400, `BadRequest`, in these words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(String);
