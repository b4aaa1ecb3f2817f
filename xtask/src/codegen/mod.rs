// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask codegen`: code that is written by a program, and committed.

mod boards;
mod wire;

use std::path::{Path, PathBuf};

pub use wire::descriptors;

/// Writes all generated code.
///
/// # Errors
/// A sentence if a source cannot be read or does not have the expected form.
pub fn run() -> Result<(), String> {
    for (file, text) in generated()? {
        let to = path(&file);
        std::fs::write(&to, text).map_err(|error| format!("{}: {error}", to.display()))?;
        println!("wrote {}", file.display());
    }
    Ok(())
}

/// Generated files, by their path in the repository, and their text.
fn generated() -> Result<Vec<(PathBuf, String)>, String> {
    let mut files = boards::generated()?;
    files.extend(wire::generated()?);
    Ok(files)
}

fn path(relative: impl AsRef<Path>) -> PathBuf {
    crate::root().join(relative)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_code_is_that_of_its_sources() {
        for (file, text) in generated().unwrap() {
            let there = std::fs::read_to_string(path(&file)).unwrap();
            let file = file.display();
            assert!(there == text, "{file} is stale: run `cargo xtask codegen`");
        }
    }
}
