// SPDX-License-Identifier: Apache-2.0
//! Who uses a GPU or a compute instance.
//!
//! Beside a world in a file, `FILE.holders` is an empty file on which each holder has a POSIX
//! record lock on a byte that stands for what it holds. The kernel drops the lock with the process,
//! and answers the question for holders with the process id as the asker sees it, also across PID
//! namespaces; a number written into a file could do neither.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::handle::SimError;
use crate::world::World;

/// Holders that one target can have.
const SLOTS: u64 = 1024;
/// GPU instances of a GPU, by id, and compute instances of one.
const INSTANCES: u64 = 16;

/// What can be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    gpu: u32,
    /// GPU instance and compute instance; `None` for the whole GPU.
    instance: Option<(u32, u32)>,
}

impl Target {
    /// The whole GPU with that index.
    pub const fn gpu(gpu: u32) -> Self {
        Self {
            gpu,
            instance: None,
        }
    }

    /// A compute instance.
    pub const fn compute(gpu: u32, instance: u32, compute: u32) -> Self {
        Self {
            gpu,
            instance: Some((instance, compute)),
        }
    }

    /// What has that UUID.
    pub fn find(world: &World, uuid: &str) -> Option<Self> {
        let gpus = (0u32..).zip(&world.gpus);
        let all = gpus.flat_map(|(index, gpu)| {
            let slices = gpu.mig_devices().map(move |(instance, compute)| {
                let target = Self::compute(index, instance.id, compute.id);
                (target, gpu.mig_uuid(instance, compute).to_string())
            });
            slices.chain([(Self::gpu(index), gpu.uuid.to_string())])
        });
        all.into_iter()
            .find(|(_, found)| found == uuid)
            .map(|(target, _)| target)
    }

    /// First byte of its range in the file: the GPU as a whole comes before its instances.
    fn start(self) -> u64 {
        let within = self.instance.map_or(0, |(instance, compute)| {
            1 + u64::from(instance) * INSTANCES + u64::from(compute)
        });
        (u64::from(self.gpu) * (1 + INSTANCES * INSTANCES) + within) * SLOTS
    }
}

/// The holders of a world's devices.
#[derive(Debug)]
pub enum Holders {
    /// Of a world in memory: bytes as in the file.
    Memory(Own),
    /// Of a world in a file.
    File(Arc<LockedFile>),
}

/// Bytes that this process has taken.
type Own = Arc<Mutex<BTreeSet<u64>>>;

/// The file of holders. At most one a process and inode, because closing any descriptor of it
/// would drop all record locks that the process has on it.
#[derive(Debug)]
pub struct LockedFile {
    inode: (u64, u64),
    file: File,
    own: Own,
}

static FILES: Mutex<Vec<Weak<LockedFile>>> = Mutex::new(Vec::new());

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The holder's mark. Dropping it ends the hold.
#[derive(Debug)]
pub struct HoldGuard {
    own: Own,
    byte: u64,
    file: Option<Arc<LockedFile>>,
}

impl Holders {
    /// For a world in memory.
    pub fn in_memory() -> Self {
        Self::Memory(Own::default())
    }

    /// For the world in that file.
    ///
    /// # Errors
    /// If the file of holders cannot be opened.
    pub fn beside(world: &Path) -> Result<Self, SimError> {
        let mut name = world.as_os_str().to_owned();
        name.push(".holders");
        let path = Path::new(&name);
        let open = open_once(path);
        let failed = |source| SimError::File {
            action: "lock",
            path: path.to_owned(),
            source,
        };
        open.map(Self::File).map_err(failed)
    }

    fn own(&self) -> &Own {
        match self {
            Self::Memory(own) => own,
            Self::File(file) => &file.own,
        }
    }

    /// Marks this process as holder.
    ///
    /// # Errors
    /// If the system refuses, or the target has 1024 holders.
    pub fn hold(&self, target: Target) -> io::Result<HoldGuard> {
        let mut own = lock(self.own());
        for byte in target.start()..target.start() + SLOTS {
            let taken = match self {
                _ if own.contains(&byte) => false,
                Self::Memory(_) => true,
                Self::File(file) => record_lock(&file.file, libc::F_WRLCK, byte)?,
            };
            if taken {
                own.insert(byte);
                let file = match self {
                    Self::Memory(_) => None,
                    Self::File(file) => Some(file.clone()),
                };
                return Ok(HoldGuard {
                    own: self.own().clone(),
                    byte,
                    file,
                });
            }
        }
        Err(io::Error::other("it has too many holders"))
    }

