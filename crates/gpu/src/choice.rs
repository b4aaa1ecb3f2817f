// SPDX-License-Identifier: Apache-2.0
//! What only a person at the driver's own tools leaves to the driver, and the state that such tools
//! show. Nothing that plans may use it: where an instance lands without a placement depends on the
//! order of creation.

use units::GpuUuid;

use crate::driver::Driver;
use crate::error::Error;
use crate::raw::{Answer, ask, optional};
use crate::sys::*;
use crate::table::Functions;

/// The state of a GPU from moment to moment; `None` where it does not tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vitals {
    /// Memory in use, in MiB.
    pub memory_used_mib: Option<u64>,
    /// Temperature, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// Power drawn, in milliwatts.
    pub power_mw: Option<u32>,
    /// The most power that it may draw, in milliwatts.
    pub power_limit_mw: Option<u32>,
}

impl Driver {
    /// Creates a GPU instance where the driver wants and returns its id. `profile` is the driver
    /// id. Needs root.
    ///
    /// # Errors
    /// As the driver says: no room, MIG off, no rights.
    pub fn create_gpu_instance_anywhere(&self, gpu: &GpuUuid, profile: u32) -> Result<u32, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let functions = device.functions;
        let created: Answer<nvmlGpuInstance_t> = ask!(
            functions,
            nvmlDeviceCreateGpuInstance(device.handle, profile)
        );
        let info: Answer<nvmlGpuInstanceInfo_t> =
            created.and_then(|created| ask!(functions, nvmlGpuInstanceGetInfo(created)));
        let operation = format!("create a GPU instance of profile {profile}");
        info.map(|info| info.id).map_err(device.failed(operation))
    }

    /// How many more GPU instances of the profile fit now. `profile` is the driver id. Needs root.
    ///
    /// # Errors
    /// As the driver says: MIG off, no rights.
    pub fn remaining_capacity(&self, gpu: &GpuUuid, profile: u32) -> Result<u32, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let answer = ask!(
            device.functions,
            nvmlDeviceGetGpuInstanceRemainingCapacity(device.handle, profile)
        );
        answer.map_err(device.failed("read the remaining capacity"))
    }

    /// The state of a GPU now.
    ///
    /// # Errors
    /// As the driver says.
    pub fn vitals(&self, gpu: &GpuUuid) -> Result<Vitals, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let (functions, handle) = (device.functions, device.handle);
        let failed = || device.failed("read the state");
        let sensor = nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU;
        let memory: Answer<nvmlMemory_t> = ask!(functions, nvmlDeviceGetMemoryInfo(handle));
        let memory = optional(memory).map_err(failed())?;
        let temperature = ask!(functions, nvmlDeviceGetTemperature(handle, sensor));
        let power = ask!(functions, nvmlDeviceGetPowerUsage(handle));
        let limit = ask!(functions, nvmlDeviceGetEnforcedPowerLimit(handle));
        Ok(Vitals {
            memory_used_mib: memory.map(|memory| memory.used >> 20),
            temperature_c: optional(temperature).map_err(failed())?,
            power_mw: optional(power).map_err(failed())?,
            power_limit_mw: optional(limit).map_err(failed())?,
        })
    }
}
