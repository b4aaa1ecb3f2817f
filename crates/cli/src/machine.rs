// SPDX-License-Identifier: Apache-2.0
//! The machine that the host verbs work on: the real one, or a simulated one.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use geometry::inventory::Inventory;
use host::{Folder, Host, Intent, OpenDriver, Outcome, StateDir, Storage, SystemClock, Watched};
use plan::Plan;
use serde::Serialize;
use units::{Code, GpuUuid};

use crate::args::HostArgs;
use crate::env::Env;
use crate::failure::Failure;
use crate::output::Output;

/// Where journal and history of the real machine are.
const STATE_DIR: &str = "/var/lib/slicewright";

/// How often those who wait are told how far it is.
const PROGRESS: Duration = Duration::from_secs(1);

/// A machine, open.
pub struct Machine {
    driver: OpenDriver,
    state: State,
    boot_id: String,
    way_back: String,
}

/// Where journal and history are.
enum State {
    /// In a folder, read here and opened for writing only by a change.
    Folder(Folder),
    /// In memory, for a simulated machine that is gone afterwards.
    Memory(host::Memory),
}

/// How often the driver was called.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Calls {
    /// Calls that change something.
    pub mutating: u64,
    /// All others.
    pub reading: u64,
}

impl Calls {
    /// Those since `earlier`.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            mutating: self.mutating - earlier.mutating,
            reading: self.reading - earlier.reading,
        }
    }
}

impl Machine {
    /// Opens the machine that the arguments name.
    ///
    /// # Errors
    /// If there is no driver, or no such simulated world.
    pub fn open(args: &HostArgs, env: &Env, output: &mut Output<'_>) -> Result<Self, Failure> {
        let Some(text) = &args.sim else {
            return Self::real(args.state_dir.clone(), env);
        };
        crate::sim::open(text, args.state_dir.clone(), output)
    }

    fn real(state_dir: Option<PathBuf>, env: &Env) -> Result<Self, Failure> {
        let root = env.get("NVIDIA_DRIVER_ROOT").map(Path::new);
        let driver = OpenDriver::of_machine(root).map_err(|error| match error.code() {
            Code::DriverMissing => Failure::with_choices(
                Code::DriverMissing,
                error.to_string(),
                vec![
                    "on a machine with the driver elsewhere: NVIDIA_DRIVER_ROOT=/run/nvidia/driver"
                        .to_owned(),
                    "without a GPU: --sim 8xH100-80GB-SXM".to_owned(),
                ],
            ),
            _ => error.into(),
        })?;
        // Only told to people, so that a system without it works all the same.
        let boot_id = host::boot_id().unwrap_or_default();
        let state_dir = state_dir.unwrap_or_else(|| STATE_DIR.into());
        let way_back = "Go back with: slicewright host rollback".to_owned();
        Ok(Self::new(driver, Some(state_dir), boot_id, way_back))
    }

    /// A machine with this driver; without a folder its state is gone afterwards.
    /// `way_back` says how to undo a change of it.
    pub fn new(
        driver: OpenDriver,
        state_dir: Option<PathBuf>,
        boot_id: String,
        way_back: String,
    ) -> Self {
        let state = match state_dir {
            Some(path) => State::Folder(Folder::at(path)),
            None => State::Memory(host::Memory::default()),
        };
        Self {
            driver,
            state,
            boot_id,
            way_back,
        }
    }

    /// How to undo a change of this machine, in a line.
    pub fn way_back(&self) -> &str {
        &self.way_back
    }

    /// The driver.
    pub fn driver(&self) -> &dyn host::Driver {
        self.driver.driver()
    }

    /// Everything about every GPU.
    ///
    /// # Errors
    /// As the driver says.
    pub fn inventory(&self) -> Result<Inventory, Failure> {
        Ok(self.driver().inventory().map_err(host::Error::from)?)
    }

    /// Journal and history, for reading.
    pub fn storage(&self) -> &dyn Storage {
        match &self.state {
            State::Folder(folder) => folder,
            State::Memory(memory) => memory,
        }
    }

    /// Journal and history, for this process alone.
    ///
    /// # Errors
    /// If another process has them, or they cannot be written.
    pub fn lock(&self) -> Result<StateDir, Failure> {
        Ok(match &self.state {
            State::Folder(folder) => StateDir::open(folder.path())?,
            State::Memory(_) => StateDir::temporary(),
        })
    }

    /// The machine with what a change needs.
    pub fn host<'a>(&'a self, state: &'a StateDir) -> Host<'a> {
        Host {
            driver: self.driver(),
            reset: &self.driver,
            state,
            clock: &SystemClock,
            boot_id: &self.boot_id,
        }
    }

    /// How often the driver was called so far.
    pub fn calls(&self) -> Calls {
        let counts = self.driver.calls();
        Calls {
            mutating: counts.mutating,
            reading: counts.reading,
        }
    }

    /// Carries a plan out, and tells how far it is as long as it lasts.
    ///
    /// # Errors
    /// If nothing was done.
    pub fn apply(
        &self,
        state: &StateDir,
        plan: &Plan,
        intent: &Intent,
        output: &mut Output<'_>,
    ) -> Result<Outcome, Failure> {
        let (sender, steps) = channel();
        let tell = |gpu: &GpuUuid, what: String| {
            let index = plan
                .gpus
                .iter()
                .find(|known| known.uuid == *gpu)
                .map(|gpu| gpu.index);
            // Nobody waits any more only if printing failed, which stops nothing.
            let _ = sender.send(format!("GPU {}: {what}", index.unwrap_or_default()));
        };
        let watched = Watched {
            driver: self.driver(),
            reset: &self.driver,
            tell: &tell,
        };
        let host = Host {
            driver: &watched,
            reset: &watched,
            ..self.host(state)
        };
        let total: usize = plan.gpus.iter().map(|gpu| gpu.steps.len()).sum();
        Ok(std::thread::scope(|scope| {
            let (ended, end) = channel();
            let work = scope.spawn(move || {
                let outcome = host.apply(plan, intent);
                drop(ended);
                outcome
            });
            tell_progress(&steps, &end, total, output);
            work.join()
        })
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?)
    }
}

/// Prints a line every second until the work has ended.
fn tell_progress(
    steps: &Receiver<String>,
    end: &Receiver<()>,
    total: usize,
    output: &mut Output<'_>,
) {
    let begun = Instant::now();
    let mut told = 0;
    let mut last = None;
    while end.recv_timeout(PROGRESS) == Err(RecvTimeoutError::Timeout) {
        for step in steps.try_iter() {
            told += 1;
            last = Some(step);
        }
        let seconds = begun.elapsed().as_secs();
        let now = last.as_deref().unwrap_or("reading");
        output.note(format_args!(
            "  {seconds} s: {told} steps begun, {total} planned, {now}"
        ));
    }
}
