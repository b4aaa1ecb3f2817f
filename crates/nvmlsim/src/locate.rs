// SPDX-License-Identifier: Apache-2.0
//! Where the world of this process is.
//!
//! `NVMLSIM_WORLD` names it. Without the variable it is taken to be part of a simulated driver
//! installation, in the folder that stands where the socket of NVIDIA's persistence daemon would
//! be: container runtimes bring that socket, writable, into every container that gets a GPU, so the
//! world is there wherever the library is.

use std::ffi::CStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The environment variable that names the world's file.
pub const WORLD_VARIABLE: &str = "NVMLSIM_WORLD";
/// The world's file below the root of a driver installation.
pub const INSTALLED_WORLD: &str = "run/nvidia-persistenced/socket/world.json";

/// The world's file for this process; `None` if nothing names one.
pub fn world_file() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(WORLD_VARIABLE) {
        return Some(path.into());
    }
    let root = own_path().map_or_else(|| PathBuf::from("/"), |path| root_of(&path));
    Some(root.join(INSTALLED_WORLD)).filter(|path| path.exists())
}

/// The root of the installation that a library at this path is of: all before `usr` or `lib...`.
fn root_of(library: &Path) -> PathBuf {
    let is_library_folder = |name: &[u8]| name == b"usr" || name.starts_with(b"lib");
    let above = library.components();
    above
        .take_while(|part| !is_library_folder(part.as_os_str().as_bytes()))
        .collect()
}

/// Where the library or program with this code was loaded from.
fn own_path() -> Option<PathBuf> {
    let here = own_path as *const () as *const libc::c_void;
    // SAFETY: all zero is a valid `Dl_info`, whose fields are pointers.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the out parameter is a live local.
    let found = unsafe { libc::dladdr(here, &raw mut about) };
    if found == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: on success it is a text of the dynamic linker that lives as long as this code.
    let name = unsafe { CStr::from_ptr(about.dli_fname) };
    let path = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
    path.is_absolute().then(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_is_what_comes_before_the_library_folder() {
        for (library, root) in [
            ("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "/"),
            ("/driver-root/usr/lib64/libnvidia-ml.so.1", "/driver-root"),
            (
                "/run/nvidia/driver/lib64/libnvidia-ml.so.1",
                "/run/nvidia/driver",
            ),
        ] {
            assert_eq!(root_of(Path::new(library)), Path::new(root));
        }
    }
}
