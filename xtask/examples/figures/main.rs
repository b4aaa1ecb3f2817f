// SPDX-License-Identifier: Apache-2.0
//! Every figure beside its budget. Run by `cargo xtask bench [-o json]`, which builds the release
//! binary first. A figure over its budget is said loudly and fails nothing: machines differ.
//!
//! Decisions are measured in this process, everything else as a person meets it: the release
//! binary on world files.
//!
//! To cargo this is an example and no bench: for benches it builds all binaries of the package.

#![forbid(unsafe_code)]

mod agent;
mod api_server;
mod cluster;
mod decisions;
mod figure;
mod machine;
mod preferred;
mod served;

use std::error::Error;
use std::process::ExitCode;

use cluster::Cluster;
use figure::Figure;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    let json = arguments.windows(2).any(|pair| pair == ["-o", "json"]);
    let figures = match measure() {
        Ok(figures) => figures,
        Err(error) => {
            eprintln!("cannot measure: {error}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        println!("{:#}", figure::json(&figures));
    } else {
        println!("{}", figure::table(&figures));
    }
    ExitCode::SUCCESS
}

fn measure() -> Result<Vec<Figure>, Box<dyn Error>> {
    let mut figures = machine::measure()?;
    figures.extend(agent::measure()?);
    if let Some(cluster) = Cluster::from_env() {
        let binary = machine::binary()?;
        let release = binary.parent().unwrap_or(&binary);
        figures.extend(cluster::measure(&cluster, release)?);
    }
    figures.extend(api_server::measure()?);
    figures.extend(decisions::measure()?);
    figures.extend(preferred::measure()?);
    figures.extend(served::measure()?);
    Ok(figures)
}
