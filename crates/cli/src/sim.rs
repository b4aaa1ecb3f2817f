// SPDX-License-Identifier: Apache-2.0
//! Simulated machines: `--sim`, and `slicewright sim`.

use std::io::{Read, stdin};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::nearest::nearest;
use geometry::{InstanceSpec, Layout, catalogue};
use host::OpenDriver;
use nvmlsim::{Fault, Handle, Options, SimError, Simulated, Spec, SpecError, World, world};
use units::{Code, ProfileName};

use crate::args::SimVerb;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::output::Output;
use crate::picture::picture;
use crate::table::Table;

/// Opens the machine that `--sim` names: a world in a file if the text is a path, else a new one
/// that is gone afterwards.
///
/// # Errors
/// If there is no such file, or the text describes no machine.
pub fn open(text: &str, state_dir: Option<PathBuf>) -> Result<Machine, Failure> {
    let path = Path::new(text);
    let is_file = path.exists() || text.contains('/') || text.ends_with(".json");
    let (handle, state_dir) = if is_file {
        let beside = PathBuf::from(format!("{text}.state"));
        (opened(path)?, Some(state_dir.unwrap_or(beside)))
    } else {
        let world = World::create(&spec(text)?, &Options::default());
        (Handle::in_memory(world), state_dir)
    };
    let boot = handle.world()?.boot;
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
        } => {
            let spec = spec(text)?;
            for board in spec.estimated() {
                output.warn(
                    Code::EstimatedBoard,
                    format!("facts about {board} are estimates"),
                );
            }
            let options = Options {
                seed: *seed,
                latency_ms: *latency,
                ..Options::default()
            };
            Handle::create(file, &World::create(&spec, &options))?;
            let file = file.display();
            output.text(format_args!("{file}: {spec}. Use it with --sim {file}\n"))?;
        }
        SimVerb::Show { file } => show(&*opened(file)?.world()?, output)?,
        SimVerb::Fault { file, rules } => fault(&opened(file)?, rules, output)?,
        SimVerb::Reboot { file } => {
            let rebooted = opened(file)?.update(|world| {
                world.reboot();
                Ok(world.boot)
            })?;
            let boot = rebooted.unwrap_or_default();
            output.text(format_args!("Rebooted: boot {boot}.\n"))?;
        }
        SimVerb::Hold { file, uuid } => {
            let _hold = opened(file)?.hold(uuid)?;
            output.text(format_args!("Holding {uuid} until the input ends.\n"))?;
            // Whatever ends the input ends the hold.
            let _ = stdin().read_to_end(&mut Vec::new());
        }
    }
    Ok(0)
}

fn fault(handle: &Handle, rules: &[String], output: &mut Output<'_>) -> Result<(), Failure> {
    let faults = rules.iter().map(|rule| rule.parse());
    let mut faults: Vec<Fault> = faults.collect::<Result<_, _>>().map_err(SimError::Fault)?;
    if faults.is_empty() {
        faults.push(Fault::Clear);
    }
    let world = handle.world()?;
    faults
        .iter()
        .try_for_each(|fault| world.knows(fault))
        .map_err(SimError::Fault)?;
    // A change that cannot refuse is not refused.
    let _ = handle.update(|world| {
        faults.iter().for_each(|fault| world.inject(fault));
        Ok(())
    })?;
    show_rules(&*handle.world()?, output)
}

fn show_rules(world: &World, output: &mut Output<'_>) -> Result<(), Failure> {
    if world.rules.is_empty() {
        return output.text("No call is set to go wrong.\n");
    }
    output.text("Calls that go wrong:\n")?;
    world
        .rules
        .iter()
        .try_for_each(|rule| output.text(format_args!("  {rule} (matched {})\n", rule.seen)))
}

fn show(world: &World, output: &mut Output<'_>) -> Result<(), Failure> {
    if output.is_machine() {
        return output.machine(world);
    }
    let (major, minor) = world.cuda_version;
    output.text(format_args!(
        "Driver {}, CUDA {major}.{minor}, {} ms a changing call, seed {}, boot {}\n",
        world.driver_version, world.latency_ms, world.seed, world.boot
    ))?;
    let mut table = Table::new(&["GPU", "BOARD", "MIG", "INSTANCES", "UUID"]);
    for (index, gpu) in world.gpus.iter().enumerate() {
        let state = if gpu.lost {
            "lost".to_owned()
        } else {
            gpu.mode().to_string()
        };
        let row = [
            index.to_string(),
            gpu.board.clone(),
            state,
            drawn(gpu),
            gpu.uuid.to_string(),
        ];
        table.row(row);
    }
    output.text(table)?;
    show_rules(world, output)
}

fn drawn(gpu: &world::Gpu) -> String {
    let Ok(board) = gpu.board() else {
        return "-".to_owned();
    };
    if !gpu.mig_current {
        return "-".to_owned();
    }
    let instances = gpu.instances.iter().filter_map(|instance| {
        let profile = board.profile(instance.profile)?;
        let slices = instance.compute.iter().filter_map(|compute| {
            let mut known = profile.compute.iter();
            let slices = known
                .find(|known| known.driver_id == compute.profile)?
                .slices;
            profile.name.with_compute(slices)
        });
        Some(spec_of(instance, &profile.name, slices.collect()))
    });
    let mut layout = Layout {
        instances: instances.collect(),
    };
    layout.instances.sort();
    picture(&layout, board.placement_units)
}

fn spec_of(
    instance: &world::Instance,
    profile: &ProfileName,
    slices: Vec<ProfileName>,
) -> InstanceSpec {
    let compute = slices.into_iter().map(|profile| geometry::ComputeSpec {
        profile,
        driver_id: 0,
        placement: None,
    });
    InstanceSpec {
        placement: instance.placement,
        profile: profile.clone(),
        driver_id: instance.profile,
        compute: compute.collect(),
    }
}
