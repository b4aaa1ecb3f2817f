// SPDX-License-Identifier: Apache-2.0
//! PCIe, NVLink and topology. Simulated GPUs have no NVLink; each two neighbours on a NUMA node
//! share a PCIe switch.

use gpu::sys::*;

use super::{Answer, Out, Simulated, version};
use crate::code::{ARGUMENT_VERSION_MISMATCH, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::world::Gpu;

/// Processors of one NUMA node.
const NODE_CPUS: usize = 32;

macro_rules! constants {
    ($($name:ident = $value:expr;)*) => {
        $(
            pub fn $name(
                sim: &Simulated,
                device: Out<nvmlDevice_st>,
                value: Out<c_uint>,
            ) -> Answer<()> {
                sim.world()?.whole(device)?;
                value.put($value)
            }
        )*
    };
}
constants! {
    nvmlDeviceGetCurrPcieLinkGeneration = 5;
    nvmlDeviceGetCurrPcieLinkWidth = 16;
    nvmlDeviceGetMaxPcieLinkGeneration = 5;
    nvmlDeviceGetMaxPcieLinkWidth = 16;
}

pub fn nvmlDeviceGetPcieThroughput(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _counter: nvmlPcieUtilCounter_t,
    value: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    value.put(0)
}

pub fn nvmlDeviceGetTopologyCommonAncestor(
    sim: &Simulated,
    device1: Out<nvmlDevice_st>,
    device2: Out<nvmlDevice_st>,
    path_info: Out<nvmlGpuTopologyLevel_t>,
) -> Answer<()> {
    let world = sim.world()?;
    let ((first, a), (second, b)) = (world.whole(device1)?, world.whole(device2)?);
    let level = if first == second {
        nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL
    } else if a.numa_node != b.numa_node {
        nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM
    } else if first / 2 == second / 2 {
        nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE
    } else {
        nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE
    };
    path_info.put(level)
}

pub fn nvmlDeviceGetP2PStatus(
    sim: &Simulated,
    device1: Out<nvmlDevice_st>,
    device2: Out<nvmlDevice_st>,
    _p2p_index: nvmlGpuP2PCapsIndex_t,
    p2p_status: Out<nvmlGpuP2PStatus_t>,
) -> Answer<()> {
    let world = sim.world()?;
    world.whole(device1)?;
    world.whole(device2)?;
    p2p_status.put(nvmlGpuP2PStatus_enum_NVML_P2P_STATUS_NOT_SUPPORTED)
}

macro_rules! no_links {
    ($($name:ident($($argument:ident: $kind:ty),*);)*) => {
        $(
            pub fn $name(
                sim: &Simulated,
                device: Out<nvmlDevice_st>,
                _link: c_uint,
                $($argument: $kind),*
            ) -> Answer<()> {
                sim.world()?.whole(device)?;
                Err(NOT_SUPPORTED)
            }
        )*
    };
}
no_links! {
    nvmlDeviceGetNvLinkState(_active: Out<nvmlEnableState_t>);
    nvmlDeviceGetNvLinkVersion(_version: Out<c_uint>);
    nvmlDeviceGetNvLinkCapability(_capability: nvmlNvLinkCapability_t, _result: Out<c_uint>);
    nvmlDeviceGetNvLinkRemotePciInfo(_pci: Out<nvmlPciInfo_t>);
    nvmlDeviceGetNvLinkRemotePciInfo_v2(_pci: Out<nvmlPciInfo_t>);
    nvmlDeviceGetNvLinkRemoteDeviceType(_kind: Out<nvmlIntNvLinkDeviceType_t>);
}

/// Writes a set of bits in words of the C `unsigned long`.
fn put_bits(words: c_uint, set: Out<c_ulong>, bits: std::ops::Range<usize>) -> Answer<()> {
    let width = c_ulong::BITS as usize;
    if words == 0 {
        return Err(INVALID_ARGUMENT);
    }
    set.put_all((0..words as usize).map(|word| {
        let inside = (0..width).filter(|bit| bits.contains(&(word * width + bit)));
        inside.fold(0, |mask, bit| mask | 1 << bit)
    }))
}

fn node(gpu: &Gpu) -> usize {
    gpu.numa_node as usize
}

pub fn nvmlDeviceGetMemoryAffinity(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    node_set_size: c_uint,
    node_set: Out<c_ulong>,
    _scope: nvmlAffinityScope_t,
) -> Answer<()> {
    let node = node(sim.world()?.device(device)?.gpu);
    put_bits(node_set_size, node_set, node..node + 1)
}

pub fn nvmlDeviceGetCpuAffinity(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    cpu_set_size: c_uint,
    cpu_set: Out<c_ulong>,
) -> Answer<()> {
    let node = node(sim.world()?.device(device)?.gpu);
    put_bits(
        cpu_set_size,
        cpu_set,
        node * NODE_CPUS..(node + 1) * NODE_CPUS,
    )
}

pub fn nvmlDeviceGetGpuFabricInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    info: Out<nvmlGpuFabricInfo_t>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    info.put(nvmlGpuFabricInfo_t {
        clusterUuid: [0; NVML_GPU_FABRIC_UUID_LEN as usize],
        status: nvmlReturn_enum_NVML_SUCCESS,
        cliqueId: 0,
        state: NVML_GPU_FABRIC_STATE_NOT_SUPPORTED as nvmlGpuFabricState_t,
    })
}

pub fn nvmlDeviceGetGpuFabricInfoV(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    info: Out<nvmlGpuFabricInfoV_t>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    let v2 = nvmlGpuFabricInfo_v2_t {
        version: version::<nvmlGpuFabricInfo_v2_t>(2),
        clusterUuid: [0; NVML_GPU_FABRIC_UUID_LEN as usize],
        status: nvmlReturn_enum_NVML_SUCCESS,
        cliqueId: 0,
        state: NVML_GPU_FABRIC_STATE_NOT_SUPPORTED as nvmlGpuFabricState_t,
        healthMask: 0,
    };
    let v3 = version::<nvmlGpuFabricInfo_v3_t>(3);
    match info.cast::<c_uint>().get()? {
        tag if tag == v2.version => info.cast().put(v2),
        tag if tag == v3 => info.put(nvmlGpuFabricInfo_v3_t {
            version: v3,
            clusterUuid: v2.clusterUuid,
            status: v2.status,
            cliqueId: v2.cliqueId,
            state: v2.state,
            healthMask: v2.healthMask,
            healthSummary: NVML_GPU_FABRIC_HEALTH_SUMMARY_NOT_SUPPORTED as u8,
        }),
        _ => Err(ARGUMENT_VERSION_MISMATCH),
    }
}
