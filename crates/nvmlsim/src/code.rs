// SPDX-License-Identifier: Apache-2.0
//! NVML's return codes that the simulator answers with (source: nvml.h).

use std::ffi::CStr;

use gpu::NvmlCode;

/// What a simulated call comes back with.
pub type Answer<T> = Result<T, NvmlCode>;

/// The call worked.
pub const SUCCESS: NvmlCode = NvmlCode(0);
/// `nvmlInit` was not called.
pub const UNINITIALIZED: NvmlCode = NvmlCode(1);
/// An argument is null, out of range or a stale handle.
pub const INVALID_ARGUMENT: NvmlCode = NvmlCode::INVALID_ARGUMENT;
/// This device cannot do that.
pub const NOT_SUPPORTED: NvmlCode = NvmlCode::NOT_SUPPORTED;
/// There is no such object.
pub const NOT_FOUND: NvmlCode = NvmlCode::NOT_FOUND;
/// The caller's array is too small.
pub const INSUFFICIENT_SIZE: NvmlCode = NvmlCode::INSUFFICIENT_SIZE;
/// There is no readable world.
pub const DRIVER_NOT_LOADED: NvmlCode = NvmlCode::DRIVER_NOT_LOADED;
/// Nothing happened in time.
pub const TIMEOUT: NvmlCode = NvmlCode::TIMEOUT;
/// The GPU fell off the bus.
pub const GPU_IS_LOST: NvmlCode = NvmlCode::GPU_IS_LOST;
/// The mode waits for a reset.
pub const RESET_REQUIRED: NvmlCode = NvmlCode::RESET_REQUIRED;
/// Something uses it.
pub const IN_USE: NvmlCode = NvmlCode::IN_USE;
/// No room for the instance.
pub const INSUFFICIENT_RESOURCES: NvmlCode = NvmlCode::INSUFFICIENT_RESOURCES;
/// A struct's version is not one that is served.
pub const ARGUMENT_VERSION_MISMATCH: NvmlCode = NvmlCode::ARGUMENT_VERSION_MISMATCH;
/// Anything else.
pub const UNKNOWN: NvmlCode = NvmlCode::UNKNOWN;

/// What NVML says of a code, by number from 0.
const TEXTS: [&CStr; 31] = [
    c"Success",
    c"Uninitialized",
    c"Invalid Argument",
    c"Not Supported",
    c"Insufficient Permissions",
    c"Already Initialized",
    c"Not Found",
    c"Insufficient Size",
    c"Insufficient External Power",
    c"Driver Not Loaded",
    c"Timeout",
    c"Interrupt Request Issue",
    c"NVML Shared Library Not Found",
    c"Function Not Found",
    c"Corrupted infoROM",
    c"GPU is lost",
    c"GPU requires reset",
    c"The operating system has blocked the request.",
    c"Driver/library version mismatch",
    c"In use by another client",
    c"Insufficient Memory",
    c"No data",
    c"vGPU is not available with ECC",
    c"Insufficient Resources",
    c"Frequency not supported",
    c"Argument version mismatch",
    c"Deprecated",
    c"Not Ready",
    c"GPU not found",
    c"Invalid state",
    c"Reset type not supported",
];

/// What NVML says of a code, as `nvmlErrorString` answers it.
pub(crate) fn c_text(code: u32) -> &'static CStr {
    TEXTS
        .get(code as usize)
        .copied()
        .unwrap_or(c"Unknown Error")
}

/// What NVML says of a code: `In use by another client`.
pub fn text(code: NvmlCode) -> &'static str {
    c_text(code.0).to_str().unwrap_or_default()
}
