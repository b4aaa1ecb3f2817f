// SPDX-License-Identifier: Apache-2.0
//! From C's ways of answering to Rust's: out parameters, text buffers, lists, versioned structs.

use crate::error::NvmlCode;
use crate::sys::*;

/// What NVML answered, before it is known what was attempted.
pub(crate) type Answer<T> = Result<T, NvmlCode>;

/// Success, or the code.
pub(crate) fn check(code: nvmlReturn_t) -> Answer<()> {
    if code == nvmlReturn_enum_NVML_SUCCESS {
        Ok(())
    } else {
        Err(NvmlCode(code))
    }
}

impl NvmlCode {
    /// Whether the GPU or this driver does not know such a thing at all.
    pub(crate) fn is_absent(self) -> bool {
        matches!(self, Self::NOT_SUPPORTED | Self::FUNCTION_NOT_FOUND)
    }
}

/// An answer that a GPU or driver may lack.
pub(crate) fn optional<T>(answer: Answer<T>) -> Answer<Option<T>> {
    match answer {
        Ok(value) => Ok(Some(value)),
        Err(code) if code.is_absent() => Ok(None),
        Err(code) => Err(code),
    }
}

/// Types of C that are valid when all their bytes are zero.
///
/// # Safety
/// The type must have no invalid bit patterns among all-zero ones: integers, pointers, and structs
/// and arrays of them.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: a null pointer is a valid pointer.
unsafe impl<T> Plain for *mut T {}

macro_rules! plain {
    ($($kind:ty),* $(,)?) => {
        // SAFETY: integers, or structs of `nvml.h` that hold integers, pointers and arrays of them.
        $(unsafe impl Plain for $kind {})*
    };
}

plain!(
    c_uint,
    c_int,
    c_ulong,
    nvmlPciInfo_t,
    nvmlMemory_t,
    nvmlMemory_v2_t,
    nvmlUtilization_t,
    nvmlDeviceAttributes_t,
    nvmlGpuFabricInfo_t,
    nvmlGpuFabricInfo_v2_t,
    nvmlGpuInstanceProfileInfo_t,
    nvmlGpuInstanceProfileInfo_v2_t,
    nvmlGpuInstanceProfileInfo_v3_t,
    nvmlGpuInstancePlacement_t,
    nvmlGpuInstanceInfo_t,
    nvmlComputeInstanceProfileInfo_t,
    nvmlComputeInstancePlacement_t,
    nvmlComputeInstanceInfo_t,
    nvmlProcessInfo_t,
    nvmlEventData_t,
);

/// The all-zero value.
pub(crate) fn zeroed<T: Plain>() -> T {
    // SAFETY: `Plain` types are valid when all their bytes are zero.
    unsafe { std::mem::zeroed() }
}

/// The version tag of a versioned struct: its size and, in the top byte, its version.
pub(crate) fn version_tag<T>(version: u32) -> c_uint {
    size_of::<T>() as c_uint | version << 24
}

/// The text in a buffer: up to the first NUL, or all of it where there is none. Bytes that are not
/// UTF-8 become replacement characters.
pub(crate) fn text(buffer: &[c_char]) -> String {
    let bytes: Vec<u8> = buffer
        .iter()
        .take_while(|byte| **byte != 0)
        .map(|byte| *byte as u8)
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many entries a list may have; more is taken for a driver gone mad.
const LIST_LIMIT: usize = 1 << 16;

/// Fills a list through a call that takes a buffer and, in and out, a count. The buffer starts with
/// room for `room` entries and grows if NVML counts more.
pub(crate) fn list<T: Plain>(
    room: usize,
    mut call: impl FnMut(*mut T, *mut c_uint) -> nvmlReturn_t,
) -> Answer<Vec<T>> {
    let mut room = room.max(1);
    while room <= LIST_LIMIT {
        let mut entries = vec![zeroed::<T>(); room];
        let mut count = room as c_uint;
        let answer = check(call(entries.as_mut_ptr(), &mut count));
        let counted = count as usize;
        match answer {
            Ok(()) if counted <= room => {
                entries.truncate(counted);
                return Ok(entries);
            }
            Ok(()) | Err(NvmlCode::INSUFFICIENT_SIZE) => room = counted.max(2 * room),
            Err(code) => return Err(code),
        }
    }
    Err(NvmlCode::INSUFFICIENT_SIZE)
}

/// Calls a function whose last argument is an out parameter, and returns what it wrote.
macro_rules! ask {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let mut answer = $crate::raw::zeroed();
        // SAFETY: handles come from these functions within the same session, and the out
        // parameter is a live local of the very type that the signature names.
        let code = unsafe { $functions.$name($($argument,)* &mut answer) };
        $crate::raw::check(code).map(|()| answer)
    }};
}

/// Calls a function whose last arguments are a text buffer and its length, and returns the text.
macro_rules! ask_text {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let mut buffer = [0; 256];
        // SAFETY: handles come from these functions within the same session, and the length given
        // is that of the live local buffer.
        let code = unsafe {
            $functions.$name($($argument,)* buffer.as_mut_ptr(), buffer.len() as c_uint)
        };
        $crate::raw::check(code).map(|()| $crate::raw::text(&buffer))
    }};
}

/// Calls a function whose last arguments are a list and its count, and returns the list.
macro_rules! ask_list {
    ($room:expr, $functions:expr, $name:ident($($argument:expr),*)) => {
        $crate::raw::list($room, |entries, count| {
            // SAFETY: handles come from these functions within the same session; `list` gives a
            // buffer of `count` entries, at least as many as asked for.
            unsafe { $functions.$name($($argument,)* entries, count) }
        })
    };
}

/// The same for functions that say how many there are when the list is null, and then write all.
macro_rules! ask_counted_list {
    ($functions:expr, $name:ident($($argument:expr),*)) => {{
        let mut count = 0;
        // SAFETY: handles come from these functions within the same session; a null list asks for
        // the count, which is a live local.
        let code = unsafe { $functions.$name($($argument,)* std::ptr::null_mut(), &mut count) };
        $crate::raw::check(code).and_then(|()| match count {
            0 => Ok(Vec::new()),
            count => $crate::raw::ask_list!(
                count as usize,
                $functions,
                $name($($argument),*)
            ),
        })
    }};
}

pub(crate) use {ask, ask_counted_list, ask_list, ask_text};
