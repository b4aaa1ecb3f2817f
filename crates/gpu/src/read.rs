// SPDX-License-Identifier: Apache-2.0
//! The inventory: everything about the GPUs, and MIG mode.

use geometry::inventory::{ComputeInstance, Gpu, Holder, Inventory};
use units::{GpuUuid, Mode, PciDevice};

use crate::board::BoardFacts;
use crate::calls::Counted;
use crate::driver::{Device, Driver, Session};
use crate::error::{Error, NvmlCode};
use crate::raw::{Answer, ask, ask_text, check, list, optional, text, version_tag, zeroed};
use crate::sys::*;
use crate::table::Functions;
use crate::traits::{MigMode, ReadGpus};

const MIB: u64 = 1024 * 1024;

/// Room for processes at first; the list grows if there are more.
const PROCESS_ROOM: usize = 64;

/// A call that lists processes.
type ProcessCall =
    unsafe fn(&Counted, nvmlDevice_t, *mut c_uint, *mut nvmlProcessInfo_t) -> nvmlReturn_t;

/// The calls by kind of process: the newer version, and the older one with the same struct.
const PROCESS_CALLS: [[ProcessCall; 2]; 3] = [
    [
        Counted::nvmlDeviceGetComputeRunningProcesses_v3,
        Counted::nvmlDeviceGetComputeRunningProcesses_v2,
    ],
    [
        Counted::nvmlDeviceGetGraphicsRunningProcesses_v3,
        Counted::nvmlDeviceGetGraphicsRunningProcesses_v2,
    ],
    [
        Counted::nvmlDeviceGetMPSComputeRunningProcesses_v3,
        Counted::nvmlDeviceGetMPSComputeRunningProcesses_v2,
    ],
];

impl ReadGpus for Driver {
    fn inventory(&self) -> Result<Inventory, Error> {
        let session = self.session()?;
        let functions = session.functions;
        let driver_version = ask_text!(functions, nvmlSystemGetDriverVersion())
            .map_err(on_machine("read the driver version"))?;
        let count = count(&session).map_err(on_machine("count the GPUs"))?;
        let (mut gpus, mut lost) = (Vec::new(), Vec::new());
        for index in 0..count {
            let read =
                device_at(&session, index).and_then(|device| self.read(&session, &device, index));
            match read {
                Ok(gpu) => gpus.push(gpu),
                Err(error) if error.nvml() == Some(NvmlCode::GPU_IS_LOST) => lost.push(index),
                Err(error) => return Err(error),
            }
        }
        Ok(Inventory {
            driver_version,
            cuda_version: cuda_version(&session)?,
            gpus,
            lost,
        })
    }

    fn gpu(&self, gpu: &GpuUuid) -> Result<Gpu, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let index = ask!(session.functions, nvmlDeviceGetIndex(device.handle))
            .map_err(device.failed("read the index"))?;
        self.read(&session, &device, index)
    }
}

impl Driver {
    fn read(&self, session: &Session<'_>, device: &Device<'_>, index: u32) -> Result<Gpu, Error> {
        let (functions, handle) = (device.functions, device.handle);
        let pci = device.pci()?;
        let mode = device.mode()?;
        let facts = device.board_facts_of(&pci, mode)?;
        let (board, instances) = self.board_and_instances(device, &facts)?;
        let mut gpu = Gpu {
            index,
            minor: ask!(functions, nvmlDeviceGetMinorNumber(handle)).ok(),
            uuid: device.gpu.clone(),
            name: facts.name,
            pci_bus_id: text(&pci.busId),
            pci_device: facts.pci_device,
            pci_subsystem: PciDevice(pci.pciSubSystemId),
            numa_node: device.numa_node(),
            memory_mib: facts.memory_mib,
            compute_capability: facts.compute_capability,
            mode,
            board,
            instances,
            holders: Vec::new(),
        };
        for process in device.processes()? {
            let holder = Holder {
                pid: process.pid,
                name: process_name(session, process.pid),
            };
            let holders = match compute_instance(&mut gpu, &process) {
                Some(compute) => &mut compute.holders,
                None => &mut gpu.holders,
            };
            if let Err(at) = holders.binary_search(&holder) {
                holders.insert(at, holder);
            }
        }
        Ok(gpu)
    }
}

