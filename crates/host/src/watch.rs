// SPDX-License-Identifier: Apache-2.0
//! A driver that tells what it is about to change, for those who wait.

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use gpu::{Error, Instances, MigMode, ReadGpus, Reset};
use units::{GpuUuid, Mode, Placement};

use crate::hardware::Driver;

/// Passes everything on, and tells of each change before it is asked for.
pub struct Watched<'a> {
    /// The driver.
    pub driver: &'a dyn Driver,
    /// Its reset.
    pub reset: &'a dyn Reset,
    /// Is told the GPU and what comes, in words. Called from the thread that makes the change.
    pub tell: &'a (dyn Fn(&GpuUuid, String) + Sync),
}

impl ReadGpus for Watched<'_> {
    fn inventory(&self) -> Result<Inventory, Error> {
        self.driver.inventory()
    }

    fn gpu(&self, gpu: &GpuUuid) -> Result<Gpu, Error> {
        self.driver.gpu(gpu)
    }
}

impl Instances for Watched<'_> {
    fn instances(&self, gpu: &GpuUuid) -> Result<Vec<GpuInstance>, Error> {
        self.driver.instances(gpu)
    }

    fn create_gpu_instance(
        &self,
        gpu: &GpuUuid,
        profile: u32,
        placement: Placement,
    ) -> Result<u32, Error> {
        (self.tell)(gpu, format!("create the GPU instance at {placement}"));
        self.driver.create_gpu_instance(gpu, profile, placement)
    }

    fn destroy_gpu_instance(&self, gpu: &GpuUuid, instance: u32) -> Result<(), Error> {
        (self.tell)(gpu, format!("destroy GPU instance {instance}"));
        self.driver.destroy_gpu_instance(gpu, instance)
    }

    fn create_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Result<u32, Error> {
        (self.tell)(
            gpu,
            format!("create a compute instance in GPU instance {instance}"),
        );
        self.driver
            .create_compute_instance(gpu, instance, profile, placement)
    }

    fn destroy_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        compute: u32,
    ) -> Result<(), Error> {
        (self.tell)(
            gpu,
            format!("destroy compute instance {compute} of GPU instance {instance}"),
        );
        self.driver.destroy_compute_instance(gpu, instance, compute)
    }
}

impl MigMode for Watched<'_> {
    fn mode(&self, gpu: &GpuUuid) -> Result<Option<Mode>, Error> {
        self.driver.mode(gpu)
    }

    fn set_mode(&self, gpu: &GpuUuid, on: bool) -> Result<(), Error> {
        (self.tell)(gpu, format!("turn MIG {}", if on { "on" } else { "off" }));
        self.driver.set_mode(gpu, on)
    }
}

impl Reset for Watched<'_> {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), Error> {
        for gpu in gpus {
            (self.tell)(gpu, "reset".to_owned());
        }
        self.reset.reset(gpus)
    }
}
