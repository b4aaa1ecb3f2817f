// SPDX-License-Identifier: Apache-2.0
//! The simulated machine that the clients see: boards of several kinds, with slices on most.

use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use gpu::{ClosedReset, Driver, Instances, MigMode, ReadGpus, Reset};
use nvmlsim::{Handle, Options, Simulated, Spec, World, device_files};
use publish::Node;
use snapshot::{Reader, Roots};
use units::Mode;

use crate::error::Error;

/// Two of the first, so that one can stay uncut; one without MIG at all.
const BOARDS: &str = "2xH100-80GB-SXM,1xA100-40GB,1xA30,1xRTX-PRO-6000-SE,1xT4";

/// Index of the GPU whose MIG mode stays off.
const UNCUT: u32 = 1;

/// A simulated machine in a file, and our own driver on it.
pub struct Machine {
    driver: Driver,
    file: PathBuf,
    /// What the kernel shows of the capability devices.
    minors: String,
}

impl Machine {
    /// A new machine in a file in `folder`. Every GPU with MIG but one is cut, into an instance of
    /// each profile as long as there is room.
    ///
    /// # Errors
    /// If the simulator fails.
    pub fn set_up(folder: &Path) -> Result<Self, Error> {
        let failed = |error: &dyn Display| Error::interop("set up the simulated machine", error);
        std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
        let file = folder.join("world.json");
        if file.exists() {
            std::fs::remove_file(&file).map_err(|error| failed(&error))?;
        }
        let spec: Spec = BOARDS.parse().map_err(|error| failed(&error))?;
        let world = World::create(&spec, &Options::default());
        let handle = Handle::create(&file, &world).map_err(|error| failed(&error))?;
        let simulated = Arc::new(Simulated::new(handle));
        let driver = Driver::new(simulated.clone()).map_err(|error| failed(&error))?;
        let machine = Self {
            driver,
            file,
            minors: device_files::mig_minors(&world),
        };
        for gpu in machine.inventory()?.gpus {
            if gpu.mode.is_some() && gpu.index != UNCUT {
                machine
                    .cut(&gpu, simulated.as_ref())
                    .map_err(|error| failed(&error))?;
            }
        }
        Ok(machine)
    }

    fn cut(&self, gpu: &Gpu, reset: &dyn Reset) -> Result<(), gpu::Error> {
        let (driver, uuid) = (&self.driver, &gpu.uuid);
        driver.set_mode(uuid, true)?;
        if driver.mode(uuid)?.is_some_and(Mode::is_pending) {
            ClosedReset::new(driver, reset).reset(std::slice::from_ref(uuid))?;
        }
        for profile in &gpu.board.profiles {
            let place = |place| driver.create_gpu_instance(uuid, profile.driver_id, place);
            let Some(id) = profile.placements.iter().find_map(|at| place(*at).ok()) else {
                continue;
            };
            // Two compute instances where there is room for two, else the whole.
            let half = profile
                .compute
                .iter()
                .find(|compute| compute.max_instances == 2);
            let count = if half.is_some() { 2 } else { 1 };
            for compute in half.or(profile.full_compute()).iter().cycle().take(count) {
                driver.create_compute_instance(uuid, id, compute.driver_id, None)?;
            }
        }
        Ok(())
    }

    /// What our own driver reads.
    ///
    /// # Errors
    /// If the simulator fails.
    pub fn inventory(&self) -> Result<Inventory, Error> {
        let failed = |error: &dyn Display| Error::interop("read the simulated machine", error);
        self.driver.inventory().map_err(|error| failed(&error))
    }

    /// All that is read of a node, with the files of Linux in `folder`.
    ///
    /// # Errors
    /// If the simulator fails, or the files cannot be written.
    pub fn node(&self, folder: &Path) -> Result<Node, Error> {
        let failed = |error: &dyn Display| Error::interop("read the simulated machine", error);
        let caps = folder.join("nvidia-caps");
        std::fs::create_dir_all(&caps).map_err(|error| failed(&error))?;
        let written = std::fs::write(caps.join("mig-minors"), &self.minors);
        written.map_err(|error| failed(&error))?;
        let mut reader = Reader::new(Roots {
            sys: folder.join("sys"),
            proc_driver: folder.to_owned(),
            dev: folder.to_owned(),
        });
        let reading = reader.read(&self.driver, &folder.join("product"));
        Ok(reading.map_err(|error| failed(&error))?.node)
    }

    /// A GPU instance with one compute instance of full size, as GPU index and instance, after it
    /// was removed: a place that is free.
    ///
    /// # Errors
    /// If the simulator fails, or there is no such instance.
    pub fn make_room(&self) -> Result<(Gpu, GpuInstance), Error> {
        let failed =
            |error: &dyn Display| Error::interop("make room on the simulated machine", error);
        for gpu in self.inventory()?.gpus {
            let whole = |instance: &&GpuInstance| matches!(instance.compute.as_slice(), [one] if !one.profile.is_partial());
            if let Some(instance) = gpu.instances.iter().find(whole).cloned() {
                for compute in &instance.compute {
                    let (gi, ci) = (instance.id, compute.id);
                    let gone = self.driver.destroy_compute_instance(&gpu.uuid, gi, ci);
                    gone.map_err(|error| failed(&error))?;
                }
                let gone = self.driver.destroy_gpu_instance(&gpu.uuid, instance.id);
                gone.map_err(|error| failed(&error))?;
                return Ok((gpu, instance));
            }
        }
        Err(failed(&"no GPU instance holds one compute instance"))
    }

    /// The GPU instance that has the profile and place of this one, with compute instances.
    ///
    /// # Errors
    /// If the simulator fails.
    pub fn at(&self, gpu: &Gpu, wanted: &GpuInstance) -> Result<Option<GpuInstance>, Error> {
        let failed = |error: &dyn Display| Error::interop("read the simulated machine", error);
        let mut instances = self
            .driver
            .instances(&gpu.uuid)
            .map_err(|error| failed(&error))?
            .into_iter();
        Ok(instances.find(|instance| {
            instance.placement == wanted.placement && instance.driver_id == wanted.driver_id
        }))
    }

    /// What makes a client load `library` on this machine: both must be told by the environment.
    ///
    /// # Errors
    /// If the library cannot be put where clients find it under NVML's name.
    pub fn environment(&self, library: &Path) -> Result<Vec<(&'static str, OsString)>, Error> {
        let folder = self.file.with_file_name("lib");
        let link = folder.join(gpu::LIBRARY_NAME);
        let failed = |error: &dyn Display| Error::interop("link the simulated library", error);
        std::fs::create_dir_all(&folder).map_err(|error| failed(&error))?;
        if link.is_symlink() {
            std::fs::remove_file(&link).map_err(|error| failed(&error))?;
        }
        std::os::unix::fs::symlink(library, &link).map_err(|error| failed(&error))?;
        Ok(vec![
            ("LD_LIBRARY_PATH", folder.into()),
            ("NVMLSIM_WORLD", self.file.clone().into()),
        ])
    }
}
