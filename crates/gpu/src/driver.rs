// SPDX-License-Identifier: Apache-2.0
//! The driver of this machine, open for use.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use units::{GpuUuid, MigUuid, Placement};

use crate::board::Boards;
use crate::calls::{CallCounts, Counted};
use crate::error::{Error, NvmlCode};
use crate::events::EventSet;
use crate::library::Library;
use crate::raw::{Answer, ask, check};
use crate::sys::*;
use crate::table::Functions;
use crate::traits::Reset;

/// NVML, initialised, with every call counted. The one code path to a GPU, be the functions those
/// of the driver's library or the simulator's.
///
/// Devices are named by UUID, and every operation looks its handles up afresh: handles go stale
/// when an instance is destroyed or a GPU reset, and are then used again for others.
pub struct Driver {
    functions: Counted,
    /// Whether NVML is initialised. Operations hold it for reading, so that none is under way while
    /// the driver is closed.
    open: RwLock<bool>,
    pub(crate) boards: Mutex<Boards>,
    pub(crate) events: Mutex<Option<EventSet>>,
}

impl Driver {
    /// Loads the driver's library, from a path or from where the dynamic linker looks, and
    /// initialises it.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if there is no library, no driver behind it, or no right to use it.
    pub fn load(library: Option<&Path>) -> Result<Self, Error> {
        Self::new(Arc::new(Library::load(library)?))
    }

    /// Initialises NVML through these functions.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if that fails.
    pub fn new(functions: Arc<dyn Functions>) -> Result<Self, Error> {
        let functions = Counted::new(functions);
        initialise(&functions)?;
        Ok(Self {
            functions,
            open: RwLock::new(true),
            boards: Mutex::default(),
            events: Mutex::default(),
        })
    }

    /// How often NVML was called since the start.
    pub fn calls(&self) -> CallCounts {
        self.functions.counts()
    }

    /// The same by function, those that were called.
    pub fn calls_by_name(&self) -> BTreeMap<&'static str, u64> {
        self.functions.by_name()
    }

    /// Waits for operations under way, closes every handle by shutting NVML down, does the action
    /// and opens again. Others who use the driver meanwhile wait. The action must not use it.
    ///
    /// # Errors
    /// [`Error::NoDriver`] if NVML cannot be initialised again; every later use fails likewise.
    pub fn while_closed<T>(&self, action: impl FnOnce() -> T) -> Result<T, Error> {
        let mut open = self.open.write().unwrap_or_else(PoisonError::into_inner);
        if *open {
            self.close();
            *open = false;
        }
        let done = action();
        initialise(&self.functions)?;
        *open = true;
        Ok(done)
    }

    fn close(&self) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(set) = events.take() {
            set.free(&self.functions);
        }
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        *boards = Boards::default();
        // SAFETY: NVML is initialised, and no operation that holds a handle is under way. A
        // failure leaves nothing to do: the process gives up its handles in any case.
        let _ = unsafe { self.functions.nvmlShutdown() };
    }

    /// The right to call NVML, for the length of one operation.
    pub(crate) fn session(&self) -> Result<Session<'_>, Error> {
        let open = self.open.read().unwrap_or_else(PoisonError::into_inner);
        if !*open {
            return Err(Error::NoDriver {
                reason: "NVML was closed for a reset and could not be opened again".to_owned(),
            });
        }
        Ok(Session {
            functions: &self.functions,
            _open: open,
        })
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        if *self.open.get_mut().unwrap_or_else(PoisonError::into_inner) {
            self.close();
        }
    }
}

fn initialise(functions: &Counted) -> Result<(), Error> {
    // SAFETY: no preconditions; it may be called more than once.
    let mut code = unsafe { functions.nvmlInit_v2() };
    if code == nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND {
        // SAFETY: as above.
        code = unsafe { functions.nvmlInit() };
    }
    check(code).map_err(|code| Error::NoDriver {
        reason: match code {
            NvmlCode::DRIVER_NOT_LOADED => "the nvidia kernel module is not loaded".to_owned(),
            NvmlCode::NO_PERMISSION => "no right to open the devices in /dev".to_owned(),
            NvmlCode::VERSION_MISMATCH => {
                "the library and the kernel module have different versions: reload the module \
                 or reboot"
                    .to_owned()
            }
            code => format!("NVML cannot be initialised: it answered {code}"),
        },
    })
}

