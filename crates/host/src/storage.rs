// SPDX-License-Identifier: Apache-2.0
//! Where journal and history are written: a folder, or memory for runs that leave nothing behind.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A few named texts that outlive the process. Small enough that a test can stop the world before
/// and after each write.
pub trait Storage: Send + Sync {
    /// Where a text is, for people.
    fn place(&self, name: &str) -> String {
        name.to_owned()
    }

    /// The whole text; `None` if there is none.
    ///
    /// # Errors
    /// As the system says.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Adds a line, which is on the disk when this returns. A line that could not be written
    /// whole is taken back.
    ///
    /// # Errors
    /// As the system says; the line may be there or not.
    fn append(&self, name: &str, line: &str) -> io::Result<()>;

    /// Makes `text` the whole text, at once or not at all; it is on the disk when this returns.
    ///
    /// # Errors
    /// As the system says; the text is then the old or the new one.
    fn replace(&self, name: &str, text: &str) -> io::Result<()>;

    /// Removes it; it is gone from the disk when this returns.
    ///
    /// # Errors
    /// As the system says; that it was not there is none.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// Files in a folder, readable by their owner alone.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// One writer at a time, so that a torn line can be cut off again. Syncs run outside of it:
    /// the file system bundles those that come together.
    appending: Mutex<()>,
}

impl Folder {
    /// The files of this folder, which need not exist for reading.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            appending: Mutex::new(()),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

impl Storage for Folder {
    fn place(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.path.join(name)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn append(&self, name: &str, line: &str) -> io::Result<()> {
        let mut file = OpenOptions::new().append(true).open(self.path.join(name))?;
        {
            let _alone = self
                .appending
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let length = file.metadata()?.len();
            if let Err(error) = file.write_all(format!("{line}\n").as_bytes()) {
                file.set_len(length)?;
                return Err(error);
            }
        }
        file.sync_data()
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        let fresh = self.path.join(format!("{name}.new"));
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&fresh)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&fresh, self.path.join(name))?;
        self.sync_folder()
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match fs::remove_file(self.path.join(name)) {
            Ok(()) => self.sync_folder(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Texts in memory, for runs that leave nothing behind.
#[derive(Debug, Default)]
pub struct Memory {
    texts: Mutex<BTreeMap<String, String>>,
}

impl Memory {
    fn texts(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Memory {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        Ok(self.texts().get(name).map(|text| text.clone().into_bytes()))
    }

    fn append(&self, name: &str, line: &str) -> io::Result<()> {
        let mut texts = self.texts();
        let text = texts.entry(name.to_owned()).or_default();
        text.push_str(line);
        text.push('\n');
        Ok(())
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        self.texts().insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.texts().remove(name);
        Ok(())
    }
}
