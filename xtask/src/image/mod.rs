// SPDX-License-Identifier: Apache-2.0
//! Container images without a registry and without a builder: an OCI layout in a tar archive, which
//! `ctr images import` and others read. The same files give the same bytes.

mod build;
mod tar;

use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::Error;

pub use build::{
    BUSYBOX, DRIVER, KUBECTL, SLICEWRIGHT, VALIDATION, busybox, debian, driver_container, kubectl,
    program, run, slicewright, unpack, validation,
};
pub use tar::{Entry, Tree};

/// An image: files, and how a container of it starts.
pub struct Image {
    /// Its full name, with a tag.
    pub name: &'static str,
    /// What it has on disk.
    pub files: Tree,
    /// Program and arguments that a container runs where nothing else is said.
    pub command: Vec<String>,
}

impl Image {
    /// Writes the image to a file and returns the digest of its manifest.
    ///
    /// # Errors
    /// If a path in it is too long, or the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<String, Error> {
        let (bytes, digest) = self.layout().ok_or_else(|| {
            let name = self.name;
            Error::Image(format!("{name}: a path is longer than a tar archive holds"))
        })?;
        let folder = path.parent().unwrap_or(path);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(path, bytes))
            .map_err(|source| Error::Write {
                path: path.to_owned(),
                source,
            })?;
        Ok(digest)
    }

    /// The archive, and the digest of the manifest in it.
    fn layout(&self) -> Option<(Vec<u8>, String)> {
        let layer = tar::archive(&self.files)?;
        let config = json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Cmd": self.command,
                "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
                "WorkingDir": "/",
            },
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        let config = config.to_string().into_bytes();
        let kind = |kind: &str| format!("application/vnd.oci.image.{kind}");
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": kind("manifest.v1+json"),
            "config": descriptor(&kind("config.v1+json"), &config),
            "layers": [descriptor(&kind("layer.v1.tar"), &layer)],
        });
        let manifest = manifest.to_string().into_bytes();
        let mut entry = descriptor(&kind("manifest.v1+json"), &manifest);
        entry["annotations"] = json!({
            "io.containerd.image.name": self.name,
            "org.opencontainers.image.ref.name": self.name.rsplit(':').next(),
        });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": kind("index.v1+json"),
            "manifests": [entry],
        });
        let version = json!({ "imageLayoutVersion": "1.0.0" });
        let name = digest(&manifest);
        let mut files = Tree::new();
        for blob in [layer, config, manifest] {
            let path = format!("blobs/{}", digest(&blob).replace(':', "/"));
            files.insert(path, Entry::File(0o644, blob));
        }
        for (path, value) in [("index.json", index), ("oci-layout", version)] {
            let text = value.to_string().into_bytes();
            files.insert(path.to_owned(), Entry::File(0o644, text));
        }
        Some((tar::archive(&files)?, name))
    }
}

fn descriptor(kind: &str, blob: &[u8]) -> Value {
    json!({ "mediaType": kind, "digest": digest(blob), "size": blob.len() })
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex(&Sha256::digest(bytes)))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// This machine's architecture in the words of Go, which image configs use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

#[cfg(test)]
mod tests;