    /// Process ids of the holders, this process first.
    pub fn list(&self, target: Target) -> Vec<u32> {
        let range = target.start()..target.start() + SLOTS;
        let own = lock(self.own()).range(range.clone()).next().is_some();
        let mut pids: Vec<u32> = own.then(std::process::id).into_iter().collect();
        if let Self::File(file) = self {
            let mut others = holders_in(&file.file, range);
            others.sort_unstable();
            others.dedup();
            pids.append(&mut others);
        }
        pids
    }
}

impl HoldGuard {
    /// Lets the hold pass to the program that this process becomes by `exec`: the kernel keeps the
    /// lock as long as the descriptor stays open.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn keep_over_exec(&self) -> io::Result<()> {
        match &self.file {
            Some(file) => Ok(rustix::io::fcntl_setfd(
                &file.file,
                rustix::io::FdFlags::empty(),
            )?),
            None => Ok(()),
        }
    }
}

impl Drop for HoldGuard {
    fn drop(&mut self) {
        let mut own = lock(&self.own);
        own.remove(&self.byte);
        if let Some(file) = &self.file {
            // Unlocking a byte that is locked cannot fail; if it did, the process's end ends it.
            let _ = record_lock(&file.file, libc::F_UNLCK, self.byte);
        }
    }
}

fn open_once(path: &Path) -> io::Result<Arc<LockedFile>> {
    let mut files = lock(&FILES);
    files.retain(|file| file.strong_count() > 0);
    if let Ok(about) = std::fs::metadata(path) {
        let inode = (about.dev(), about.ino());
        let mut known = files.iter().filter_map(Weak::upgrade);
        if let Some(file) = known.find(|file| file.inode == inode) {
            return Ok(file);
        }
    }
    let mut options = OpenOptions::new();
    let file = options
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(path)?;
    let about = file.metadata()?;
    let inode = (about.dev(), about.ino());
    let file = Arc::new(LockedFile {
        inode,
        file,
        own: Own::default(),
    });
    files.push(Arc::downgrade(&file));
    Ok(file)
}

fn record(kind: i32, start: u64, length: u64) -> libc::flock {
    // SAFETY: `flock` is a C struct of integers, for which all zeros is a value.
    let mut record: libc::flock = unsafe { std::mem::zeroed() };
    record.l_type = kind as libc::c_short;
    record.l_whence = libc::SEEK_SET as libc::c_short;
    record.l_start = start as libc::off_t;
    record.l_len = length as libc::off_t;
    record
}

/// Takes or gives up one byte. False if another process has it.
fn record_lock(file: &File, kind: i32, byte: u64) -> io::Result<bool> {
    let record = record(kind, byte, 1);
    // SAFETY: the descriptor is open, and F_SETLK reads one `flock`.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &record) } {
        0 => Ok(true),
        _ => match io::Error::last_os_error() {
            error if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => Ok(false),
            error => Err(error),
        },
    }
}

/// Process ids of other processes that have a byte of the range.
fn holders_in(file: &File, range: std::ops::Range<u64>) -> Vec<u32> {
    let mut pids = Vec::new();
    let mut ranges = vec![range];
    while let Some(range) = ranges.pop() {
        if range.is_empty() {
            continue;
        }
        let mut record = record(libc::F_WRLCK, range.start, range.end - range.start);
        // SAFETY: the descriptor is open, and F_GETLK reads and writes one `flock`.
        let failed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETLK, &mut record) } != 0;
        if failed || i32::from(record.l_type) == libc::F_UNLCK {
            continue;
        }
        pids.push(u32::try_from(record.l_pid).unwrap_or(0));
        // The kernel answers with any lock in the range, not the first: look on both sides.
        let found = record.l_start as u64;
        ranges.push(range.start..found.max(range.start));
        ranges.push(found + (record.l_len as u64).max(1)..range.end);
    }
    pids
}
