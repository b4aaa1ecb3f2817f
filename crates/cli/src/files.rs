// SPDX-License-Identifier: Apache-2.0
//! Files that a command reads and writes; `-` is a standard stream.

use std::fs;
use std::io::{Read, Take, stdin};
use std::path::Path;

use units::Code;

use crate::failure::Failure;
use crate::output::Output;

/// No configuration is larger; a larger file is a mistake, and must not eat memory.
const LARGEST: u64 = 16 << 20;

/// What messages call a file.
pub fn shown(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// The text of a file; `-` is standard input.
///
/// # Errors
/// With `code`, if it cannot be read, is not UTF-8 or is too large.
pub fn read(file: &str, code: Code) -> Result<String, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::new(code, format!("cannot read {}: {error}", shown(file)));
    let mut text = String::new();
    let mut limited: Take<Box<dyn Read>> = match file {
        "-" => Box::new(stdin()) as Box<dyn Read>,
        path => Box::new(fs::File::open(path).map_err(unreadable)?),
    }
    .take(LARGEST + 1);
    limited.read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > LARGEST {
        let message = format!("{} is larger than {} MiB", shown(file), LARGEST >> 20);
        return Err(Failure::new(code, message));
    }
    Ok(text)
}

/// Writes a text to a file, or without one to standard output.
///
/// # Errors
/// If it cannot be written.
pub fn write(file: Option<&Path>, text: &str, output: &mut Output<'_>) -> Result<(), Failure> {
    match file {
        None => output.text(text),
        Some(path) => fs::write(path, text).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::new(Code::StateUnwritable, message)
        }),
    }
}
