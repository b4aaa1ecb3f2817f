// SPDX-License-Identifier: Apache-2.0
//! Why a command did not do all that it should.

use std::fmt;

use gpu::NvmlCode;

/// What went wrong.
#[derive(Debug)]
pub enum Failure {
    /// The command line is wrong.
    Usage(String),
    /// NVML cannot be reached or answered with an error to a question.
    Driver(gpu::Error),
    /// NVML refused one of the acts; what was done before stays.
    Refused {
        /// What it was, as the original says it.
        what: String,
        /// NVML's code.
        code: NvmlCode,
    },
    /// Said already; this status remains.
    Said(u8),
    /// The output is gone.
    Output,
}

/// NVML's words for a code.
pub fn words(code: NvmlCode) -> &'static str {
    nvmlsim::code::text(code)
}

impl Failure {
    /// The exit status: NVML's code where there is one, as the original.
    pub fn status(&self) -> u8 {
        let of = |code: NvmlCode| u8::try_from(code.0).unwrap_or(u8::MAX);
        match self {
            Self::Usage(_) => 2,
            Self::Driver(gpu::Error::NoDriver { .. }) => 9,
            Self::Driver(error) => error.nvml().map_or(1, of),
            Self::Refused { code, .. } => of(*code),
            Self::Said(status) => *status,
            Self::Output => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(text) => f.write_str(text),
            Self::Driver(gpu::Error::NoDriver { reason }) => write!(
                f,
                "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. \
                 Make sure that the latest NVIDIA driver is installed and running.\n({reason})"
            ),
            Self::Driver(error) => write!(f, "{error}"),
            Self::Refused { what, code } => write!(f, "{what}: {}", words(*code)),
            Self::Said(_) | Self::Output => Ok(()),
        }
    }
}

impl From<gpu::Error> for Failure {
    fn from(error: gpu::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(_: std::io::Error) -> Self {
        Self::Output
    }
}
