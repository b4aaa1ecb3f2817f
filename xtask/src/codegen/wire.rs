// SPDX-License-Identifier: Apache-2.0
//! The kubelet's protocols, `crates/deviceplugin/proto`, to messages, clients and servers.

use std::path::{Path, PathBuf};

use prost_types::FileDescriptorSet;

use super::path;

const PROTO: &str = "crates/deviceplugin/proto";
const WIRE: &str = "crates/deviceplugin/src/wire";
/// A file of definitions, and the package in it.
const FILES: [(&str, &str); 2] = [("deviceplugin", "v1beta1"), ("podresources", "v1")];

/// The definitions, as a compiler of protocol buffers understands them.
///
/// # Errors
/// A sentence with the place of what it does not understand.
pub fn descriptors() -> Result<FileDescriptorSet, String> {
    let files = FILES.map(|(name, _)| format!("{name}.proto"));
    protox::compile(files, [path(PROTO)]).map_err(|error| format!("{error:?}"))
}

/// The Rust sources.
///
/// # Errors
/// A sentence if the definitions are wrong or the generator cannot write.
pub fn generated() -> Result<Vec<(PathBuf, String)>, String> {
    let failed = |error: std::io::Error| format!("{PROTO}: {error}");
    let folder = Folder::new().map_err(failed)?;
    tonic_prost_build::configure()
        .btree_map(".")
        .out_dir(&folder.0)
        .compile_fds(descriptors()?)
        .map_err(failed)?;
    let text = |(name, package): (&str, &str)| {
        let code = std::fs::read_to_string(folder.0.join(format!("{package}.rs")));
        let text = format!(
            "// SPDX-License-Identifier: Apache-2.0\n\
             //! Written by `cargo xtask codegen` from `{PROTO}/{name}.proto`; do not edit.\n\n{}",
            code.map_err(failed)?
        );
        Ok((Path::new(WIRE).join(format!("{name}.rs")), text))
    };
    FILES.into_iter().map(text).collect()
}

/// A folder for the generator, gone when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        let name = format!("slicewright-codegen-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Left behind it harms nobody.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
