// SPDX-License-Identifier: Apache-2.0
//! What NVML calls its codes in words.

use std::ffi::CStr;

use gpu::sys::{c_char, nvmlReturn_t};

/// By code, from 0.
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

/// The text of a code.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    let text = TEXTS.get(result as usize).copied();
    text.unwrap_or(c"Unknown Error").as_ptr()
}
