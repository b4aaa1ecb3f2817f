// SPDX-License-Identifier: Apache-2.0
//! The node's hardware: driver, journal, readings. Everything here blocks, and is called from
//! threads that may.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use geometry::inventory::Inventory;
use gpu::{Event, Events};
use host::{Host, Intent, OpenDriver, Outcome, StateDir, Toward, open_change};
use plan::{Plan, Wish};
use snapshot::{CapHandle, Reader, Reading, Roots};

use crate::settings::Paths;
use crate::surroundings::Surroundings;

/// The node's hardware. The driver is open only while it is wanted: an open handle keeps its kernel
/// module from being replaced.
pub struct Machine {
    paths: Paths,
    surroundings: Surroundings,
    open: Mutex<Option<Arc<Open>>>,
    /// Told when the driver is opened.
    opened: Condvar,
}

struct Open {
    driver: OpenDriver,
    reader: Mutex<Reader>,
}

impl Machine {
    /// The hardware at these paths. Nothing is opened yet.
    pub fn new(paths: Paths, surroundings: Surroundings) -> Self {
        Self {
            paths,
            surroundings,
            open: Mutex::default(),
            opened: Condvar::new(),
        }
    }

    /// Which boot of the node it is; empty if nobody knows.
    pub fn boot_id(&self) -> &str {
        &self.surroundings.boot_id
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The driver, opened if it is not.
    fn open(&self) -> Result<Arc<Open>, host::Error> {
        let mut slot = self.slot();
        if let Some(open) = &*slot {
            return Ok(Arc::clone(open));
        }
        let driver = (self.surroundings.driver)()?;
        let roots = Roots {
            sys: self.paths.sys.clone(),
            proc_driver: self.paths.proc_driver.clone(),
            dev: self.paths.dev_root_here.clone(),
        };
        let open = Arc::new(Open {
            driver,
            reader: Mutex::new(Reader::new(roots)),
        });
        *slot = Some(Arc::clone(&open));
        self.opened.notify_all();
        Ok(open)
    }

    /// Lets go of the driver. Its handles are closed once what is under way has ended; the thread that
    /// waits for faults lets go within half a second.
    pub fn close(&self) {
        *self.slot() = None;
    }

    /// Everything about the hardware now.
    ///
    /// # Errors
    /// If there is no driver, or it cannot be read. It is closed then, so that the next reading
    /// begins anew: the library may have been replaced.
    pub fn read(&self, machine_type_file: &Path) -> Result<Reading, host::Error> {
        let open = self.open()?;
        let mut reader = open.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = reader.read(open.driver.gpu(), machine_type_file);
        drop(reader);
        reading.map_err(|error| {
            self.close();
            host::Error::from(error)
        })
    }

    /// Whether a change was begun and not ended, and whether it leads to this wish.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn open_change(&self, wish: Option<&Wish>) -> Result<Option<Toward>, host::Error> {
        let folder = host::Folder::at(&self.paths.state);
        let open = open_change(&folder)?;
        Ok(open.map(|open| match wish {
            Some(wish) if open.leads_to(wish) => Toward::New,
            _ => Toward::Old,
        }))
    }

    /// Ends the change that was begun and not ended.
    ///
    /// # Errors
    /// If nothing could be tried.
    pub fn recover(&self, toward: Toward) -> Result<Option<Outcome>, host::Error> {
        self.with_host(|host| host.recover(toward))
    }

    /// Carries a plan out, or puts everything back.
    ///
    /// # Errors
    /// If it is refused before anything is touched.
    pub fn apply(&self, plan: &Plan, intent: &Intent) -> Result<Outcome, host::Error> {
        self.with_host(|host| host.apply(plan, intent))
    }

    fn with_host<T>(
        &self,
        act: impl FnOnce(&Host<'_>) -> Result<T, host::Error>,
    ) -> Result<T, host::Error> {
        let open = self.open()?;
        let state = StateDir::open(&self.paths.state)?;
        act(&Host {
            driver: open.driver.driver(),
            reset: &open.driver,
            state: &state,
            clock: &*self.surroundings.clock,
            boot_id: self.boot_id(),
        })
    }

    /// Who else has capability devices open: this process reads slices through them.
    ///
    /// # Errors
    /// If the processes of the node cannot be looked at.
    pub fn cap_handles(&self, minors: &BTreeSet<u32>) -> io::Result<BTreeSet<CapHandle>> {
        let mut handles = snapshot::cap_handles(&self.paths.proc, minors)?;
        handles.retain(|handle| handle.pid != std::process::id());
        Ok(handles)
    }

    /// What the driver reports next; `None` if there was nothing within the time, or it is closed.
    ///
    /// # Errors
    /// As the driver says.
    pub fn wait_event(&self, timeout: Duration) -> Result<Option<Event>, gpu::Error> {
        let is_closed = |slot: &mut Option<Arc<Open>>| slot.is_none();
        let slot = self
            .opened
            .wait_timeout_while(self.slot(), timeout, is_closed);
        let open = slot.unwrap_or_else(PoisonError::into_inner).0.clone();
        open.map_or(Ok(None), |open| open.driver.gpu().wait(timeout))
    }
}

/// The inventory with the last that was known of GPUs that are lost, so that these are told as
/// unhealthy rather than forgotten.
pub fn with_lost(mut now: Inventory, last: Option<&Inventory>) -> Inventory {
    for index in &now.lost {
        let known = last.and_then(|last| last.gpus.iter().find(|gpu| gpu.index == *index));
        now.gpus.extend(known.cloned());
    }
    now.gpus.sort_by_key(|gpu| gpu.index);
    now
}
