// SPDX-License-Identifier: Apache-2.0
//! Tasks of this project: `cargo xtask test | tidy | interop | bench | codegen`.
//!
//! `test` is the whole gate and what CI runs; the others are its parts, or tools that a
//! contributor runs by hand. Nothing depends on this crate.

#![forbid(unsafe_code)]

mod bench;
mod codegen;
mod error;
mod interop;
mod process;
mod test;
mod tidy;
mod tools;

use std::path::Path;
use std::process::ExitCode;

use error::Error;

const HELP: &str = "\
Tasks of this project.

usage: cargo xtask TASK

  test             everything that CI checks: format, clippy, tidy, tests, interop
                   clients, the README's first command
  tidy             house rules that no compiler checks: sizes, purity, directions of
                   dependencies, headers, links, licences
  interop          NVML clients that others wrote, on the simulated driver
  bench [-o json]  every figure beside its budget; never fails on time
  codegen          regenerates the code that is generated from data

exit status: 0 all is well, 1 something failed, 2 wrong usage";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = root();
    let outcome = match words.as_slice() {
        ["test"] => test::run(root),
        ["tidy"] => tidy::run(root),
        ["interop"] => interop::run(root).map(|counts| counts.is_none_or(|c| c.failed == 0)),
        ["bench"] => bench::run(root, false),
        ["bench", "-o", "json"] => bench::run(root, true),
        ["codegen"] => codegen::run().map(|()| true).map_err(Error::Codegen),
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(true)
        }
        _ => {
            eprintln!("cargo xtask: no such task: {}\n\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("cargo xtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root: where this crate's folder is.
fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}
