// SPDX-License-Identifier: Apache-2.0
//! Why a command did not do all that it should.

use std::fmt;

use gpu::NvmlCode;

/// What `-h` prints.
const HELP: &str = "\
nvidia-smi on a simulated machine. Each may have -i with indices, UUIDs or PCI addresses.

  nvidia-smi                          GPUs, MIG devices and processes
  nvidia-smi -L                       GPUs and MIG devices, a line each
  nvidia-smi --query-gpu=FIELD[,...] --format=csv[,noheader][,nounits]
  nvidia-smi -mig 0|1                 MIG mode off or on
  nvidia-smi --gpu-reset              reset
  nvidia-smi mig -lgip | -lgipp       GPU instance profiles, and where they can sit
  nvidia-smi mig -lgi | -lci          instances
  nvidia-smi mig -cgi PROFILE[:START][,...] [-C]
  nvidia-smi mig -cci [PROFILE,...] [-gi ID,...]
  nvidia-smi mig -dci [-gi ID,...] [-ci ID,...]
  nvidia-smi mig -dgi [-gi ID,...]

NVMLSIM_WORLD names the machine's file, NVMLSIM_LIBRARY the NVML library if it is not where the
dynamic linker looks.";

/// What went wrong.
#[derive(Debug)]
pub enum Failure {
    /// Nothing: help was wanted.
    Help,
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
            Self::Help => 0,
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
            Self::Help => f.write_str(HELP),
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
