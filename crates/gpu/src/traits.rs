// SPDX-License-Identifier: Apache-2.0
//! What callers may ask of a driver, one small trait a concern.

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use units::{GpuUuid, Mode, Placement};

use crate::error::Error;

/// Reading. Needs no rights but to open the device (placements and instance lists need root).
pub trait ReadGpus: Sync {
    /// Everything about every GPU.
    ///
    /// # Errors
    /// If the driver or one of its GPUs cannot be asked. GPUs that fell off the bus are no error:
    /// they are in [`Inventory::lost`].
    fn inventory(&self) -> Result<Inventory, Error>;

    /// Everything about one GPU.
    ///
    /// # Errors
    /// If there is no such GPU, or it cannot be read.
    fn gpu(&self, gpu: &GpuUuid) -> Result<Gpu, Error>;
}

/// Instances of one GPU: list, create, destroy. Needs root.
pub trait Instances: Sync {
    /// The GPU instances with their compute instances, by rising start. Cheaper than
    /// [`ReadGpus::gpu`].
    ///
    /// # Errors
    /// As the driver says; a GPU whose MIG mode is off has none.
    fn instances(&self, gpu: &GpuUuid) -> Result<Vec<GpuInstance>, Error>;

    /// Creates a GPU instance at this place and returns its id. `profile` is the driver id.
    ///
    /// # Errors
    /// As the driver says: no room, MIG off, no rights.
    fn create_gpu_instance(
        &self,
        gpu: &GpuUuid,
        profile: u32,
        placement: Placement,
    ) -> Result<u32, Error>;

    /// Destroys a GPU instance that has no compute instances.
    ///
    /// # Errors
    /// In use, if it still has compute instances or processes; not found.
    fn destroy_gpu_instance(&self, gpu: &GpuUuid, instance: u32) -> Result<(), Error>;

    /// Creates a compute instance and returns its id. `profile` is the driver id; without a
    /// placement the driver chooses.
    ///
    /// # Errors
    /// As the driver says: no room, no such instance, no rights.
    fn create_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Result<u32, Error>;

    /// Destroys a compute instance.
    ///
    /// # Errors
    /// In use, if a process has it open; not found.
    fn destroy_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        compute: u32,
    ) -> Result<(), Error>;
}

/// MIG mode of one GPU.
pub trait MigMode: Sync {
    /// The mode; `None` on a GPU without MIG.
    ///
    /// # Errors
    /// As the driver says.
    fn mode(&self, gpu: &GpuUuid) -> Result<Option<Mode>, Error>;

    /// Asks for MIG on or off. That it was accepted does not mean that it is in force: read
    /// [`MigMode::mode`]. Needs root.
    ///
    /// # Errors
    /// As the driver says: in use, not supported, no rights.
    fn set_mode(&self, gpu: &GpuUuid, on: bool) -> Result<(), Error>;
}

/// Reset of GPUs, which NVML does not have: the driver's `nvidia-smi` does it, or the simulator.
pub trait Reset: Sync {
    /// Resets the GPUs together, after this process has closed its handles on them.
    ///
    /// # Errors
    /// If they are in use, need peers that are not named, or cannot be reset at all.
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error>;
}
