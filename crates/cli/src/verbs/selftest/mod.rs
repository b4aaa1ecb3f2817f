// SPDX-License-Identifier: Apache-2.0
//! `slicewright host selftest`: walks a driver and writes down what it says, so that it can be sent
//! in. Reads only, unless a GPU is given up to be cut ([`mutate`]).

mod mutate;
mod read;

use std::time::Instant;

use serde::Serialize;
use units::Code;

use super::plan_text::counted;
use super::wish::index;
use crate::args::SelftestArgs;
use crate::failure::{Failure, Told};
use crate::machine::Machine;
use crate::output::Output;

/// Runs the checks: 0 all passed, 1 some did not.
///
/// # Errors
/// If nothing can be checked.
pub fn run(machine: &Machine, args: &SelftestArgs, output: &mut Output<'_>) -> Result<u8, Failure> {
    let mut transcript = Transcript {
        output,
        checks: Vec::new(),
    };
    transcript.say(format!(
        "slicewright {} selftest",
        env!("CARGO_PKG_VERSION")
    ))?;
    let begun = Instant::now();
    let inventory = machine.inventory()?;
    transcript.say(format!("read the machine in {}", took(begun)))?;
    let only = args
        .gpu
        .as_ref()
        .map(|gpu| index(gpu, &inventory))
        .transpose()?;
    read::check(machine, &inventory, only, &mut transcript)?;
    if args.mutate {
        let gpu = inventory.gpus.iter().find(|gpu| Some(gpu.index) == only);
        if let Some(gpu) = gpu {
            mutate::check(machine, gpu, &mut transcript)?;
        }
    }
    transcript.end(machine)
}

/// What was found, told as it comes.
struct Transcript<'a, 'o> {
    output: &'a mut Output<'o>,
    checks: Vec<Check>,
}

/// One check.
#[derive(Serialize)]
struct Check {
    what: String,
    passed: bool,
    found: String,
}

/// What programs get. Version 1.
#[derive(Serialize)]
struct SelftestReport<'a> {
    version: &'static str,
    failed: usize,
    checks: &'a [Check],
    calls: crate::machine::Calls,
}

impl Transcript<'_, '_> {
    /// A line for people.
    fn say(&mut self, line: String) -> Result<(), Failure> {
        if self.output.is_machine() {
            return Ok(());
        }
        self.output.text(format_args!("{line}\n"))
    }

    /// A check: what was found, or what is wrong with it.
    fn check(&mut self, what: String, result: Result<String, String>) -> Result<(), Failure> {
        let (passed, found) = match result {
            Ok(found) => (true, found),
            Err(wrong) => (false, wrong),
        };
        let word = if passed { "ok" } else { "FAILED" };
        let colon = if found.is_empty() { "" } else { ": " };
        self.say(format!("  {word:6} {what}{colon}{found}"))?;
        self.checks.push(Check {
            what,
            passed,
            found,
        });
        Ok(())
    }

    fn end(&mut self, machine: &Machine) -> Result<u8, Failure> {
        let failed = self.checks.iter().filter(|check| !check.passed).count();
        let calls = machine.calls();
        if self.output.is_machine() {
            let checks = &self.checks;
            self.output.machine(&SelftestReport {
                version: "v1",
                failed,
                checks,
                calls,
            })?;
        }
        let passed = self.checks.len() - failed;
        self.say(format!(
            "{passed} checks passed, {failed} failed; {} changing calls, {} reads",
            calls.mutating, calls.reading
        ))?;
        if failed == 0 {
            return Ok(0);
        }
        self.output.tell(&Told {
            code: Code::SelftestFailed,
            message: format!(
                "{} failed; please send the transcript",
                counted(failed, "check")
            ),
            choices: Vec::new(),
        });
        Ok(Code::SelftestFailed.exit_status())
    }
}

/// How long it took since then.
fn took(begun: Instant) -> String {
    format!("{:.3}ms", begun.elapsed().as_secs_f64() * 1000.0)
}
