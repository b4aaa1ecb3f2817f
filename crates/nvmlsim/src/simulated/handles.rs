// SPDX-License-Identifier: Apache-2.0
//! NVML's opaque handles: numbers that say what they are of, and of which making of it, so that one
//! that was kept over a destruction, reset or reboot is known to be stale.

use gpu::sys::{nvmlComputeInstance_t, nvmlDevice_t, nvmlEventSet_t, nvmlGpuInstance_t};

use super::pointers::Out;
use crate::code::{Answer, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::world::{Compute, Gpu, Instance, World};

/// What a handle is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Id {
    /// A GPU, by index; of one start of the machine.
    Gpu { gpu: u32, boot: u32 },
    /// A GPU instance.
    GpuInstance {
        gpu: u32,
        instance: u32,
        serial: u32,
    },
    /// A compute instance.
    Compute {
        gpu: u32,
        instance: u32,
        compute: u32,
        serial: u32,
    },
    /// A compute instance as a device.
    Mig {
        gpu: u32,
        instance: u32,
        compute: u32,
        serial: u32,
    },
    /// An event set.
    Events { number: u32 },
}

impl Id {
    /// The number: kind, GPU, GPU instance, compute instance (a byte each, from the top) and
    /// serial. Never null, never small enough to be taken for an integer, never a heap address.
    fn bits(self) -> usize {
        let (kind, gpu, instance, compute, serial) = match self {
            Self::Gpu { gpu, boot } => (0x51, gpu, 0, 0, boot),
            Self::GpuInstance {
                gpu,
                instance,
                serial,
            } => (0x52, gpu, instance, 0, serial),
            Self::Compute {
                gpu,
                instance,
                compute,
                serial,
            } => (0x53, gpu, instance, compute, serial),
            Self::Mig {
                gpu,
                instance,
                compute,
                serial,
            } => (0x54, gpu, instance, compute, serial),
            Self::Events { number } => (0x55, 0, 0, 0, number),
        };
        let bytes = [kind, gpu, instance, compute];
        let high = bytes
            .iter()
            .fold(0usize, |bits, byte| bits << 8 | (*byte as usize & 0xff));
        high << 32 | serial as usize
    }

    /// What the handle is of, as far as the number tells.
    pub fn of<T>(handle: Out<T>) -> Answer<Self> {
        let bits = handle.address();
        let byte = |at: u32| (bits >> at & 0xff) as u32;
        let (gpu, instance, compute, serial) = (byte(48), byte(40), byte(32), bits as u32);
        Ok(match byte(56) {
            0x51 => Self::Gpu { gpu, boot: serial },
            0x52 => Self::GpuInstance {
                gpu,
                instance,
                serial,
            },
            0x53 => Self::Compute {
                gpu,
                instance,
                compute,
                serial,
            },
            0x54 => Self::Mig {
                gpu,
                instance,
                compute,
                serial,
            },
            0x55 => Self::Events { number: serial },
            _ => return Err(INVALID_ARGUMENT),
        })
    }

    /// The handle that a caller gets.
    pub fn handle<T>(self) -> *mut T {
        std::ptr::without_provenance_mut(self.bits())
    }

    fn gpu(self) -> Option<u32> {
        match self {
            Self::Gpu { gpu, .. }
            | Self::GpuInstance { gpu, .. }
            | Self::Compute { gpu, .. }
            | Self::Mig { gpu, .. } => Some(gpu),
            Self::Events { .. } => None,
        }
    }
}

/// An argument of which the GPU is wanted. The method of a handle is found before that of
/// [`NoGpu`], which every other argument has.
pub struct About<'a, T>(pub &'a T);

/// Arguments that are about no GPU.
pub trait NoGpu {
    /// None.
    fn gpu(&self) -> Option<u32> {
        None
    }
}

impl<T> NoGpu for About<'_, T> {}

