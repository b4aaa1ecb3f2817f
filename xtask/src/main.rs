// SPDX-License-Identifier: Apache-2.0
//! Tasks of this project: `cargo xtask test | e2e | interop | tidy | bench | codegen | cluster | image`.
//!
//! `test` is the whole gate and what CI runs; the others are its parts, or tools that a
//! contributor runs by hand. Nothing depends on this crate.

#![forbid(unsafe_code)]

mod bench;
mod cluster;
mod codegen;
mod e2e;
mod error;
mod image;
mod interop;
mod process;
mod test;
mod tidy;
mod tools;

use std::path::{Path, PathBuf};
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
  e2e [PART]       scenarios on a real Kubernetes, on this machine; needs root.
                   PART of their names: only those
  cluster up [--nodes N] [--sim GPUS]... | down | kubectl ARGUMENTS
                   that Kubernetes, to work with, with the agent on nodes with
                   simulated GPUs: see docs/cluster.md
  image            the container image of Slicewright, into the target folder

exit status: 0 all is well, 1 something failed, 2 wrong usage";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (root, target) = (root(), target());
    let outcome = match words.as_slice() {
        ["test"] => test::run(root),
        ["tidy"] => tidy::run(root),
        ["interop"] => interop::run(root).map(|counts| counts.is_none_or(|c| c.failed == 0)),
        ["bench"] => bench::run(root, &target, false),
        ["bench", "-o", "json"] => bench::run(root, &target, true),
        ["codegen"] => codegen::run().map(|()| true).map_err(Error::Codegen),
        ["e2e"] => e2e::run(root, &target, ""),
        ["e2e", filter] => e2e::run(root, &target, filter),
        ["image"] => image::run(root, &target),
        ["cluster", words @ ..] => match cluster::task(root, &target, words) {
            Some(outcome) => outcome,
            None => return misused(&arguments),
        },
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            Ok(true)
        }
        _ => return misused(&arguments),
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

fn misused(words: &[String]) -> ExitCode {
    eprintln!("cargo xtask: no such task: {}\n\n{HELP}", words.join(" "));
    ExitCode::from(2)
}

/// Cargo's target folder.
fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let given = given.and_then(|path| std::path::absolute(path).ok());
    given.unwrap_or_else(|| root().join("target"))
}

/// The repository's root: where this crate's folder is.
fn root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}
