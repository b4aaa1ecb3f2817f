// SPDX-License-Identifier: Apache-2.0
//! What GPUs report by themselves: faults, and changes of their MIG instances.

use std::sync::PoisonError;
use std::time::Duration;

use units::GpuUuid;

use crate::calls::Counted;
use crate::driver::Driver;
use crate::error::{Error, NvmlCode};
use crate::raw::{Answer, ask, ask_text, check, optional};
use crate::sys::*;
use crate::table::Functions;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The driver reported a fault by its XID number.
    Xid(u64),
    /// MIG instances were created or destroyed.
    MigChange,
}

/// Something that a GPU reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Which GPU.
    pub gpu: GpuUuid,
    /// What.
    pub kind: EventKind,
    /// In which GPU instance, where the driver says so.
    pub gpu_instance: Option<u32>,
    /// In which compute instance of it, where the driver says so.
    pub compute_instance: Option<u32>,
}

/// Waiting for what GPUs report.
pub trait Events: Sync {
    /// The next event; `None` if there was none within the time. The first wait starts the watch,
    /// and the first after a reset or an error starts it anew: what happens between is not
    /// reported. GPUs that are lost when a watch starts are watched from the wait on that finds them
    /// again.
    ///
    /// # Errors
    /// If a GPU is lost meanwhile, or the driver cannot report events.
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error>;
}

const WATCHED: u64 = nvmlEventTypeXidCriticalError as u64 | nvmlEventMigConfigChange as u64;

/// A set of events that NVML watches for.
pub(crate) struct EventSet {
    set: nvmlEventSet_t,
    /// Indexes of GPUs that were lost when they were to be watched.
    left_out: Vec<c_uint>,
}

// SAFETY: NVML's handles are not bound to a thread, and NVML is thread-safe (nvml.h).
unsafe impl Send for EventSet {}

impl EventSet {
    /// Watches every GPU that can report events.
    fn open(functions: &Counted) -> Answer<Self> {
        let mut set = Self {
            set: ask!(functions, nvmlEventSetCreate())?,
            left_out: Vec::new(),
        };
        set.register_all(functions)
            .inspect_err(|_| set.free(functions))?;
        Ok(set)
    }

    fn register_all(&mut self, functions: &Counted) -> Answer<()> {
        let count: c_uint = ask!(functions, nvmlDeviceGetCount_v2())?;
        for index in 0..count {
            match self.register(functions, index) {
                // The others are watched all the same.
                Err(NvmlCode::GPU_IS_LOST) => self.left_out.push(index),
                answer => answer?,
            }
        }
        Ok(())
    }

    /// Watches those too that were lost before and are there again.
    fn take_in(&mut self, functions: &Counted) {
        let left_out = std::mem::take(&mut self.left_out);
        let lost = |index: &c_uint| self.register(functions, *index).is_err();
        self.left_out = left_out.into_iter().filter(lost).collect();
    }

    fn register(&self, functions: &Counted, index: c_uint) -> Answer<()> {
        let device: nvmlDevice_t = ask!(functions, nvmlDeviceGetHandleByIndex_v2(index))?;
        let supported: Option<c_ulonglong> =
            optional(ask!(functions, nvmlDeviceGetSupportedEventTypes(device)))?;
        let kinds = WATCHED & supported.unwrap_or(0);
        if kinds == 0 {
            return Ok(());
        }
        // SAFETY: device and set are of this session.
        check(unsafe { functions.nvmlDeviceRegisterEvents(device, kinds, self.set) })
    }

    fn wait(&self, functions: &Counted, timeout: Duration) -> Answer<nvmlEventData_t> {
        let millis = c_uint::try_from(timeout.as_millis()).unwrap_or(c_uint::MAX);
        let mut data = crate::raw::zeroed();
        // SAFETY: the set is of this session, the out parameter a live local.
        let mut code = unsafe { functions.nvmlEventSetWait_v2(self.set, &mut data, millis) };
        if code == nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND {
            // SAFETY: as above.
            code = unsafe { functions.nvmlEventSetWait(self.set, &mut data, millis) };
        }
        check(code).map(|()| data)
    }

    /// Gives the set back.
    pub(crate) fn free(&self, functions: &Counted) {
        // SAFETY: the set is NVML's own and is not used afterwards.
        let _ = unsafe { functions.nvmlEventSetFree(self.set) };
    }
}

impl Events for Driver {
    fn wait(&self, timeout: Duration) -> Result<Option<Event>, Error> {
        let session = self.session()?;
        let functions = session.functions;
        let failed = |code| Error::Call {
            operation: "wait for events".to_owned(),
            gpu: None,
            code,
        };
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut set = match events.take() {
            Some(set) => set,
            None => EventSet::open(functions).map_err(failed)?,
        };
        set.take_in(functions);
        let answer = set.wait(functions, timeout);
        let named = answer.and_then(|data| {
            let uuid = ask_text!(functions, nvmlDeviceGetUUID(data.device))?;
            Ok((data, uuid))
        });
        match named {
            // A set that failed once may fail for ever, such as after a GPU was lost.
            Err(code) if code != NvmlCode::TIMEOUT => set.free(functions),
            _ => *events = Some(set),
        }
        let (data, uuid) = match named {
            Err(NvmlCode::TIMEOUT) => return Ok(None),
            named => named.map_err(failed)?,
        };
        let gpu = uuid.parse().map_err(|error| Error::Nonsense {
            operation: "wait for events".to_owned(),
            reason: format!("{error}"),
        })?;
        let id = |id: c_uint| (id != INVALID_GPU_INSTANCE_ID).then_some(id);
        let xid = data.eventType == u64::from(nvmlEventTypeXidCriticalError);
        Ok(Some(Event {
            gpu,
            kind: if xid {
                EventKind::Xid(data.eventData)
            } else {
                EventKind::MigChange
            },
            gpu_instance: id(data.gpuInstanceId),
            compute_instance: id(data.computeInstanceId),
        }))
    }
}
