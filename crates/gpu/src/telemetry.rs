// SPDX-License-Identifier: Apache-2.0
//! How much a GPU does, and what a slice has.

use geometry::Engines;
use units::{GpuUuid, MigUuid};

use crate::driver::Driver;
use crate::error::Error;
use crate::raw::{Answer, ask, optional};
use crate::sys::*;
use crate::table::Functions;

/// Share of the last sample period in which a GPU was at work, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Utilization {
    /// A kernel ran.
    pub gpu: u32,
    /// Memory was read or written.
    pub memory: u32,
}

/// What a slice has, as the driver tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceAttributes {
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Engines, shared with the other slices of its GPU instance.
    pub engines: Engines,
    /// Compute slices of the GPU instance.
    pub gpu_slices: u32,
    /// Compute slices of the slice.
    pub compute_slices: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
}

/// Reading what changes from moment to moment, or is asked of a single slice.
pub trait Telemetry: Sync {
    /// How busy a GPU is; `None` where it cannot tell, as with MIG on.
    ///
    /// # Errors
    /// As the driver says.
    fn utilization(&self, gpu: &GpuUuid) -> Result<Option<Utilization>, Error>;

    /// What a slice has.
    ///
    /// # Errors
    /// If there is no such slice, or as the driver says.
    fn attributes(&self, slice: &MigUuid) -> Result<SliceAttributes, Error>;
}

impl Telemetry for Driver {
    fn utilization(&self, gpu: &GpuUuid) -> Result<Option<Utilization>, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let answer: Answer<nvmlUtilization_t> = ask!(
            device.functions,
            nvmlDeviceGetUtilizationRates(device.handle)
        );
        let rates = optional(answer).map_err(device.failed("read the utilisation"))?;
        Ok(rates.map(|rates| Utilization {
            gpu: rates.gpu,
            memory: rates.memory,
        }))
    }

    fn attributes(&self, slice: &MigUuid) -> Result<SliceAttributes, Error> {
        let session = self.session()?;
        let answer: Answer<nvmlDeviceAttributes_t> = session
            .mig_device(slice)
            .and_then(|device| ask!(session.functions, nvmlDeviceGetAttributes_v2(device)));
        let attributes = answer.map_err(|code| Error::Call {
            operation: format!("read the attributes of {slice}"),
            gpu: None,
            code,
        })?;
        let engine = |count: c_uint| count.min(255) as u8;
        Ok(SliceAttributes {
            multiprocessors: attributes.multiprocessorCount,
            engines: Engines {
                copy: engine(attributes.sharedCopyEngineCount),
                decoders: engine(attributes.sharedDecoderCount),
                encoders: engine(attributes.sharedEncoderCount),
                jpeg: engine(attributes.sharedJpegCount),
                ofa: engine(attributes.sharedOfaCount),
            },
            gpu_slices: attributes.gpuInstanceSliceCount,
            compute_slices: attributes.computeInstanceSliceCount,
            memory_mib: attributes.memorySizeMB,
        })
    }
}
