// SPDX-License-Identifier: Apache-2.0
//! A world in a file that processes share.
//!
//! Writers take the lock `FILE.lock` and put a new file in the old one's place, so that a reader needs
//! no lock and always finds a whole world, wherever a writer was killed. That holds for killed
//! processes; a power cut may cost the last changes of what is a simulation.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use crate::handle::SimError;
use crate::world::World;

/// The file of a world, and which version of it was read last.
#[derive(Debug)]
pub struct WorldFile {
    path: PathBuf,
    /// The file as read last. It stays open, so that its inode number cannot be given to a newer
    /// one: the number alone tells whether the file was replaced.
    read: File,
    inode: (u64, u64),
}

/// The right to replace the file. Given up when dropped, and by the kernel when the process ends.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code)] File);

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

fn failed<'a>(action: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> SimError + 'a {
    move |source| SimError::File {
        action,
        path: path.to_owned(),
        source,
    }
}

fn lock(path: &Path) -> Result<Lock, SimError> {
    let path = beside(path, ".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(&path);
    let file = file.map_err(failed("lock", &path))?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(failed("lock", &path)(errno.into())),
        }
    }
}

fn replace(path: &Path, world: &World) -> Result<(), SimError> {
    let new = beside(path, ".new");
    let json = serde_json::to_vec(world).map_err(std::io::Error::from);
    json.and_then(|json| {
        // What a killed writer left may be open at a reader: it must not be written over.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => std::fs::write(&new, json)?,
        }
        swap(&new, path)
    })
    .map_err(failed("write", path))
}

/// Puts the new file in the place of the old one, if there is one. Where the file system can
/// exchange the two, the old one is removed afterwards: ext4 waits for the disk when a rename
/// replaces a file (0.7 ms measured), and nothing here has to outlive a power cut.
fn swap(new: &Path, path: &Path) -> std::io::Result<()> {
    match renameat_with(CWD, new, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => std::fs::remove_file(new),
        Err(_) => std::fs::rename(new, path),
    }
}

fn read(path: &Path) -> Result<(File, (u64, u64), World), SimError> {
    let failed = failed("read", path);
    let mut file = File::open(path).map_err(&failed)?;
    let about = file.metadata().map_err(&failed)?;
    let mut json = Vec::new();
    file.read_to_end(&mut json).map_err(&failed)?;
    let not_a_world = |reason| SimError::NotAWorld {
        path: path.to_owned(),
        reason,
    };
    let world: World =
        serde_json::from_slice(&json).map_err(|error| not_a_world(error.to_string()))?;
    world.check().map_err(not_a_world)?;
    Ok((file, (about.dev(), about.ino()), world))
}

impl WorldFile {
    /// Writes a new file.
    ///
    /// # Errors
    /// If there is one already, or it cannot be written.
    pub fn create(path: &Path, world: &World) -> Result<(), SimError> {
        let _lock = lock(path)?;
        match std::fs::symlink_metadata(path) {
            Ok(_) => Err(SimError::Exists {
                path: path.to_owned(),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => replace(path, world),
            Err(error) => Err(failed("write", path)(error)),
        }
    }

    /// Opens and reads a file.
    ///
    /// # Errors
    /// If it cannot be read or is not a world.
    pub fn open(path: &Path) -> Result<(Self, World), SimError> {
        let path = std::fs::canonicalize(path).map_err(failed("read", path))?;
        let (read, inode, world) = read(&path)?;
        Ok((Self { path, read, inode }, world))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits for the right to replace the file.
    ///
    /// # Errors
    /// If the lock file cannot be written.
    pub fn lock(&self) -> Result<Lock, SimError> {
        lock(&self.path)
    }

    /// The world, if the file is not the one that was read last.
    ///
    /// # Errors
    /// If it cannot be read or is no longer a world.
    pub fn read_if_changed(&mut self) -> Result<Option<World>, SimError> {
        let about = std::fs::metadata(&self.path).map_err(failed("read", &self.path))?;
        if (about.dev(), about.ino()) == self.inode {
            return Ok(None);
        }
        let (file, inode, world) = read(&self.path)?;
        (self.read, self.inode) = (file, inode);
        Ok(Some(world))
    }

    /// Replaces the file; the caller holds the lock.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write(&mut self, world: &World) -> Result<(), SimError> {
        replace(&self.path, world)?;
        let file = File::open(&self.path).map_err(failed("read", &self.path))?;
        let about = file.metadata().map_err(failed("read", &self.path))?;
        (self.read, self.inode) = (file, (about.dev(), about.ino()));
        Ok(())
    }
}
