// SPDX-License-Identifier: Apache-2.0
//! Configurations that are written: `slicewright host generate-config` and `export`.

use std::path::Path;

use config::mig::{self, MigConfigFile};
use units::Code;

use crate::args::{ExportArgs, Format, GenerateArgs};
use crate::env::Env;
use crate::failure::Failure;
use crate::files;
use crate::machine::Machine;
use crate::output::Output;

/// Writes the configurations that fit this hardware.
///
/// # Errors
/// If there are none, or they cannot be written.
pub fn generate(
    machine: &Machine,
    args: &GenerateArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let inventory = machine.inventory()?;
    if inventory.gpus.iter().all(|gpu| gpu.mode.is_none()) {
        return Err(Failure::new(
            Code::NoGpuMatches,
            "no GPU of this machine has MIG",
        ));
    }
    let file = plan::generated(&inventory);
    let header = config::generate::HEADER;
    write(&file, header, args.output_file.as_deref(), env, output)
}

/// Writes what is there as a configuration.
///
/// # Errors
/// If it cannot be read or written.
pub fn export(
    machine: &Machine,
    args: &ExportArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let label = args.config_label.as_deref();
    let label = label.or_else(|| env.get("MIG_PARTED_CONFIG_LABEL"));
    let label = label.unwrap_or(config::export::DEFAULT_LABEL);
    let file = config::export::export(label, &machine.inventory()?);
    write(&file, "", args.output_file.as_deref(), env, output)
}

/// Writes a configuration as YAML with a header of comments, or as JSON: in the form and to the
/// file of the command line, else of mig-parted's variables, else as YAML to standard output.
fn write(
    config: &MigConfigFile,
    header: &str,
    file: Option<&Path>,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let text = match format(env, output)? {
        mig::Format::Yaml => header.to_owned() + &mig::print(config, mig::Format::Yaml),
        mig::Format::Json => mig::print(config, mig::Format::Json) + "\n",
    };
    let file = file.or_else(|| env.get("MIG_PARTED_OUTPUT_FILE").map(Path::new));
    files::write(file, &text, output)?;
    Ok(0)
}

fn format(env: &Env, output: &Output<'_>) -> Result<mig::Format, Failure> {
    let asked = match output.format {
        Some(Format::Yaml) => Some("yaml"),
        Some(Format::Json) => Some("json"),
        Some(_) => Some("another form"),
        None => env.get("MIG_PARTED_OUTPUT_FORMAT"),
    };
    match asked {
        None | Some("yaml") => Ok(mig::Format::Yaml),
        Some("json") => Ok(mig::Format::Json),
        Some(_) => Err(Failure::new(
            Code::Usage,
            "a configuration is written as yaml or json",
        )),
    }
}
