// SPDX-License-Identifier: Apache-2.0
//! One process' view of a simulated driver: a value that fills `gpu`'s function table.

mod events;
mod handles;
mod pointers;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::Duration;

use gpu::sys::*;
use gpu::{Error, Functions, NvmlCode, Reset};
use units::GpuUuid;

use crate::code::{Answer, DRIVER_NOT_LOADED, IN_USE, INVALID_ARGUMENT, UNINITIALIZED, UNKNOWN};
use crate::fault::{Effect, RESET, kind_of_change};
use crate::handle::Handle;
use crate::serve;
use crate::world::World;

pub use events::EventSets;
pub use handles::{Device, Id};
pub use pointers::{In, Out, text_array};

/// NVML on a simulated machine, as one process sees it: it must be initialised first, and knows
/// the event sets that it made. Many can exist side by side, on one world or on many.
#[derive(Debug)]
pub struct Simulated {
    handle: Handle,
    /// Calls of `nvmlInit` that were not shut down.
    sessions: AtomicU32,
    pub(crate) events: EventSets,
}

impl Simulated {
    /// NVML on that world, not initialised.
    pub fn new(handle: Handle) -> Self {
        Self {
            handle,
            sessions: AtomicU32::new(0),
            events: EventSets::default(),
        }
    }

    /// The world's handle.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Whether it is initialised.
    pub fn is_open(&self) -> bool {
        self.sessions.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn init(&self) -> Answer<()> {
        self.handle.world().map_err(|_| DRIVER_NOT_LOADED)?;
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    pub(crate) fn shut_down(&self) -> Answer<()> {
        let fewer = |sessions: u32| sessions.checked_sub(1);
        let before = self
            .sessions
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fewer);
        before.map(drop).map_err(|_| UNINITIALIZED)
    }

    /// The world as it is now.
    pub(crate) fn world(&self) -> Answer<Arc<World>> {
        self.handle.world().map_err(|_| UNKNOWN)
    }

    /// Changes the world.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut World) -> Answer<R>) -> Answer<R> {
        self.handle.update(change).map_err(|_| UNKNOWN)?
    }

    /// Makes a call: with the latency of one that changes something, which passes outside of any
    /// lock, and with what the fault rules have for it.
    fn call(
        &self,
        function: &str,
        gpu: Option<u32>,
        body: impl FnOnce() -> Answer<()>,
    ) -> Answer<()> {
        if !function.starts_with("nvmlInit") && !self.is_open() {
            return Err(UNINITIALIZED);
        }
        let world = self.handle.world().map_err(|_| DRIVER_NOT_LOADED)?;
        let effect = match world.is_watched(function, gpu) {
            true => self.change(|world| Ok(world.fault_of(function, gpu)))?,
            false => None,
        };
        match effect {
            Some(Effect::KillBefore) => die(),
            Some(Effect::Fail(code)) => return Err(NvmlCode(code)),
            Some(Effect::Hang(ms)) => {
                sleep(Duration::from_millis(ms));
                return Err(UNKNOWN);
            }
            Some(Effect::Slow(ms)) => sleep(Duration::from_millis(ms)),
            _ => {}
        }
        if world.latency_ms > 0 && kind_of_change(function).is_some() {
            sleep(Duration::from_millis(world.latency_ms));
        }
        let answer = body();
        match effect {
            Some(Effect::KillAfter) => die(),
            Some(Effect::FailAfter(code)) => Err(NvmlCode(code)),
            _ => answer,
        }
    }
}

/// Kills this process as an out-of-memory killer would: nothing of it runs on.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        impl Functions for Simulated {
            $(
                unsafe fn $name(&self, $($argument: $kind),*) -> nvmlReturn_t {
                    #[allow(unused_imports)]
                    use handles::{About, NoGpu};
                    let gpu = None$(.or(About(&$argument).gpu()))*;
                    let answer = self.call(stringify!($name), gpu, || {
                        // SAFETY: the caller keeps the contract of `Functions`, which is that of
                        // the wrapped pointers: null, or valid during the call.
                        serve::$name(self, $(unsafe { pointers::Argument::wrap($argument) }),*)
                    });
                    answer.map_or_else(|code| code.0, |()| nvmlReturn_enum_NVML_SUCCESS)
                }
            )*
        }
    };
}
gpu::nvml_functions!(functions);

impl Reset for Simulated {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error> {
        let failed = |code: NvmlCode| Error::Reset {
            gpus: gpus.to_vec(),
            reason: match code {
                IN_USE => "In use by another client".into(),
                code => code.to_string(),
            },
        };
        let world = self.handle.world().map_err(|error| Error::Reset {
            gpus: gpus.to_vec(),
            reason: error.to_string(),
        })?;
        let index = |uuid: &GpuUuid| world.index_of(uuid).ok_or(INVALID_ARGUMENT);
        let indices: Answer<Vec<u32>> = gpus.iter().map(index).collect();
        self.reset_all(&indices.map_err(failed)?).map_err(failed)
    }
}

impl Simulated {
    /// Resets the GPUs with these indices together, or none of them.
    fn reset_all(&self, gpus: &[u32]) -> Answer<()> {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed);
        let answer = self.call(RESET, gpus.first().copied(), || {
            self.change(|world| {
                if gpus.iter().any(|gpu| self.handle.is_gpu_held(world, *gpu)) {
                    return Err(IN_USE);
                }
                gpus.iter().try_for_each(|gpu| world.reset(*gpu))
            })
        });
        debug_assert!(session < u32::MAX);
        self.sessions.fetch_sub(1, Ordering::Relaxed);
        answer
    }
}
