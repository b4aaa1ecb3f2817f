// SPDX-License-Identifier: Apache-2.0
//! What machine to simulate, as text: `8xH100-80GB-SXM,1xT4`.

use std::fmt;
use std::str::FromStr;

use geometry::Board;
use units::Code;

use super::catalogue;

/// The most GPUs that a world can have: NVIDIA's table of device minors ends there.
pub const MOST_GPUS: usize = 32;

/// GPUs of a machine to simulate, by index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The board of each GPU, and whether it is mirrored.
    pub(super) gpus: Vec<(&'static Board, bool)>,
}

/// Why a text describes no machine that can be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Not of the form.
    #[error(
        "{text:?} describes no GPUs: write a count and a board, such as 8xH100-80GB-SXM, several \
         with a comma between (boards: {})",
        keys()
    )]
    Form {
        /// The part that is wrong.
        text: String,
    },
    /// There is no such board.
    #[error("there is no board {key:?}; known are {}", keys())]
    NoBoard {
        /// The key found.
        key: String,
    },
    /// The board cannot be simulated.
    #[error("{key} cannot be simulated: {reason}")]
    BoardUnknown {
        /// The board's key.
        key: String,
        /// What is not known of it.
        reason: String,
    },
    /// Not a driver version.
    #[error("{text:?} is not a driver version: it should look like 580.95.05")]
    DriverVersion {
        /// The text found.
        text: String,
    },
    /// More than fit.
    #[error("{count} GPUs are too many: a machine can have {MOST_GPUS}")]
    TooMany {
        /// How many were asked for.
        count: usize,
    },
}

impl SpecError {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            Self::BoardUnknown { .. } => Code::BoardUnknown,
            _ => Code::SimInvalid,
        }
    }
}

/// Boards that can be simulated.
fn keys() -> String {
    let usable = catalogue().values().filter(|board| board.unknown.is_none());
    let keys: Vec<&str> = usable.map(|board| board.key.as_str()).collect();
    keys.join(", ")
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut gpus = Vec::new();
        for part in text.split(',').map(str::trim) {
            let form = || SpecError::Form {
                text: part.to_owned(),
            };
            let (count, key) = part.split_once('x').ok_or_else(form)?;
            let count: usize = count
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(form)?;
            let (key, mirrored) = match key.strip_suffix(":mirrored") {
                Some(key) => (key, true),
                None => (key, false),
            };
            if gpus.len().saturating_add(count) > MOST_GPUS {
                return Err(SpecError::TooMany {
                    count: gpus.len().saturating_add(count),
                });
            }
            gpus.extend(std::iter::repeat_n((usable(key)?, mirrored), count));
        }
        Ok(Self { gpus })
    }
}

fn usable(key: &str) -> Result<&'static Board, SpecError> {
    let found = geometry::catalogue::find(key);
    let board = found
        .and_then(|board| catalogue().get(&board.key))
        .ok_or_else(|| SpecError::NoBoard {
            key: key.to_owned(),
        })?;
    match &board.unknown {
        None => Ok(board),
        Some(reason) => {
            let (key, reason) = (board.key.clone(), reason.clone());
            Err(SpecError::BoardUnknown { key, reason })
        }
    }
}

/// The canonical text: runs of equal GPUs together.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.gpus.chunk_by(|a, b| a.0.key == b.0.key && a.1 == b.1);
        for (at, run) in runs.enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let (board, mirrored) = run[0];
            let suffix = if mirrored { ":mirrored" } else { "" };
            write!(f, "{comma}{}x{}{suffix}", run.len(), board.key)?;
        }
        Ok(())
    }
}
