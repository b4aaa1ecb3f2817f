// SPDX-License-Identifier: Apache-2.0
//! NVML's C ABI: what the shared library exports.
//!
//! The world is the file that [`world_file`] finds when NVML is initialised. A function that panics answers `UNKNOWN`; the caller never goes down with it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError, RwLock};

use gpu::Functions;
use gpu::sys::*;

use crate::code::{Answer, DRIVER_NOT_LOADED, UNINITIALIZED, c_text};
use crate::handle::Handle;
use crate::locate::{WORLD_VARIABLE, world_file};
use crate::simulated::Simulated;

static OPENED: RwLock<Option<Arc<Simulated>>> = RwLock::new(None);

/// NVML of this process; opened by the first of the calls that initialise.
fn opened(function: &str) -> Answer<Arc<Simulated>> {
    let lock = OPENED.read().unwrap_or_else(PoisonError::into_inner);
    let usable = lock
        .as_ref()
        .filter(|sim| sim.is_open() || !function.starts_with("nvmlInit"));
    if let Some(simulated) = usable {
        return Ok(simulated.clone());
    }
    drop(lock);
    if !function.starts_with("nvmlInit") {
        return Err(UNINITIALIZED);
    }
    let mut lock = OPENED.write().unwrap_or_else(PoisonError::into_inner);
    let simulated = Arc::new(Simulated::new(open()?));
    *lock = Some(simulated.clone());
    Ok(simulated)
}

/// Opens the world; says on standard error why not, since NVML has no code for it.
fn open() -> Answer<Handle> {
    let Some(path) = world_file() else {
        eprintln!("nvmlsim: {WORLD_VARIABLE} does not name a world");
        return Err(DRIVER_NOT_LOADED);
    };
    Handle::open(&path).map_err(|error| {
        eprintln!("nvmlsim: {error}");
        DRIVER_NOT_LOADED
    })
}

/// Runs the body; a panic in it is an answer.
fn guarded(body: impl FnOnce() -> nvmlReturn_t) -> nvmlReturn_t {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(nvmlReturn_enum_NVML_ERROR_UNKNOWN)
}

macro_rules! exports {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "` of `nvml.h`.")]
            ///
            /// # Safety
            /// As `nvml.h` says.
            #[unsafe(no_mangle)]
            #[allow(non_snake_case)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> nvmlReturn_t {
                guarded(|| match opened(stringify!($name)) {
                    // SAFETY: the caller keeps the contract of `nvml.h`, which is that of
                    // `Functions`.
                    Ok(simulated) => unsafe { Functions::$name(&*simulated, $($argument),*) },
                    Err(code) => code.0,
                })
            }
        )*
    };
}
gpu::nvml_functions!(exports);

/// What NVML says of a code.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    c_text(result).as_ptr()
}

fn not_served() -> nvmlReturn_t {
    let opened = OPENED.read().unwrap_or_else(PoisonError::into_inner);
    match opened.as_ref().is_some_and(|simulated| simulated.is_open()) {
        true => nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED,
        false => nvmlReturn_enum_NVML_ERROR_UNINITIALIZED,
    }
}

#[allow(non_snake_case)]
mod rest {
    use super::{not_served, nvmlReturn_t};
    include!(concat!(env!("OUT_DIR"), "/not_served.rs"));
}
