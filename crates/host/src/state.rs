// SPDX-License-Identifier: Apache-2.0
//! The state folder: one owner at a time.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use crate::error::Error;
use crate::storage::{Folder, Memory, Storage};

/// File of the lock; it holds the process id of the last owner.
const LOCK: &str = "lock";
/// File of the change under way.
pub(crate) const JOURNAL: &str = "journal.jsonl";
/// File of ended changes.
pub(crate) const HISTORY: &str = "history.jsonl";

/// The state folder of one machine, held by this process alone. On the command line and in the
/// agent it is `/var/lib/slicewright`; for a simulated world it lies beside the world's file.
pub struct StateDir {
    storage: Box<dyn Storage>,
    /// Locked until it is dropped; the kernel lets go when the process dies.
    _lock: Option<File>,
}

impl StateDir {
    /// Opens the folder, makes it (0700) if it is missing, and locks it.
    ///
    /// # Errors
    /// [`Error::Locked`] if another process has it, [`Error::State`] if it cannot be written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let state = |operation, place: &Path, source| Error::State {
            operation,
            place: place.display().to_string(),
            source,
        };
        make(path).map_err(|error| state("make the folder", path, error))?;
        let lock_path = path.join(LOCK);
        let lock = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&lock_path)
            .map_err(|error| state("open", &lock_path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked {
                    pid: fs::read_to_string(&lock_path)
                        .ok()
                        .and_then(|text| text.trim().parse().ok()),
                    place: lock_path.display().to_string(),
                });
            }
            Err(TryLockError::Error(error)) => return Err(state("lock", &lock_path, error)),
        }
        name_owner(&lock).map_err(|error| state("write", &lock_path, error))?;
        Ok(Self {
            storage: Box::new(Folder::at(path)),
            _lock: Some(lock),
        })
    }

    /// A state that is gone when it is dropped: for one-shot runs on a simulated driver.
    pub fn temporary() -> Self {
        Self::in_storage(Box::new(Memory::default()))
    }

    /// A state in a storage of the caller's, which sees to it that it has one owner.
    pub fn in_storage(storage: Box<dyn Storage>) -> Self {
        Self {
            storage,
            _lock: None,
        }
    }

    /// What it is written to.
    pub fn storage(&self) -> &dyn Storage {
        self.storage.as_ref()
    }

    /// The error of an operation on one of its files.
    pub(crate) fn error(&self, operation: &'static str, name: &str, source: io::Error) -> Error {
        unusable(self.storage(), operation, name, source)
    }
}

/// The error of an operation on one file of a state folder.
pub(crate) fn unusable(
    storage: &dyn Storage,
    operation: &'static str,
    name: &str,
    source: io::Error,
) -> Error {
    Error::State {
        operation,
        place: storage.place(name),
        source,
    }
}

/// Makes the folder if it is missing; it is on the disk when this returns, as what is in it has to
/// outlive a power cut.
fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    File::open(path.join(".."))?.sync_all()
}

/// Writes our process id into the lock file, for the one who finds it locked.
fn name_owner(mut lock: &File) -> io::Result<()> {
    lock.set_len(0)?;
    writeln!(lock, "{}", std::process::id())
}
