// SPDX-License-Identifier: Apache-2.0
//! How GPUs are connected: with each other, and to an NVLink fabric.

use units::GpuUuid;

use crate::driver::{Device, Driver, Session};
use crate::error::{Error, NvmlCode};
use crate::raw::{Answer, ask, check, optional, version_tag, zeroed};
use crate::sys::*;
use crate::table::Functions;

/// The nearest thing on the way between two GPUs that both hang on
/// (`nvmlDeviceGetTopologyCommonAncestor`), farthest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommonAncestor {
    /// The machine: the way crosses the link between processors.
    System,
    /// A NUMA node.
    Node,
    /// A host bridge.
    HostBridge,
    /// Several PCIe switches.
    MultipleSwitches,
    /// One PCIe switch.
    SingleSwitch,
    /// The board: both are on one card.
    Board,
}

/// The connection of two GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    /// One of them.
    pub one: GpuUuid,
    /// The other.
    pub other: GpuUuid,
    /// Where their ways over PCIe meet.
    pub ancestor: CommonAncestor,
    /// Active NVLinks that go directly from one to the other. Those by way of an NVSwitch do not
    /// count: they join all GPUs alike.
    pub nvlinks: u32,
}

/// The part of an NVLink fabric that a GPU is registered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FabricClique {
    /// UUID of the cluster, as 32 digits in groups.
    pub cluster_uuid: String,
    /// Clique within the cluster.
    pub clique_id: u32,
}

/// Reading how GPUs are connected. That takes many calls, and the answers hold as long as the GPUs
/// are there.
pub trait Topology: Sync {
    /// The connections of all pairs of these GPUs. Pairs of which the driver does not tell are left
    /// out.
    ///
    /// # Errors
    /// If there is no such GPU, or as the driver says.
    fn connections(&self, gpus: &[GpuUuid]) -> Result<Vec<Connection>, Error>;

    /// The fabric that a GPU is registered with; `None` where it is on none, or registration has
    /// not succeeded (yet).
    ///
    /// # Errors
    /// If there is no such GPU, or as the driver says.
    fn fabric(&self, gpu: &GpuUuid) -> Result<Option<FabricClique>, Error>;
}

/// Domain, bus and device of a PCI function.
type PciPlace = (u32, u32, u32);

impl Topology for Driver {
    fn connections(&self, gpus: &[GpuUuid]) -> Result<Vec<Connection>, Error> {
        let session = self.session()?;
        let open = |gpu| Linked::open(&session, gpu);
        let linked = gpus.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let mut connections = Vec::new();
        for (at, one) in linked.iter().enumerate() {
            for other in &linked[at + 1..] {
                connections.extend(one.connection(other)?);
            }
        }
        Ok(connections)
    }

    fn fabric(&self, gpu: &GpuUuid) -> Result<Option<FabricClique>, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let mut info: nvmlGpuFabricInfo_v2_t = zeroed();
        info.version = version_tag::<nvmlGpuFabricInfo_v2_t>(2);
        // SAFETY: the handle is of this session. The function takes any version of the struct and
        // writes as much as the version's tag says.
        let code = unsafe {
            let info = (&raw mut info).cast();
            device
                .functions
                .nvmlDeviceGetGpuFabricInfoV(device.handle, info)
        };
        let failed = || device.failed("read the NVLink fabric");
        let answer = match check(code) {
            Err(NvmlCode::ARGUMENT_VERSION_MISMATCH) => None,
            answer => optional(answer).map_err(failed())?,
        };
        if answer.is_some() {
            let (state, status) = (info.state, info.status);
            return Ok(clique(state, status, info.clusterUuid, info.cliqueId));
        }
        let older: Answer<nvmlGpuFabricInfo_t> =
            ask!(device.functions, nvmlDeviceGetGpuFabricInfo(device.handle));
        let older = optional(older).map_err(failed())?;
        Ok(older.and_then(|info| clique(info.state, info.status, info.clusterUuid, info.cliqueId)))
    }
}

/// A registration that has come to an end, and to a good one.
fn clique(
    state: nvmlGpuFabricState_t,
    status: nvmlReturn_t,
    cluster: [u8; NVML_GPU_FABRIC_UUID_LEN as usize],
    clique_id: u32,
) -> Option<FabricClique> {
    let ended = u32::from(state) == NVML_GPU_FABRIC_STATE_COMPLETED;
    let bits = u128::from_be_bytes(cluster);
    if !ended || status != nvmlReturn_enum_NVML_SUCCESS || bits == 0 {
        return None;
    }
    let digits = format!("{bits:032x}");
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    Some(FabricClique {
        cluster_uuid: groups.join("-"),
        clique_id,
    })
}

