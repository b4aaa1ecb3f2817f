// SPDX-License-Identifier: Apache-2.0
//! Simulated machines: `--sim`, and `slicewright sim`.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use config::nearest::nearest;
use geometry::catalogue;
use host::OpenDriver;
use nvmlsim::{Handle, Options, SimError, Simulated, Spec, SpecError, World, verbs};
use units::Code;

use crate::args::SimVerb;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::output::Output;

/// Opens the machine that `--sim` names: a world in a file if the text is a path, else a new one
/// that is gone afterwards.
///
/// # Errors
/// If there is no such file, or the text describes no machine.
pub fn open(
    text: &str,
    state_dir: Option<PathBuf>,
    output: &mut Output<'_>,
) -> Result<Machine, Failure> {
    let path = Path::new(text);
    let is_file = path.exists() || text.contains('/') || text.ends_with(".json");
    let (handle, state_dir) = if is_file {
        let beside = PathBuf::from(format!("{text}.state"));
        (opened(path)?, Some(state_dir.unwrap_or(beside)))
    } else {
        let world = World::create(&spec(text)?, &Options::default());
        (Handle::in_memory(world), state_dir)
    };
    let world = handle.world()?;
    warn_of_estimates(&world, output);
    let boot = world.boot;
    let functions = Arc::new(Simulated::new(handle.clone()));
    let driver = OpenDriver::of_functions(functions, Box::new(Simulated::new(handle)))?;
    let way_back = match is_file {
        true => format!("Go back with: slicewright host rollback --sim {text}"),
        false => format!(
            "That machine is gone now; this makes one that stays: \
             slicewright sim create {text} world.json"
        ),
    };
    let boot_id = format!("simulated boot {boot}");
    Ok(Machine::new(driver, state_dir, boot_id, way_back))
}

/// Whatever the simulated driver says of such a board, nobody has measured it.
fn warn_of_estimates(world: &World, output: &mut Output<'_>) {
    let boards = world.gpus.iter().filter_map(|gpu| gpu.board().ok());
    let estimated = boards.filter(|board| board.is_estimated());
    let keys: BTreeSet<&str> = estimated.map(|board| board.key.as_str()).collect();
    for key in keys {
        output.warn(
            Code::EstimatedBoard,
            format!("facts about {key} are estimates"),
        );
    }
}

fn opened(path: &Path) -> Result<Handle, Failure> {
    if !path.exists() {
        let message = format!("there is no world {}", path.display());
        let choice = format!("slicewright sim create 8xH100-80GB-SXM {}", path.display());
        return Err(Failure::with_choices(
            Code::SimInvalid,
            message,
            vec![choice],
        ));
    }
    Ok(Handle::open(path)?)
}

fn spec(text: &str) -> Result<Spec, Failure> {
    text.parse().map_err(|error: SpecError| {
        let choices = match &error {
            SpecError::NoBoard { key } => boards_like(key),
            SpecError::Form { text } => boards_like(text)
                .into_iter()
                .map(|board| format!("1x{board}"))
                .collect(),
            _ => Vec::new(),
        };
        Failure::with_choices(error.code(), error.to_string(), choices)
    })
}

/// Boards whose names begin like that, else the one that is most like it.
fn boards_like(text: &str) -> Vec<String> {
    let boards = catalogue::boards();
    let keys: Vec<&str> = boards.iter().map(|board| board.key.as_str()).collect();
    let begins = |key: &&str| {
        key.get(..text.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(text))
    };
    let same: Vec<String> = keys
        .iter()
        .copied()
        .filter(begins)
        .map(str::to_owned)
        .collect();
    match same.as_slice() {
        [] => nearest(text, &keys)
            .map(str::to_owned)
            .into_iter()
            .collect(),
        _ => same,
    }
}

impl From<SimError> for Failure {
    fn from(error: SimError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// Does what was asked of a world.
///
/// # Errors
/// If it could not be done.
pub fn run(verb: &SimVerb, output: &mut Output<'_>) -> Result<u8, Failure> {
    match verb {
        SimVerb::Create {
            spec: text,
            file,
            latency,
            seed,
            driver_version,
        } => {
            let spec = spec(text)?;
            let newest = Options::default().driver_version;
            let options = Options {
                seed: *seed,
                latency_ms: *latency,
                driver_version: driver_version.clone().unwrap_or(newest),
            };
            let world = World::create(&spec, &options);
            warn_of_estimates(&world, output);
            Handle::create(file, &world)?;
            let file = file.display();
            output.text(format_args!("{file}: {spec}. Use it with --sim {file}\n"))?;
        }
        SimVerb::Show { file } => show(&opened(file)?, output)?,
        SimVerb::Fault { file, rules } => {
            let world = opened(file)?;
            verbs::fault(&world, rules)?;
            show(&world, output)?;
        }
        SimVerb::Reboot { file } => {
            let world = opened(file)?;
            verbs::reboot(&world)?;
            show(&world, output)?;
        }
        SimVerb::Hold {
            file,
            uuid,
            command,
        } => hold(&opened(file)?, uuid, command, output)?,
    }
    Ok(0)
}

fn hold(
    world: &Handle,
    uuid: &str,
    command: &[OsString],
    output: &mut Output<'_>,
) -> Result<(), Failure> {
    if let [program, arguments @ ..] = command {
        let mut command = Command::new(program);
        command.args(arguments);
        match verbs::hold(world, uuid, command)? {}
    }
    let _hold = world.hold(uuid)?;
    output.text(format_args!("Holding {uuid} until the input ends.\n"))?;
    // Whatever ends the input ends the hold.
    let _ = stdin().read_to_end(&mut Vec::new());
    Ok(())
}

fn show(world: &Handle, output: &mut Output<'_>) -> Result<(), Failure> {
    match output.is_machine() {
        true => output.machine(&*world.world()?),
        false => output.text(verbs::show(world)?),
    }
}
