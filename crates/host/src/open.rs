// SPDX-License-Identifier: Apache-2.0
//! A driver with its reset, open for a [`Host`](crate::Host), for callers that do not use `gpu`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use gpu::{CallCounts, Functions, LIBRARY_NAME, Reset, SmiReset};
use units::GpuUuid;

use crate::error::Error;
use crate::hardware::Driver;

/// Where distributions and driver containers put libraries, below the driver root.
const LIBRARY_FOLDERS: [&str; 6] = [
    "usr/lib64",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "lib64",
    "lib/x86_64-linux-gnu",
    "lib/aarch64-linux-gnu",
];

/// How long a reset may take.
const RESET_TIMEOUT: Duration = Duration::from_secs(300);

/// An open driver. As [`Reset`] it closes its own handles first.
pub struct OpenDriver {
    driver: gpu::Driver,
    reset: Box<dyn Reset + Send>,
}

impl OpenDriver {
    /// Opens the driver of this machine; `root` is where it is installed if not at `/`, such as
    /// `/run/nvidia/driver`.
    ///
    /// # Errors
    /// If there is none, or it cannot be opened.
    pub fn of_machine(root: Option<&Path>) -> Result<Self, Error> {
        let root = root.filter(|root| *root != Path::new("/"));
        let reset = SmiReset {
            nvidia_smi: PathBuf::from("nvidia-smi"),
            driver_root: root.map(Path::to_path_buf),
            timeout: RESET_TIMEOUT,
        };
        let driver = gpu::Driver::load(root.map(library).as_deref())?;
        Ok(Self {
            driver,
            reset: Box::new(reset),
        })
    }

    /// A driver of these functions, such as the simulator's, with its own way to reset.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn of_functions(
        functions: Arc<dyn Functions>,
        reset: Box<dyn Reset + Send>,
    ) -> Result<Self, Error> {
        let driver = gpu::Driver::new(functions)?;
        Ok(Self { driver, reset })
    }

    /// The driver.
    pub fn driver(&self) -> &dyn Driver {
        &self.driver
    }

    /// The driver with all that it can be asked.
    pub fn gpu(&self) -> &gpu::Driver {
        &self.driver
    }

    /// How often the driver was called so far.
    pub fn calls(&self) -> CallCounts {
        self.driver.calls()
    }
}

impl Reset for OpenDriver {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), gpu::Error> {
        self.driver.while_closed(|| self.reset.reset(gpus))?
    }
}

/// The driver's library below a driver root; where it is missing, the likeliest place, for the
/// error to name.
fn library(root: &Path) -> PathBuf {
    let paths = LIBRARY_FOLDERS.map(|folder| root.join(folder).join(LIBRARY_NAME));
    let found = paths.iter().find(|path| path.exists());
    found.unwrap_or(&paths[0]).clone()
}
