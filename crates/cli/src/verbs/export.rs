// SPDX-License-Identifier: Apache-2.0
//! Configurations that are written: `slicewright host generate-config` and `export`.

use std::path::Path;

use config::mig::{self, MigConfigFile};
use units::Code;

use super::wish;
use crate::args::{ExportArgs, Format, GenerateArgs};
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
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let inventory = machine.inventory()?;
    if inventory.gpus.iter().all(|gpu| gpu.mode.is_none()) {
        return Err(Failure::new(
            Code::NoGpuMatches,
            "no GPU of this machine has MIG",
        ));
    }
    let header = config::generate::HEADER;
    write(
        &wish::generate(&inventory),
        header,
        args.output_file.as_deref(),
        output,
    )
}

/// Writes what is there as a configuration.
///
/// # Errors
/// If it cannot be read or written.
pub fn export(
    machine: &Machine,
    args: &ExportArgs,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let file = config::export::export(&args.config_label, &machine.inventory()?);
    write(&file, "", args.output_file.as_deref(), output)
}

/// Writes a file as YAML with a header of comments, or as JSON.
fn write(
    config: &MigConfigFile,
    header: &str,
    file: Option<&Path>,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let text = match output.format {
        None | Some(Format::Yaml) => header.to_owned() + &mig::print(config, mig::Format::Yaml),
        Some(Format::Json) => mig::print(config, mig::Format::Json) + "\n",
        Some(_) => {
            return Err(Failure::new(
                Code::Usage,
                "a configuration is written as yaml or json",
            ));
        }
    };
    files::write(file, &text, output)?;
    Ok(0)
}
