// SPDX-License-Identifier: Apache-2.0
//! The verbs, one module each.

mod explain;
mod hooks;
mod list;
mod profiles;

use units::Code;

use crate::args::{Cli, Verb};
use crate::env::Env;
use crate::failure::Failure;
use crate::output::Output;

/// Does what was asked and returns the exit status.
///
/// # Errors
/// If it could not be done.
pub fn run(cli: &Cli, env: &Env, output: &mut Output<'_>) -> Result<u8, Failure> {
    let _ = env;
    match &cli.verb {
        Verb::Explain(args) => explain::run(args, output),
        _ => Err(Failure::new(
            Code::NotSupportedYet,
            "this verb is not built yet",
        )),
    }
}
