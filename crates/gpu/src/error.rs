// SPDX-License-Identifier: Apache-2.0
//! What a driver can answer instead of doing as asked.

use std::fmt;

use units::GpuUuid;

/// NVML's return code, as a number so that unknown ones survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NvmlCode(pub u32);

impl NvmlCode {
    /// An argument means nothing to the driver.
    pub const INVALID_ARGUMENT: Self = Self(2);
    /// The driver or this GPU does not do that.
    pub const NOT_SUPPORTED: Self = Self(3);
    /// The process lacks a right.
    pub const NO_PERMISSION: Self = Self(4);
    /// There is no such object.
    pub const NOT_FOUND: Self = Self(6);
    /// A buffer is too small.
    pub const INSUFFICIENT_SIZE: Self = Self(7);
    /// The driver is not loaded.
    pub const DRIVER_NOT_LOADED: Self = Self(9);
    /// Nothing happened within the time given.
    pub const TIMEOUT: Self = Self(10);
    /// The library cannot be loaded.
    pub const LIBRARY_NOT_FOUND: Self = Self(12);
    /// The library lacks the function.
    pub const FUNCTION_NOT_FOUND: Self = Self(13);
    /// The GPU fell off the bus.
    pub const GPU_IS_LOST: Self = Self(15);
    /// The GPU must be reset first.
    pub const RESET_REQUIRED: Self = Self(16);
    /// The library and the kernel module are of different versions.
    pub const VERSION_MISMATCH: Self = Self(18);
    /// Something uses it.
    pub const IN_USE: Self = Self(19);
    /// No room for the instance.
    pub const INSUFFICIENT_RESOURCES: Self = Self(23);
    /// A struct is of a version that the driver does not know.
    pub const ARGUMENT_VERSION_MISMATCH: Self = Self(25);
    /// Anything else.
    pub const UNKNOWN: Self = Self(999);
}

/// The name in `nvml.h` without its prefix, and the number.
impl fmt::Display for NvmlCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.0 {
            0 => "SUCCESS",
            1 => "UNINITIALIZED",
            2 => "INVALID_ARGUMENT",
            3 => "NOT_SUPPORTED",
            4 => "NO_PERMISSION",
            5 => "ALREADY_INITIALIZED",
            6 => "NOT_FOUND",
            7 => "INSUFFICIENT_SIZE",
            8 => "INSUFFICIENT_POWER",
            9 => "DRIVER_NOT_LOADED",
            10 => "TIMEOUT",
            11 => "IRQ_ISSUE",
            12 => "LIBRARY_NOT_FOUND",
            13 => "FUNCTION_NOT_FOUND",
            14 => "CORRUPTED_INFOROM",
            15 => "GPU_IS_LOST",
            16 => "RESET_REQUIRED",
            17 => "OPERATING_SYSTEM",
            18 => "LIB_RM_VERSION_MISMATCH",
            19 => "IN_USE",
            20 => "MEMORY",
            21 => "NO_DATA",
            22 => "VGPU_ECC_NOT_SUPPORTED",
            23 => "INSUFFICIENT_RESOURCES",
            24 => "FREQ_NOT_SUPPORTED",
            25 => "ARGUMENT_VERSION_MISMATCH",
            26 => "DEPRECATED",
            27 => "NOT_READY",
            28 => "GPU_NOT_FOUND",
            29 => "INVALID_STATE",
            30 => "RESET_TYPE_NOT_SUPPORTED",
            _ => "UNKNOWN",
        };
        write!(f, "{name} ({})", self.0)
    }
}

/// A failed operation on the driver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The driver's library cannot be loaded or initialised.
    #[error("no NVIDIA driver: {reason}")]
    NoDriver {
        /// What was tried and what came back.
        reason: String,
    },
    /// An NVML call failed.
    #[error("{operation}{} failed: NVML answered {code}", on(gpu.as_ref()))]
    Call {
        /// What was attempted, in words: `create GPU instance 1g.10gb at 0:1`.
        operation: String,
        /// On which GPU.
        gpu: Option<GpuUuid>,
        /// NVML's code.
        code: NvmlCode,
    },
    /// A reset did not succeed.
    #[error("reset of {} failed: {reason}", list(gpus))]
    Reset {
        /// Which GPUs.
        gpus: Vec<GpuUuid>,
        /// What the tool said.
        reason: String,
    },
    /// The driver answered something that makes no sense.
    #[error("{operation}: {reason}")]
    Nonsense {
        /// What was attempted.
        operation: String,
        /// What is wrong with the answer.
        reason: String,
    },
}

impl Error {
    /// NVML's code, where there is one.
    pub fn nvml(&self) -> Option<NvmlCode> {
        match self {
            Self::Call { code, .. } => Some(*code),
            _ => None,
        }
    }
}

fn on(gpu: Option<&GpuUuid>) -> String {
    gpu.map(|gpu| format!(" on {gpu}")).unwrap_or_default()
}

fn list(gpus: &[GpuUuid]) -> String {
    gpus.iter()
        .map(GpuUuid::as_str)
        .collect::<Vec<_>>()
        .join(", ")
}
