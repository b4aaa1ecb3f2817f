// SPDX-License-Identifier: Apache-2.0
//! `slicewright host assert`: is the hardware as the configuration says?

use plan::Difference;
use serde::Serialize;
use units::Code;

use super::wish::{self, Wanted};
use crate::args::AssertArgs;
use crate::env::Env;
use crate::failure::{Failure, Told};
use crate::machine::Machine;
use crate::output::Output;

/// What programs get. Version 1.
#[derive(Serialize)]
struct AssertReport {
    version: &'static str,
    equal: bool,
    differences: Vec<Difference>,
}

/// Compares: 0 equal, 1 different.
///
/// # Errors
/// If they cannot be compared.
pub fn run(
    machine: &Machine,
    args: &AssertArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let wanted = Wanted::read(&args.wish, env)?;
    let inventory = machine.inventory()?;
    let wish = wanted.resolve(&inventory)?;
    if !output.is_machine() {
        for warning in &wish.warnings {
            output.warn(warning.code, &warning.message);
        }
    }
    let differences = plan::difference(&inventory, &wish);
    let equal = differences.is_empty();
    if output.is_machine() {
        output.machine(&AssertReport {
            version: "v1",
            equal,
            differences,
        })?;
    } else if equal {
        output.text(format_args!("All is as {} says.\n", wanted.text))?;
    } else {
        for difference in &differences {
            output.text(format_args!("{}\n", difference.message))?;
        }
        output.tell(&Told {
            code: Code::Difference,
            message: format!("the hardware is not as {} says", wanted.text),
            choices: Vec::new(),
        });
    }
    Ok(if equal {
        0
    } else {
        Code::Difference.exit_status()
    })
}

/// `--valid-config`: is there a configuration that could be applied? Needs no GPU.
///
/// # Errors
/// If there is none.
pub fn valid_config(args: &AssertArgs, env: &Env, output: &mut Output<'_>) -> Result<u8, Failure> {
    let file = args
        .wish
        .config_file
        .as_deref()
        .or_else(|| env.get("MIG_PARTED_CONFIG_FILE"));
    let name = args.wish.selected_config.as_deref();
    let name = name.or_else(|| env.get("MIG_PARTED_SELECTED_CONFIG"));
    let Some(file) = file else {
        let message = "--valid-config needs a file: -f FILE -c NAME";
        return Err(Failure::new(Code::Usage, message));
    };
    let selected = wish::select(file, name)?;
    for warning in &selected.warnings {
        output.warn(warning.code, warning);
    }
    if output.is_machine() {
        output.machine(&AssertReport {
            version: "v1",
            equal: true,
            differences: Vec::new(),
        })?;
    } else {
        output.text(format_args!("Configuration {} is valid.\n", selected.name))?;
    }
    Ok(0)
}
