// SPDX-License-Identifier: Apache-2.0
//! A world that several threads or processes use: in memory, or in a file.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use units::Code;

use crate::code::Answer;
use crate::fault::FaultError;
use crate::file::WorldFile;
use crate::holders::{HoldGuard, Holders, Target};
use crate::world::{SpecError, World};

/// What can go wrong with a world as a whole.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The description of the machine is wrong.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A line of a fault script is wrong.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// There is already a file.
    #[error("{} is there already", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// `read`, `write`, `lock`.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file holds no world.
    #[error("{} is not a simulated world: {reason}", path.display())]
    NotAWorld {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing of that name to hold.
    #[error("the simulated machine has no GPU or MIG device {what}")]
    NoSuchDevice {
        /// What was asked for.
        what: String,
    },
    /// A program cannot be run.
    #[error("cannot run {program}: {source}")]
    Run {
        /// Its name or path.
        program: String,
        /// Why.
        source: std::io::Error,
    },
    /// A hold cannot be marked.
    #[error("cannot hold {what}: {source}")]
    Hold {
        /// What was to be held.
        what: String,
        /// Why.
        source: std::io::Error,
    },
}

impl SimError {
    /// The stable code.
    pub fn code(&self) -> Code {
        match self {
            Self::Spec(error) => error.code(),
            _ => Code::SimInvalid,
        }
    }
}

/// A world and who holds its devices. Clones share it.
#[derive(Clone, Debug)]
pub struct Handle(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    holders: Holders,
}

#[derive(Debug)]
struct State {
    world: Arc<World>,
    file: Option<WorldFile>,
}

impl Handle {
    /// A world that lives as long as the handle.
    pub fn in_memory(world: World) -> Self {
        Self::new(world, None, Holders::in_memory())
    }

    /// Writes the world to a new file and opens it.
    ///
    /// # Errors
    /// If there is one already, or it cannot be written.
    pub fn create(path: &Path, world: &World) -> Result<Self, SimError> {
        WorldFile::create(path, world)?;
        Self::open(path)
    }

    /// Opens a world in a file.
    ///
    /// # Errors
    /// If it cannot be read or is not a world.
    pub fn open(path: &Path) -> Result<Self, SimError> {
        let (file, world) = WorldFile::open(path)?;
        let holders = Holders::beside(file.path())?;
        Ok(Self::new(world, Some(file), holders))
    }

    fn new(world: World, file: Option<WorldFile>, holders: Holders) -> Self {
        let state = Mutex::new(State {
            world: Arc::new(world),
            file,
        });
        Self(Arc::new(Shared { state, holders }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere cannot leave half a world: it is replaced whole.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The world as it is now. In a file it is read again only if another process changed it.
    ///
    /// # Errors
    /// If the file cannot be read or is no longer a world.
    pub fn world(&self) -> Result<Arc<World>, SimError> {
        let mut state = self.state();
        state.refresh()?;
        Ok(state.world.clone())
    }

    /// Changes the world by something that cannot fail.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn change(&self, change: impl FnOnce(&mut World)) -> Result<(), SimError> {
        self.update(|world| {
            change(world);
            Ok(())
        })
        .map(|_| ())
    }

    /// Changes the world, alone; nothing is changed if the change fails. Returns what the change
    /// returns.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn update<R>(
        &self,
        change: impl FnOnce(&mut World) -> Answer<R>,
    ) -> Result<Answer<R>, SimError> {
        let mut state = self.state();
        let _lock = state.lock()?;
        state.refresh()?;
        let mut world = World::clone(&state.world);
        let answer = change(&mut world);
        if answer.is_ok() {
            world.generation = world.generation.wrapping_add(1);
            if let Some(file) = &mut state.file {
                file.write(&world)?;
            }
            state.world = Arc::new(world);
        }
        Ok(answer)
    }

    /// Marks this process as holder of the GPU or MIG device with that UUID, until the guard is
    /// dropped or the process ends.
    ///
    /// # Errors
    /// If there is no such device, or the file of holders cannot be written.
    pub fn hold(&self, uuid: &str) -> Result<HoldGuard, SimError> {
        let mut state = self.state();
        let _lock = state.lock()?;
        state.refresh()?;
        let target = Target::find(&state.world, uuid).ok_or_else(|| SimError::NoSuchDevice {
            what: uuid.to_owned(),
        })?;
        self.0
            .holders
            .hold(target)
            .map_err(|source| SimError::Hold {
                what: uuid.to_owned(),
                source,
            })
    }

    /// Process ids of those who hold the target, as this process sees them; 0 for one that it
    /// cannot see.
    pub fn holders(&self, target: Target) -> Vec<u32> {
        self.0.holders.list(target)
    }

    /// Whether anything holds the GPU or one of its instances.
    pub fn is_gpu_held(&self, world: &World, gpu: u32) -> bool {
        let Some(device) = world.gpus.get(gpu as usize) else {
            return false;
        };
        let devices = device.mig_devices();
        devices
            .map(|(instance, compute)| Target::compute(gpu, instance.id, compute.id))
            .chain([Target::gpu(gpu)])
            .any(|target| !self.holders(target).is_empty())
    }
}

impl State {
    fn refresh(&mut self) -> Result<(), SimError> {
        if let Some(file) = &mut self.file
            && let Some(world) = file.read_if_changed()?
        {
            self.world = Arc::new(world);
        }
        Ok(())
    }

    fn lock(&mut self) -> Result<Option<crate::file::Lock>, SimError> {
        self.file.as_ref().map(WorldFile::lock).transpose()
    }
}