macro_rules! handles {
    ($($kind:ty),*) => {
        $(
            impl About<'_, $kind> {
                pub fn gpu(&self) -> Option<u32> {
                    // SAFETY: the wrapped handle is only taken apart as a number.
                    let handle = unsafe { super::pointers::Argument::wrap(*self.0) };
                    Id::of(handle).ok().and_then(Id::gpu)
                }
            }
        )*
    };
}
handles!(
    nvmlDevice_t,
    nvmlGpuInstance_t,
    nvmlComputeInstance_t,
    nvmlEventSet_t
);

/// A device of NVML: a GPU, or a compute instance on one.
#[derive(Clone, Copy, Debug)]
pub struct Device<'w> {
    /// Index of the GPU.
    pub index: u32,
    /// The GPU.
    pub gpu: &'w Gpu,
    /// The compute instance, if the device is one.
    pub mig: Option<(&'w Instance, &'w Compute)>,
}

impl<'w> Device<'w> {
    /// Itself, if it is a whole GPU.
    ///
    /// # Errors
    /// `NOT_SUPPORTED`: the question makes no sense for a MIG device.
    pub fn whole(self) -> Answer<Self> {
        if self.mig.is_some() {
            Err(NOT_SUPPORTED)
        } else {
            Ok(self)
        }
    }

    /// Its compute instance.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`: it is a whole GPU.
    pub fn slice(self) -> Answer<(&'w Instance, &'w Compute)> {
        self.mig.ok_or(INVALID_ARGUMENT)
    }
}

impl World {
    /// The handle of a GPU.
    pub fn gpu_id(&self, gpu: u32) -> Id {
        Id::Gpu {
            gpu,
            boot: self.boot,
        }
    }

    /// The device of a handle.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for what is none or no longer one, `GPU_IS_LOST`.
    pub fn device<T>(&self, handle: Out<T>) -> Answer<Device<'_>> {
        match Id::of(handle)? {
            Id::Gpu { gpu: index, boot } if boot == self.boot => Ok(Device {
                index,
                gpu: self.gpu(index)?,
                mig: None,
            }),
            Id::Mig {
                gpu: index,
                instance,
                compute,
                serial,
            } => {
                let gpu = self.gpu(index)?;
                let instance = gpu.instance(instance).map_err(|_| INVALID_ARGUMENT)?;
                let compute = instance.compute(compute).map_err(|_| INVALID_ARGUMENT)?;
                let mig = Some((instance, compute));
                if compute.serial != serial {
                    return Err(INVALID_ARGUMENT);
                }
                Ok(Device { index, gpu, mig })
            }
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The GPU of a device handle, and its index.
    ///
    /// # Errors
    /// As [`World::device`]; `NOT_SUPPORTED` for a MIG device.
    pub fn whole<T>(&self, handle: Out<T>) -> Answer<(u32, &Gpu)> {
        let device = self.device(handle)?.whole()?;
        Ok((device.index, device.gpu))
    }

    /// The GPU instance of a handle, its GPU and that one's index.
    ///
    /// # Errors
    /// As [`World::device`].
    pub fn gpu_instance<T>(&self, handle: Out<T>) -> Answer<(u32, &Gpu, &Instance)> {
        let Id::GpuInstance {
            gpu: index,
            instance,
            serial,
        } = Id::of(handle)?
        else {
            return Err(INVALID_ARGUMENT);
        };
        let gpu = self.gpu(index)?;
        match gpu.instance(instance) {
            Ok(instance) if instance.serial == serial => Ok((index, gpu, instance)),
            _ => Err(INVALID_ARGUMENT),
        }
    }

    /// The compute instance of a handle, what it is in, and the GPU's index.
    ///
    /// # Errors
    /// As [`World::device`].
    pub fn compute_instance<T>(&self, handle: Out<T>) -> Answer<(u32, &Instance, &Compute)> {
        let Id::Compute {
            gpu: index,
            instance,
            compute,
            serial,
        } = Id::of(handle)?
        else {
            return Err(INVALID_ARGUMENT);
        };
        let instance = self
            .gpu(index)?
            .instance(instance)
            .map_err(|_| INVALID_ARGUMENT)?;
        match instance.compute(compute) {
            Ok(compute) if compute.serial == serial => Ok((index, instance, compute)),
            _ => Err(INVALID_ARGUMENT),
        }
    }
}