/// An operation on an open NVML. Handles live no longer than it.
pub(crate) struct Session<'a> {
    pub(crate) functions: &'a Counted,
    _open: RwLockReadGuard<'a, bool>,
}

impl Session<'_> {
    /// The device with that UUID.
    pub(crate) fn device(&self, gpu: &GpuUuid) -> Result<Device<'_>, Error> {
        let handle = self
            .handle(gpu.as_str())
            .map_err(failed("open the GPU", gpu))?;
        Ok(Device {
            functions: self.functions,
            handle,
            gpu: gpu.clone(),
        })
    }

    /// The MIG device with that UUID.
    pub(crate) fn mig_device(&self, slice: &MigUuid) -> Answer<nvmlDevice_t> {
        self.handle(slice.as_str())
    }

    fn handle(&self, uuid: &str) -> Answer<nvmlDevice_t> {
        let uuid = CString::new(uuid).map_err(|_| NvmlCode::INVALID_ARGUMENT)?;
        ask!(self.functions, nvmlDeviceGetHandleByUUID(uuid.as_ptr()))
    }
}

/// A GPU, open within a session.
pub(crate) struct Device<'s> {
    pub(crate) functions: &'s Counted,
    pub(crate) handle: nvmlDevice_t,
    pub(crate) gpu: GpuUuid,
}

impl Device<'_> {
    /// What to make of a code when this was attempted on the GPU.
    pub(crate) fn failed(&self, operation: impl Into<String>) -> impl FnOnce(NvmlCode) -> Error {
        failed(operation, &self.gpu)
    }

    /// An answer that makes no sense.
    pub(crate) fn nonsense(&self, reason: String) -> Error {
        Error::Nonsense {
            operation: format!("read MIG of {}", self.gpu),
            reason,
        }
    }

    /// A number that is small on any GPU.
    pub(crate) fn small(&self, number: u32, what: &str) -> Result<u8, Error> {
        u8::try_from(number).map_err(|_| self.nonsense(format!("{number} {what}")))
    }

    /// A placement, from start and size.
    pub(crate) fn placement(&self, start: u32, size: u32) -> Result<Placement, Error> {
        match (u8::try_from(start), u8::try_from(size)) {
            (Ok(start), Ok(size)) if size > 0 && start.checked_add(size).is_some() => {
                Ok(Placement::new(start, size))
            }
            _ => Err(self.nonsense(format!("a placement at {start} of size {size}"))),
        }
    }

    /// Placements by rising start, from pairs of start and size.
    pub(crate) fn placements(
        &self,
        pairs: impl Iterator<Item = (u32, u32)>,
    ) -> Result<Vec<Placement>, Error> {
        let placement = |(start, size)| self.placement(start, size);
        let mut placements = pairs.map(placement).collect::<Result<Vec<_>, _>>()?;
        placements.sort();
        Ok(placements)
    }
}

pub(crate) fn failed(
    operation: impl Into<String>,
    gpu: &GpuUuid,
) -> impl FnOnce(NvmlCode) -> Error {
    let (operation, gpu) = (operation.into(), gpu.clone());
    move |code| Error::Call {
        operation,
        gpu: Some(gpu),
        code,
    }
}

/// A reset for which the driver is closed, as [`Reset`] demands, and opened again afterwards.
pub struct ClosedReset<'a> {
    driver: &'a Driver,
    reset: &'a dyn Reset,
}

impl<'a> ClosedReset<'a> {
    /// Closes this driver around that reset.
    pub fn new(driver: &'a Driver, reset: &'a dyn Reset) -> Self {
        Self { driver, reset }
    }
}

impl Reset for ClosedReset<'_> {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error> {
        self.driver.while_closed(|| self.reset.reset(gpus))?
    }
}
