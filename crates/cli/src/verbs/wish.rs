// SPDX-License-Identifier: Apache-2.0
//! What is wanted: from flags, environment and files to a wish.

use std::collections::BTreeMap;

use config::mig::{self, MigConfigFile, Selected};
use config::nearest::nearest;
use geometry::inventory::Inventory;
use plan::{GpuWish, Policy, Warning, Wish};
use units::Code;

use crate::args::WishArgs;
use crate::env::Env;
use crate::failure::Failure;
use crate::files;

/// What is wanted, before the hardware is known.
pub struct Wanted {
    source: Source,
    mode_only: bool,
    /// What a plan may do.
    pub policy: Policy,
    /// What is wanted, in the user's words.
    pub text: String,
    /// The values of the flags as mig-parted names them, for hooks.
    pub variables: BTreeMap<String, String>,
}

enum Source {
    /// A configuration out of a file.
    Selected(Selected),
    /// One of the generated configurations.
    Generated(String),
    /// A layout for some GPUs; none named: all with MIG.
    Layout(GpuWish, Vec<String>),
}

impl Wanted {
    /// Reads flags, environment and file.
    ///
    /// # Errors
    /// If nothing is asked for, or the file cannot be used.
    pub fn read(args: &WishArgs, env: &Env) -> Result<Self, Failure> {
        let or_env = |flag: &Option<String>, name: &str| {
            flag.clone().or_else(|| env.get(name).map(str::to_owned))
        };
        let file = or_env(&args.config_file, "MIG_PARTED_CONFIG_FILE");
        let name = or_env(&args.selected_config, "MIG_PARTED_SELECTED_CONFIG");
        let mode_only = args.mode_only || env.is_true("MIG_PARTED_MODE_CHANGE_ONLY");
        let skip_reset = args.skip_reset || env.is_true("MIG_PARTED_SKIP_RESET");
        let variables = [
            ("MIG_PARTED_CONFIG_FILE", file.clone().unwrap_or_default()),
            (
                "MIG_PARTED_SELECTED_CONFIG",
                name.clone().unwrap_or_default(),
            ),
            ("MIG_PARTED_MODE_CHANGE_ONLY", mode_only.to_string()),
            ("MIG_PARTED_SKIP_RESET", skip_reset.to_string()),
        ];
        let (source, text) = match (&args.layout, file, name) {
            (Some(layout), _, _) => {
                let wish = plan::parse_layout(layout)?;
                (Source::Layout(wish, args.gpu.clone()), layout.clone())
            }
            (None, Some(file), name) => {
                let selected = select(&file, name.as_deref())?;
                let text = selected.name.clone();
                (Source::Selected(selected), text)
            }
            (None, None, Some(name)) => (Source::Generated(name.clone()), name),
            (None, None, None) => return Err(nothing_asked()),
        };
        Ok(Self {
            source,
            mode_only,
            policy: Policy {
                reset: !skip_reset,
                ..Policy::default()
            },
            text,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
        })
    }

    /// What that is on this machine.
    ///
    /// # Errors
    /// If it matches nothing here.
    pub fn resolve(&self, inventory: &Inventory) -> Result<Wish, Failure> {
        let wish = match &self.source {
            Source::Selected(selected) => {
                let mut wish = plan::resolve(&selected.entries, inventory)?;
                wish.warnings
                    .extend(selected.warnings.iter().map(|diagnostic| Warning {
                        code: diagnostic.code,
                        message: diagnostic.to_string(),
                    }));
                wish
            }
            Source::Generated(name) => {
                let file = plan::generated(inventory);
                let config = file.get(name).ok_or_else(|| not_generated(name, &file))?;
                plan::resolve(&config.entries, inventory)?
            }
            Source::Layout(layout, gpus) => {
                plan::resolve_layout(&indices(gpus, inventory)?, layout, inventory)?
            }
        };
        Ok(if self.mode_only {
            wish.mode_only()
        } else {
            wish
        })
    }
}

/// Reads a file and selects a configuration.
///
/// # Errors
/// If there is no such file or configuration, or it has errors.
pub fn select(file: &str, name: Option<&str>) -> Result<Selected, Failure> {
    let text = files::read(file, Code::ConfigInvalid)?;
    Ok(mig::parse(files::shown(file), &text).select(name)?)
}

fn nothing_asked() -> Failure {
    Failure::with_choices(
        Code::Usage,
        "nothing says what is wanted",
        vec![
            "-f FILE -c NAME: a configuration of a file in NVIDIA's format".to_owned(),
            "-c NAME: a configuration that `slicewright host generate-config` shows".to_owned(),
            "--layout 3g.40gb,2x1g.10gb [--gpu 0,2]: a layout".to_owned(),
        ],
    )
}

fn not_generated(name: &str, file: &MigConfigFile) -> Failure {
    let names = file.names();
    let near = nearest(name, &names).map(|near| format!("; did you mean {near}?"));
    let message = format!(
        "no configuration {name:?} is generated for this hardware{} \
         (-f FILE names a file with others)",
        near.unwrap_or_default()
    );
    let names = names.into_iter().map(str::to_owned).collect();
    Failure::with_choices(Code::ConfigNotFound, message, names)
}

/// Indices of GPUs given by index or UUID; without any those of all with MIG.
fn indices(gpus: &[String], inventory: &Inventory) -> Result<Vec<u32>, Failure> {
    if !gpus.is_empty() {
        return gpus.iter().map(|gpu| index(gpu, inventory)).collect();
    }
    let capable = inventory.gpus.iter().filter(|gpu| gpu.mode.is_some());
    let capable: Vec<u32> = capable.map(|gpu| gpu.index).collect();
    if capable.is_empty() {
        return Err(Failure::new(
            Code::NoGpuMatches,
            "no GPU of this machine has MIG",
        ));
    }
    Ok(capable)
}

/// The index of a GPU given by index or UUID.
///
/// # Errors
/// If the text is neither, or there is no such GPU.
pub fn index(gpu: &str, inventory: &Inventory) -> Result<u32, Failure> {
    let is_it = |known: &geometry::inventory::Gpu| {
        known.index.to_string() == gpu || known.uuid.as_str() == gpu
    };
    let found = inventory.gpus.iter().find(|known| is_it(known));
    // A lost GPU is refused by the planner, which knows what to say of it.
    let lost = inventory.lost.iter().find(|index| index.to_string() == gpu);
    let found = found.map(|gpu| gpu.index).or(lost.copied());
    if found.is_none() && gpu.parse::<u32>().is_err() && gpu.parse::<units::GpuUuid>().is_err() {
        return Err(Failure::new(
            Code::Usage,
            format!("{gpu:?} is no GPU: expected an index such as 0 or a UUID, several as 0,2"),
        ));
    }
    found.ok_or_else(|| {
        let known = inventory.gpus.iter();
        let choices = known
            .map(|gpu| format!("{}: {} {}", gpu.index, gpu.name, gpu.uuid))
            .collect();
        let message = format!("there is no GPU {gpu} on this machine");
        Failure::with_choices(Code::NoGpuMatches, message, choices)
    })
}