/// A GPU, its place, and the places that its active NVLinks go to.
struct Linked<'s> {
    device: Device<'s>,
    place: PciPlace,
    peers: Vec<PciPlace>,
}

impl<'s> Linked<'s> {
    fn open(session: &'s Session<'_>, gpu: &GpuUuid) -> Result<Self, Error> {
        let device = session.device(gpu)?;
        let pci: nvmlPciInfo_t = ask!(device.functions, nvmlDeviceGetPciInfo_v3(device.handle))
            .map_err(device.failed("read the PCI address"))?;
        let peers = peers(&device).map_err(device.failed("read the NVLinks"))?;
        Ok(Self {
            device,
            place: place(&pci),
            peers,
        })
    }

    fn connection(&self, other: &Self) -> Result<Option<Connection>, Error> {
        let (device, peer) = (&self.device, &other.device);
        let level: Answer<nvmlGpuTopologyLevel_t> = ask!(
            device.functions,
            nvmlDeviceGetTopologyCommonAncestor(device.handle, peer.handle)
        );
        let operation = format!("read the connection with {}", peer.gpu);
        let level = optional(level).map_err(device.failed(operation))?;
        let nvlinks = self.peers.iter().filter(|peer| **peer == other.place);
        let nvlinks = u32::try_from(nvlinks.count()).unwrap_or(u32::MAX);
        let connection = |ancestor| Connection {
            one: device.gpu.clone(),
            other: peer.gpu.clone(),
            ancestor,
            nvlinks,
        };
        Ok(level.and_then(ancestor).map(connection))
    }
}

fn place(pci: &nvmlPciInfo_t) -> PciPlace {
    (pci.domain, pci.bus, pci.device)
}

/// Where the active NVLinks of a GPU go to. A GPU may lack any of them, also one between others.
fn peers(device: &Device<'_>) -> Answer<Vec<PciPlace>> {
    let mut peers = Vec::new();
    for link in 0..NVML_NVLINK_MAX_LINKS {
        peers.extend(peer(device, link)?);
    }
    Ok(peers)
}

/// Where one link goes to, if it is there and active.
fn peer(device: &Device<'_>, link: u32) -> Answer<Option<PciPlace>> {
    let (functions, handle) = (device.functions, device.handle);
    let state: Answer<nvmlEnableState_t> = ask!(functions, nvmlDeviceGetNvLinkState(handle, link));
    let state = match state {
        // So drivers answer for a link beyond the last.
        Err(NvmlCode::INVALID_ARGUMENT) => None,
        state => optional(state)?,
    };
    if state != Some(nvmlEnableState_enum_NVML_FEATURE_ENABLED) {
        return Ok(None);
    }
    let mut remote: Answer<nvmlPciInfo_t> =
        ask!(functions, nvmlDeviceGetNvLinkRemotePciInfo_v2(handle, link));
    if matches!(remote, Err(NvmlCode::FUNCTION_NOT_FOUND)) {
        // It fills the same struct but for the longer text of the address.
        remote = ask!(functions, nvmlDeviceGetNvLinkRemotePciInfo(handle, link));
    }
    Ok(optional(remote)?.map(|pci| place(&pci)))
}

/// NVML's names for where ways meet.
const ANCESTORS: [(nvmlGpuTopologyLevel_t, CommonAncestor); 6] = [
    (
        nvmlGpuLevel_enum_NVML_TOPOLOGY_INTERNAL,
        CommonAncestor::Board,
    ),
    (
        nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
        CommonAncestor::SingleSwitch,
    ),
    (
        nvmlGpuLevel_enum_NVML_TOPOLOGY_MULTIPLE,
        CommonAncestor::MultipleSwitches,
    ),
    (
        nvmlGpuLevel_enum_NVML_TOPOLOGY_HOSTBRIDGE,
        CommonAncestor::HostBridge,
    ),
    (nvmlGpuLevel_enum_NVML_TOPOLOGY_NODE, CommonAncestor::Node),
    (
        nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
        CommonAncestor::System,
    ),
];

fn ancestor(level: nvmlGpuTopologyLevel_t) -> Option<CommonAncestor> {
    let row = ANCESTORS.iter().find(|(number, _)| *number == level);
    row.map(|(_, ancestor)| *ancestor)
}
