// SPDX-License-Identifier: Apache-2.0
//! Processes on a device: its holders.

use gpu::sys::*;

use super::identity::HOLDER_MEMORY;
use super::{Answer, Out, Simulated};
use crate::code::{INSUFFICIENT_SIZE, NOT_FOUND};
use crate::holders::Target;
use crate::simulated::Device;

/// What stands for "no instance" in a process' answer (source: nvml.h).
const NO_INSTANCE: c_uint = c_uint::MAX;

/// The holders of a device: process id, GPU instance, compute instance. Of a GPU with MIG also
/// those of its instances.
pub fn holders(sim: &Simulated, device: Device<'_>) -> Vec<(u32, u32, u32)> {
    let of = |target, gi: u32, ci: u32| {
        let pids = sim.handle().holders(target).into_iter();
        pids.map(move |pid| (pid, gi, ci))
    };
    let slice = |(instance, compute): (&crate::world::Instance, &crate::world::Compute)| {
        let target = Target::compute(device.index, instance.id, compute.id);
        of(target, instance.id, compute.id)
    };
    match device.mig {
        Some(pair) => slice(pair).collect(),
        None => {
            let whole = of(Target::gpu(device.index), NO_INSTANCE, NO_INSTANCE);
            whole
                .chain(device.gpu.mig_devices().flat_map(slice))
                .collect()
        }
    }
}

/// Writes the list, or says how long the array must be.
fn list<T>(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    count: Out<c_uint>,
    infos: Out<T>,
    make: fn((u32, u32, u32)) -> T,
) -> Answer<()> {
    let world = sim.world()?;
    let holders = holders(sim, world.device(device)?);
    let room = count.get()?;
    count.put(holders.len() as c_uint)?;
    if holders.len() > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    if holders.is_empty() {
        return Ok(());
    }
    infos.put_all(holders.into_iter().map(make))
}

fn v1((pid, _, _): (u32, u32, u32)) -> nvmlProcessInfo_v1_t {
    nvmlProcessInfo_v1_t {
        pid,
        usedGpuMemory: HOLDER_MEMORY,
    }
}

fn v2((pid, gi, ci): (u32, u32, u32)) -> nvmlProcessInfo_v2_t {
    nvmlProcessInfo_v2_t {
        pid,
        usedGpuMemory: HOLDER_MEMORY,
        gpuInstanceId: gi,
        computeInstanceId: ci,
    }
}

pub fn nvmlDeviceGetComputeRunningProcesses(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    count: Out<c_uint>,
    infos: Out<nvmlProcessInfo_v1_t>,
) -> Answer<()> {
    list(sim, device, count, infos, v1)
}

pub fn nvmlDeviceGetComputeRunningProcesses_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    count: Out<c_uint>,
    infos: Out<nvmlProcessInfo_v2_t>,
) -> Answer<()> {
    list(sim, device, count, infos, v2)
}

pub fn nvmlDeviceGetComputeRunningProcesses_v3(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    count: Out<c_uint>,
    infos: Out<nvmlProcessInfo_t>,
) -> Answer<()> {
    list(sim, device, count, infos, v2)
}

macro_rules! none {
    ($($name:ident: $kind:ty),* $(,)?) => {
        $(
            /// The simulator has no processes of this kind.
            pub fn $name(
                sim: &Simulated,
                device: Out<nvmlDevice_st>,
                count: Out<c_uint>,
                _infos: Out<$kind>,
            ) -> Answer<()> {
                sim.world()?.device(device)?;
                count.put(0)
            }
        )*
    };
}
none!(
    nvmlDeviceGetGraphicsRunningProcesses: nvmlProcessInfo_v1_t,
    nvmlDeviceGetGraphicsRunningProcesses_v2: nvmlProcessInfo_v2_t,
    nvmlDeviceGetGraphicsRunningProcesses_v3: nvmlProcessInfo_t,
    nvmlDeviceGetMPSComputeRunningProcesses: nvmlProcessInfo_v1_t,
    nvmlDeviceGetMPSComputeRunningProcesses_v2: nvmlProcessInfo_v2_t,
    nvmlDeviceGetMPSComputeRunningProcesses_v3: nvmlProcessInfo_t,
);

/// Nothing computes here, so there are no samples.
pub fn nvmlDeviceGetProcessUtilization(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _utilization: Out<nvmlProcessUtilizationSample_t>,
    process_samples_count: Out<c_uint>,
    _last_seen_time_stamp: c_ulonglong,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    process_samples_count.put(0)?;
    Err(NOT_FOUND)
}
