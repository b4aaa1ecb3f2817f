// SPDX-License-Identifier: Apache-2.0
//! Names the shared library as the driver's, and writes the functions that are not served.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs, io};

const NAMES: &str = "nvml-functions.txt";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={NAMES}");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libnvidia-ml.so.1");
    let names = fs::read_to_string(NAMES)?;
    let lines = names.lines().filter(|line| !line.starts_with('#'));
    let mut source = String::new();
    for name in lines.filter(|line| !line.ends_with(" served")) {
        // Callers pass arguments as the header says; a function without parameters ignores them.
        let written = writeln!(
            source,
            "/// Not served.\n#[unsafe(no_mangle)]\npub extern \"C\" fn {name}() -> nvmlReturn_t {{ not_served() }}"
        );
        written.map_err(io::Error::other)?;
    }
    let folder = env::var("OUT_DIR").map_err(io::Error::other)?;
    fs::write(Path::new(&folder).join("not_served.rs"), source)
}
