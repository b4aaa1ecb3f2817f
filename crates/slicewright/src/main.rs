// SPDX-License-Identifier: Apache-2.0
//! The one binary.

#![forbid(unsafe_code)]

use std::io::{stderr, stdout};
use std::process::ExitCode;

fn main() -> ExitCode {
    let env = cli::Env::of_process();
    // Not locked: the agent's threads write too, and would wait for ever.
    let status = cli::run(std::env::args_os(), &env, &mut stdout(), &mut stderr());
    ExitCode::from(status)
}