/// The compute instance that a process runs in; none on a GPU without MIG.
fn compute_instance<'a>(
    gpu: &'a mut Gpu,
    process: &nvmlProcessInfo_t,
) -> Option<&'a mut ComputeInstance> {
    let instance = gpu
        .instances
        .iter_mut()
        .find(|instance| instance.id == process.gpuInstanceId)?;
    instance
        .compute
        .iter_mut()
        .find(|compute| compute.id == process.computeInstanceId)
}

fn on_machine(operation: impl Into<String>) -> impl FnOnce(NvmlCode) -> Error {
    let operation = operation.into();
    move |code| Error::Call {
        operation,
        gpu: None,
        code,
    }
}

fn count(session: &Session<'_>) -> Answer<u32> {
    ask!(session.functions, nvmlDeviceGetCount_v2())
}

fn device_at<'s>(session: &'s Session<'_>, index: u32) -> Result<Device<'s>, Error> {
    let functions = session.functions;
    let failed = || on_machine(format!("open GPU {index}"));
    let handle = ask!(functions, nvmlDeviceGetHandleByIndex_v2(index)).map_err(failed())?;
    let uuid = ask_text!(functions, nvmlDeviceGetUUID(handle)).map_err(failed())?;
    let gpu = uuid.parse().map_err(|error| Error::Nonsense {
        operation: format!("open GPU {index}"),
        reason: format!("{error}"),
    })?;
    Ok(Device {
        functions,
        handle,
        gpu,
    })
}

/// CUDA's version, which NVML packs as 1000 x major + 10 x minor.
fn cuda_version(session: &Session<'_>) -> Result<(u16, u16), Error> {
    let mut answer: Answer<c_int> = ask!(session.functions, nvmlSystemGetCudaDriverVersion_v2());
    if matches!(answer, Err(NvmlCode::FUNCTION_NOT_FOUND)) {
        answer = ask!(session.functions, nvmlSystemGetCudaDriverVersion());
    }
    let packed = answer.map_err(on_machine("read the CUDA version"))?;
    let packed = u16::try_from(packed).unwrap_or(0);
    Ok((packed / 1000, packed % 1000 / 10))
}

/// The name of a program; empty where it may not be read.
fn process_name(session: &Session<'_>, pid: u32) -> String {
    ask_text!(session.functions, nvmlSystemGetProcessName(pid)).unwrap_or_default()
}

