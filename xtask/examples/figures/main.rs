// SPDX-License-Identifier: Apache-2.0
//! Every figure beside its budget. Run by `cargo xtask bench [-o json]`, which builds the release
//! binary first. A figure over its budget is said loudly and fails nothing: machines differ.
//!
//! Decisions are measured in this process, everything else as a person meets it: the release
//! binary on world files.
//!
//! To cargo this is an example and no bench: for benches it builds all binaries of the package.

#![forbid(unsafe_code)]

mod decisions;
mod figure;
mod machine;

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let json = arguments.windows(2).any(|pair| pair == ["-o", "json"]);
    let mut figures = match machine::measure() {
        Ok(figures) => figures,
        Err(error) => {
            eprintln!("cannot measure whole changes: {error}");
            return ExitCode::FAILURE;
        }
    };
    figures.extend(decisions::measure());
    if json {
        println!("{:#}", figure::json(&figures));
    } else {
        println!("{}", figure::table(&figures));
    }
    ExitCode::SUCCESS
}
