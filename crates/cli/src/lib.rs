// SPDX-License-Identifier: Apache-2.0
//! The commands: read arguments, call the library crates, print.
//!
//! [`run`] is the whole program but for the process around it: arguments, environment and the two
//! output streams come in, an exit status comes out. Each verb is a module; what they share is how
//! things are printed ([`output`], [`table`]) and how failures are told ([`failure`]).
//! This crate decides nothing about GPUs.

#![forbid(unsafe_code)]

mod args;
mod env;
mod failure;
mod files;
mod machine;
mod output;
mod picture;
mod sim;
mod table;
mod verbs;

pub use env::Env;

use std::ffi::OsString;
use std::io::Write;

use clap::Parser;
use units::Code;

use args::Cli;
use failure::Failure;
use output::Output;

/// Runs one command and returns its exit status: 0 done, nothing to do or valid; 1 a difference or
/// finding; 2 wrong usage or unreadable input; 3 refused; 4 failed and put back; 5 needs a person.
///
/// `args` starts with the program's name. A reader of `out` who has gone away is success.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    env: &Env,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(answer) => {
            let text = answer.render();
            let written = if answer.use_stderr() {
                write!(err, "{text}")
            } else {
                write!(out, "{text}")
            };
            return match written {
                Ok(()) => u8::try_from(answer.exit_code()).unwrap_or(2),
                Err(_) => 0,
            };
        }
    };
    let mut output = Output {
        out,
        err,
        format: cli.output,
    };
    let result = verbs::run(&cli, env, &mut output).or_else(|failure| match failure {
        Failure::Told(told) => output.failure(&told).map(|()| told.code.exit_status()),
        output => Err(output),
    });
    match result {
        Ok(status) => status,
        Err(Failure::Output(error)) => {
            output.note(format_args!("cannot write the result: {error}"));
            Code::Usage.exit_status()
        }
        Err(Failure::Told(told)) => told.code.exit_status(),
    }
}
