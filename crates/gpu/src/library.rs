// SPDX-License-Identifier: Apache-2.0
//! The driver's own library, loaded at run time.

use std::path::Path;

use crate::error::Error;
use crate::nvml_functions;
use crate::sys::*;
use crate::table::Functions;

/// What the driver's library is called. The version is part of the name: the unversioned one comes
/// only with development packages.
pub const LIBRARY_NAME: &str = "libnvidia-ml.so.1";

macro_rules! library {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        #[derive(Clone, Copy)]
        #[allow(non_snake_case)]
        struct Symbols {
            $($name: Option<unsafe extern "C" fn($($kind),*) -> nvmlReturn_t>,)*
        }

        impl Symbols {
            fn of(library: &libloading::Library) -> Self {
                Self {
                    $(
                        // SAFETY: the type is the signature that `nvml.h` gives this symbol, and
                        // `Library` keeps the library loaded for as long as the symbols live.
                        $name: unsafe { library.get(concat!(stringify!($name), "\0").as_bytes()) }
                            .ok()
                            .map(|symbol| *symbol),
                    )*
                }
            }
        }

        #[allow(non_snake_case)]
        impl Functions for Library {
            $(
                unsafe fn $name(&self, $($argument: $kind),*) -> nvmlReturn_t {
                    match self.symbols.$name {
                        // SAFETY: the caller keeps the contract of `Functions`, which is the
                        // function's own.
                        Some(function) => unsafe { function($($argument),*) },
                        None => nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND,
                    }
                }
            )*
        }
    };
}

nvml_functions!(library);

/// NVML as the driver installed it. Symbols that its version lacks are tolerated: calling one
/// answers `NVML_ERROR_FUNCTION_NOT_FOUND`.
pub struct Library {
    symbols: Symbols,
    _loaded: libloading::Library,
}

impl Library {
    /// Loads the library, by [`LIBRARY_NAME`] from where the dynamic linker looks or from a path.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if it is not there or cannot be loaded.
    pub fn load(path: Option<&Path>) -> Result<Self, Error> {
        let name = path.unwrap_or(Path::new(LIBRARY_NAME));
        // SAFETY: loading runs the library's initialisers. It is the driver's library, or the one
        // that the caller names, and is trusted like the rest of the driver.
        let loaded =
            unsafe { libloading::Library::new(name) }.map_err(|error| Error::NoDriver {
                reason: format!("cannot load {}: {error}", name.display()),
            })?;
        Ok(Self {
            symbols: Symbols::of(&loaded),
            _loaded: loaded,
        })
    }
}