impl Device<'_> {
    /// What tells this GPU's board from others.
    pub(crate) fn board_facts(&self) -> Result<BoardFacts, Error> {
        self.board_facts_of(&self.pci()?, self.mode()?)
    }

    fn board_facts_of(&self, pci: &nvmlPciInfo_t, mode: Option<Mode>) -> Result<BoardFacts, Error> {
        Ok(BoardFacts {
            pci_device: PciDevice(pci.pciDeviceId),
            memory_mib: self.memory_mib()?,
            compute_capability: self.compute_capability()?,
            name: ask_text!(self.functions, nvmlDeviceGetName(self.handle))
                .map_err(self.failed("read the name"))?,
            mig_on: mode.map(Mode::is_on),
        })
    }

    fn pci(&self) -> Result<nvmlPciInfo_t, Error> {
        ask!(self.functions, nvmlDeviceGetPciInfo_v3(self.handle))
            .map_err(self.failed("read the PCI address"))
    }

    fn mode(&self) -> Result<Option<Mode>, Error> {
        let (mut current, mut pending) = (0, 0);
        // SAFETY: the handle is of this session, the out parameters are live locals.
        let code = unsafe {
            self.functions
                .nvmlDeviceGetMigMode(self.handle, &mut current, &mut pending)
        };
        let supported = optional(check(code)).map_err(self.failed("read the MIG mode"))?;
        Ok(supported.map(|()| Mode::from_states(current != 0, pending != 0)))
    }

    /// Memory of the whole GPU. The second version counts what the first hides as reserved.
    fn memory_mib(&self) -> Result<u64, Error> {
        let failed = || self.failed("read the memory size");
        let mut memory: nvmlMemory_v2_t = zeroed();
        memory.version = version_tag::<nvmlMemory_v2_t>(2);
        // SAFETY: the handle is of this session, the struct a live local with its version's tag.
        let code = unsafe {
            self.functions
                .nvmlDeviceGetMemoryInfo_v2(self.handle, &mut memory)
        };
        let total = optional(check(code))
            .map_err(failed())?
            .map(|()| memory.total);
        match total {
            Some(bytes) => Ok(bytes / MIB),
            None => {
                let memory: nvmlMemory_t =
                    ask!(self.functions, nvmlDeviceGetMemoryInfo(self.handle)).map_err(failed())?;
                Ok(memory.total / MIB)
            }
        }
    }

    fn compute_capability(&self) -> Result<(u8, u8), Error> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: the handle is of this session, the out parameters are live locals.
        let code = unsafe {
            self.functions
                .nvmlDeviceGetCudaComputeCapability(self.handle, &mut major, &mut minor)
        };
        check(code).map_err(self.failed("read the compute capability"))?;
        match (u8::try_from(major), u8::try_from(minor)) {
            (Ok(major), Ok(minor)) => Ok((major, minor)),
            _ => Err(self.nonsense(format!("compute capability {major}.{minor}"))),
        }
    }

    /// The NUMA node whose memory is nearest. (`nvmlDeviceGetNumaNodeId` is another thing: the node
    /// that the GPU's own memory is on a Grace Hopper.)
    fn numa_node(&self) -> Option<u32> {
        let mut nodes: [c_ulong; 16] = [0; 16];
        // SAFETY: the handle is of this session, the size is that of the live local set.
        let code = unsafe {
            self.functions.nvmlDeviceGetMemoryAffinity(
                self.handle,
                nodes.len() as c_uint,
                nodes.as_mut_ptr(),
                NVML_AFFINITY_SCOPE_NODE,
            )
        };
        check(code).ok()?;
        let (word, bits) = nodes.iter().enumerate().find(|(_, bits)| **bits != 0)?;
        Some(word as u32 * c_ulong::BITS + bits.trailing_zeros())
    }

    /// Processes of any kind on the GPU and its instances, with the ids of the instances.
    fn processes(&self) -> Result<Vec<nvmlProcessInfo_t>, Error> {
        let mut processes = Vec::new();
        for [newer, older] in PROCESS_CALLS {
            let ask = |call: ProcessCall| {
                list(PROCESS_ROOM, |entries, count| {
                    // SAFETY: the handle is of this session; `list` gives a buffer of `count`
                    // entries.
                    unsafe { call(self.functions, self.handle, count, entries) }
                })
            };
            let mut answer = ask(newer);
            if matches!(answer, Err(NvmlCode::FUNCTION_NOT_FOUND)) {
                answer = ask(older);
            }
            let found = optional(answer).map_err(self.failed("list the processes"))?;
            processes.extend(found.unwrap_or_default());
        }
        Ok(processes)
    }
}

impl MigMode for Driver {
    fn mode(&self, gpu: &GpuUuid) -> Result<Option<Mode>, Error> {
        let session = self.session()?;
        session.device(gpu)?.mode()
    }

    fn set_mode(&self, gpu: &GpuUuid, on: bool) -> Result<(), Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        // What it writes says whether the mode is in force already; that is read afterwards.
        let accepted: Answer<nvmlReturn_t> = ask!(
            device.functions,
            nvmlDeviceSetMigMode(device.handle, on.into())
        );
        let switch = if on { "on" } else { "off" };
        accepted
            .map(|_| ())
            .map_err(device.failed(format!("switch MIG {switch}")))
    }
}
