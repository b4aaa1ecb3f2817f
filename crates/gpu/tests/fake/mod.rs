// SPDX-License-Identifier: Apache-2.0
//! A driver as bad as wanted: equal GPUs with one MIG instance each, whose answers can be spoiled.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use gpu::Functions;
use gpu::sys::*;

pub const OK: nvmlReturn_t = nvmlReturn_enum_NVML_SUCCESS;
const INVALID: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_INVALID_ARGUMENT;
const NOT_SUPPORTED: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
const NOT_FOUND: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_NOT_FOUND;
const MISSING: nvmlReturn_t = nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND;

/// How it answers.
pub struct Fake {
    /// Number of GPUs.
    pub gpus: u32,
    /// Newest version of the profile query that it knows: 3, 2, or 1 for the plain one.
    pub query: u32,
    /// Names of functions that it lacks.
    pub missing: BTreeSet<&'static str>,
    /// What it calls profiles: `MIG ` and a name, unless spoiled.
    pub garbage_names: bool,
    /// The GPUs' UUIDs fill their buffers without a NUL.
    pub endless_uuid: bool,
    /// Start and size of the places of the 1-slice profile.
    pub places: Vec<(u32, u32)>,
    /// What it counts when asked for the GPU instances of the 1-slice profile.
    pub instances: u32,
    /// Compute profile of the one compute instance.
    pub compute_profile: u32,
    /// Number of processes; they run in the one compute instance.
    pub processes: u32,
    /// What it answers to the read of a GPU instance.
    pub instance_info: nvmlReturn_t,
    /// What it answers to an initialisation.
    pub init: AtomicU32,
    /// What it answers to a wait for events, and the XID.
    pub event: (nvmlReturn_t, u64),
    /// State of registration with a fabric, and how that ended.
    pub fabric: (u8, nvmlReturn_t),
    /// Newest version of the query for the fabric that it knows: 2, or 1 for the plain one.
    pub fabric_query: u32,
    /// Functions called that change something, in order.
    pub changes: Mutex<Vec<&'static str>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            gpus: 1,
            query: 3,
            missing: BTreeSet::new(),
            garbage_names: false,
            endless_uuid: false,
            places: (0..7).map(|start| (start, 1)).collect(),
            instances: 1,
            compute_profile: 0,
            processes: 0,
            instance_info: OK,
            init: AtomicU32::new(OK),
            event: (nvmlReturn_enum_NVML_ERROR_TIMEOUT, 0),
            fabric: (NVML_GPU_FABRIC_STATE_COMPLETED as u8, OK),
            fabric_query: 2,
            changes: Mutex::default(),
        }
    }
}

/// NVML enum, driver id, slices, instances, multiprocessors, MiB, name. The last is newer than the
/// header.
type Row = (u32, u32, u32, u32, u32, u64, &'static str);
const PROFILES: [Row; 3] = [
    (0, 19, 1, 7, 16, 9984, "MIG 1g.10gb"),
    (2, 9, 3, 2, 60, 40448, "MIG 3g.40gb"),
    (17, 77, 3, 1, 60, 40448, "MIG 3g.40gb+gfx"),
];

/// Handles: GPU n is n + 1, its MIG device 100 more, its GPU instance 200, its compute instance 300.
fn handle<T>(number: u32) -> *mut T {
    std::ptr::without_provenance_mut(number as usize)
}

fn number<T>(handle: *mut T) -> u32 {
    handle.addr() as u32
}

/// Writes a text with its NUL.
unsafe fn put(text: &str, to: *mut c_char, room: c_uint) {
    let bytes = text.bytes().chain([0]).take(room as usize);
    for (at, byte) in bytes.enumerate() {
        // SAFETY: `at` is less than the room that the caller says there is.
        unsafe { to.add(at).write(byte as c_char) };
    }
}

pub fn uuid(gpu: u32) -> String {
    format!("GPU-00000000-0000-0000-0000-{gpu:012}")
}

impl Fake {
    pub fn without(names: &[&'static str]) -> Self {
        Self {
            missing: names.iter().copied().collect(),
            ..Self::default()
        }
    }

    fn change(&self, name: &'static str) {
        self.changes.lock().unwrap().push(name);
    }

    fn profile(&self, nvml_enum: c_uint) -> Result<Row, nvmlReturn_t> {
        match PROFILES.iter().find(|row| row.0 == nvml_enum) {
            Some(row) => Ok(*row),
            None if nvml_enum <= 17 => Err(NOT_SUPPORTED),
            None => Err(INVALID),
        }
    }

    fn name(&self, name: &str) -> [c_char; 96] {
        let mut buffer = [if self.garbage_names { -1 } else { 0 }; 96];
        if !self.garbage_names {
            // SAFETY: the buffer is a local of that size.
            unsafe { put(name, buffer.as_mut_ptr(), 96) };
        }
        buffer
    }
}

/// A method that is absent if the fake lacks it.
macro_rules! fake {
    ($($name:ident(&$me:ident $(, $argument:ident: $kind:ty)*) $body:block)*) => {
        #[allow(non_snake_case, unused_variables, unused_unsafe)]
        impl Functions for Fake {
            $(unsafe fn $name(&self, $($argument: $kind),*) -> nvmlReturn_t {
                if self.missing.contains(stringify!($name)) {
                    return MISSING;
                }
                let $me = self;
                // SAFETY: out parameters are valid, as the contract of `Functions` demands.
                unsafe { $body }
            })*
        }
    };
}

fake! {
    nvmlInit_v2(&me) { me.change("init"); me.init.load(Ordering::Relaxed) }
    nvmlShutdown(&me) { me.change("shutdown"); OK }
    nvmlSystemGetDriverVersion(&me, version: *mut c_char, length: c_uint) {
        put("580.95.05", version, length);
        OK
    }
    nvmlSystemGetCudaDriverVersion_v2(&me, version: *mut c_int) { *version = 13010; OK }
    nvmlSystemGetProcessName(&me, pid: c_uint, name: *mut c_char, length: c_uint) {
        put("python", name, length);
        OK
    }
    nvmlDeviceGetCount_v2(&me, count: *mut c_uint) { *count = me.gpus; OK }
    nvmlDeviceGetHandleByIndex_v2(&me, index: c_uint, device: *mut nvmlDevice_t) {
        *device = handle(index + 1);
        OK
    }
    nvmlDeviceGetHandleByUUID(&me, wanted: *const c_char, device: *mut nvmlDevice_t) {
        let wanted = std::ffi::CStr::from_ptr(wanted).to_str().unwrap();
        match (0..me.gpus).find(|gpu| uuid(*gpu) == wanted) {
            Some(gpu) => { *device = handle(gpu + 1); OK }
            None => NOT_FOUND,
        }
    }
    nvmlDeviceGetName(&me, device: nvmlDevice_t, name: *mut c_char, length: c_uint) {
        put("NVIDIA Test 80GB", name, length);
        OK
    }
    nvmlDeviceGetUUID(&me, device: nvmlDevice_t, to: *mut c_char, length: c_uint) {
        let device = number(device);
        if me.endless_uuid {
            put(&"G".repeat(length as usize), to, length);
        } else if device > 100 {
            put(&uuid(device - 101).replace("GPU-", "MIG-"), to, length);
        } else {
            put(&uuid(device - 1), to, length);
        }
        OK
    }
    nvmlDeviceGetIndex(&me, device: nvmlDevice_t, index: *mut c_uint) {
        *index = number(device) - 1;
        OK
    }
    nvmlDeviceGetMinorNumber(&me, device: nvmlDevice_t, minor: *mut c_uint) { *minor = 3; OK }
    nvmlDeviceGetMemoryAffinity(
        &me, device: nvmlDevice_t, size: c_uint, nodes: *mut c_ulong, scope: nvmlAffinityScope_t
    ) {
        *nodes.add(1) = 4;
        OK
    }
    nvmlDeviceGetPciInfo_v3(&me, device: nvmlDevice_t, pci: *mut nvmlPciInfo_t) {
        (*pci).pciDeviceId = 0xFFFF_10DE;
        (*pci).bus = number(device);
        put("00000000:19:00.0", (&raw mut (*pci).busId).cast(), 32);
        OK
    }
    nvmlDeviceGetMemoryInfo(&me, device: nvmlDevice_t, memory: *mut nvmlMemory_t) {
        (*memory).total = 81559 << 20;
        OK
    }
    nvmlDeviceGetMemoryInfo_v2(&me, device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t) {
        (*memory).total = 81559 << 20;
        OK
    }
    nvmlDeviceGetCudaComputeCapability(
        &me, device: nvmlDevice_t, major: *mut c_int, minor: *mut c_int
    ) {
        (*major, *minor) = (9, 0);
        OK
    }
    nvmlDeviceGetMigMode(
        &me, device: nvmlDevice_t, current: *mut c_uint, pending: *mut c_uint
    ) {
        (*current, *pending) = (1, 1);
        OK
    }
    nvmlDeviceGetGpuInstanceProfileInfo(
        &me, device: nvmlDevice_t, profile: c_uint, info: *mut nvmlGpuInstanceProfileInfo_t
    ) {
        let row = match me.profile(profile) { Ok(row) => row, Err(code) => return code };
        (*info).id = row.1;
        (*info).sliceCount = row.2;
        (*info).instanceCount = row.3;
        (*info).multiprocessorCount = row.4;
        (*info).memorySizeMB = row.5;
        OK
    }
    nvmlDeviceGetGpuInstanceProfileInfoV(
        &me, device: nvmlDevice_t, profile: c_uint, info: *mut nvmlGpuInstanceProfileInfo_v2_t
    ) {
        let version = (*info).version >> 24;
        if version > me.query {
            return INVALID;
        }
        let row = match me.profile(profile) { Ok(row) => row, Err(code) => return code };
        if version == 2 {
            assert_eq!((*info).version as usize & 0xFF_FFFF, size_of_val(&*info));
            (*info).id = row.1;
            (*info).sliceCount = row.2;
            (*info).instanceCount = row.3;
            (*info).multiprocessorCount = row.4;
            (*info).memorySizeMB = row.5;
            (*info).name = me.name(row.6);
        } else {
            let info: *mut nvmlGpuInstanceProfileInfo_v3_t = info.cast();
            assert_eq!((*info).version as usize & 0xFF_FFFF, size_of_val(&*info));
            (*info).id = row.1;
            (*info).sliceCount = row.2;
            (*info).instanceCount = row.3;
            (*info).multiprocessorCount = row.4;
            (*info).memorySizeMB = row.5;
            (*info).name = me.name(row.6);
        }
        OK
    }
    nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        &me, device: nvmlDevice_t, profile: c_uint,
        placements: *mut nvmlGpuInstancePlacement_t, count: *mut c_uint
    ) {
        let wide = vec![(4, 4), (0, 4)];
        let places = if profile == 19 { &me.places } else { &wide };
        *count = places.len() as c_uint;
        if !placements.is_null() {
            for (at, (start, size)) in places.iter().enumerate() {
                placements.add(at).write(nvmlGpuInstancePlacement_t { start: *start, size: *size });
            }
        }
        OK
    }
    nvmlDeviceGetGpuInstances(
        &me, device: nvmlDevice_t, profile: c_uint,
        instances: *mut nvmlGpuInstance_t, count: *mut c_uint
    ) {
        *count = if profile == 19 { me.instances } else { 0 };
        if *count == 1 {
            *instances = handle(number(device) + 200);
        }
        OK
    }
    nvmlDeviceGetGpuInstanceById(
        &me, device: nvmlDevice_t, id: c_uint, instance: *mut nvmlGpuInstance_t
    ) {
        *instance = handle(number(device) + 200);
        if id == 9 { OK } else { NOT_FOUND }
    }
    nvmlGpuInstanceGetInfo(
        &me, instance: nvmlGpuInstance_t, info: *mut nvmlGpuInstanceInfo_t
    ) {
        (*info).id = 9;
        (*info).profileId = 19;
        (*info).placement = nvmlGpuInstancePlacement_t { start: 6, size: 1 };
        me.instance_info
    }
    nvmlDeviceCreateGpuInstanceWithPlacement(
        &me, device: nvmlDevice_t, profile: c_uint,
        placement: *const nvmlGpuInstancePlacement_t, instance: *mut nvmlGpuInstance_t
    ) {
        me.change("create");
        *instance = handle(number(device) + 200);
        OK
    }
    nvmlGpuInstanceDestroy(&me, instance: nvmlGpuInstance_t) { me.change("destroy"); OK }
    nvmlGpuInstanceGetComputeInstanceProfileInfo(
        &me, instance: nvmlGpuInstance_t, profile: c_uint, engines: c_uint,
        info: *mut nvmlComputeInstanceProfileInfo_t
    ) {
        match profile {
            // Like a Hopper with double memory: two of full size, of which the second has it all.
            0 | 7 => {
                (*info).id = profile;
                (*info).sliceCount = 1;
                (*info).instanceCount = 1;
                (*info).multiprocessorCount = if profile == 7 { 16 } else { 14 };
                OK
            }
            1..=6 => NOT_SUPPORTED,
            _ => INVALID,
        }
    }
    nvmlGpuInstanceGetComputeInstances(
        &me, instance: nvmlGpuInstance_t, profile: c_uint,
        instances: *mut nvmlComputeInstance_t, count: *mut c_uint
    ) {
        *count = u32::from(profile == me.compute_profile);
        *instances = handle(number(instance) + 100);
        OK
    }
    nvmlComputeInstanceGetInfo(
        &me, compute: nvmlComputeInstance_t, info: *mut nvmlComputeInstanceInfo_t
    ) {
        (*info).id = 0;
        (*info).profileId = me.compute_profile;
        OK
    }
    nvmlComputeInstanceGetInfo_v2(
        &me, compute: nvmlComputeInstance_t, info: *mut nvmlComputeInstanceInfo_t
    ) {
        (*info).id = 0;
        (*info).profileId = me.compute_profile;
        (*info).placement = nvmlComputeInstancePlacement_t { start: 0, size: 1 };
        OK
    }
    nvmlDeviceGetMaxMigDeviceCount(&me, device: nvmlDevice_t, count: *mut c_uint) {
        *count = 7;
        OK
    }
    nvmlDeviceGetMigDeviceHandleByIndex(
        &me, device: nvmlDevice_t, index: c_uint, mig: *mut nvmlDevice_t
    ) {
        *mig = handle(number(device) + 100);
        if index == 2 { OK } else { NOT_FOUND }
    }
    nvmlDeviceGetGpuInstanceId(&me, mig: nvmlDevice_t, id: *mut c_uint) { *id = 9; OK }
    nvmlDeviceGetComputeInstanceId(&me, mig: nvmlDevice_t, id: *mut c_uint) { *id = 0; OK }
    nvmlDeviceGetComputeRunningProcesses_v3(
        &me, device: nvmlDevice_t, count: *mut c_uint, infos: *mut nvmlProcessInfo_t
    ) {
        let room = *count;
        *count = me.processes;
        if me.processes > room {
            return nvmlReturn_enum_NVML_ERROR_INSUFFICIENT_SIZE;
        }
        for pid in 0..me.processes {
            infos.add(pid as usize).write(nvmlProcessInfo_t {
                pid: 1000 + pid,
                usedGpuMemory: 0,
                gpuInstanceId: 9,
                computeInstanceId: 0,
            });
        }
        OK
    }
    nvmlEventSetCreate(&me, set: *mut nvmlEventSet_t) {
        me.change("watch");
        *set = handle(400);
        OK
    }
    nvmlDeviceGetSupportedEventTypes(
        &me, device: nvmlDevice_t, kinds: *mut c_ulonglong
    ) {
        *kinds = u64::from(nvmlEventTypeXidCriticalError | nvmlEventTypeClock);
        OK
    }
    nvmlDeviceRegisterEvents(
        &me, device: nvmlDevice_t, kinds: c_ulonglong, set: nvmlEventSet_t
    ) {
        assert_eq!(kinds, u64::from(nvmlEventTypeXidCriticalError));
        OK
    }
    nvmlEventSetWait_v2(
        &me, set: nvmlEventSet_t, data: *mut nvmlEventData_t, timeout: c_uint
    ) {
        (*data).device = handle(1);
        (*data).eventType = u64::from(nvmlEventTypeXidCriticalError);
        (*data).eventData = me.event.1;
        (*data).gpuInstanceId = 9;
        (*data).computeInstanceId = INVALID_GPU_INSTANCE_ID;
        me.event.0
    }
    nvmlEventSetFree(&me, set: nvmlEventSet_t) { me.change("unwatch"); OK }
    // Neighbours share a switch, the others are far apart; of the last pair it makes no sense.
    nvmlDeviceGetTopologyCommonAncestor(
        &me, one: nvmlDevice_t, other: nvmlDevice_t, level: *mut nvmlGpuTopologyLevel_t
    ) {
        *level = match (number(one), number(other)) {
            (1, 2) => nvmlGpuLevel_enum_NVML_TOPOLOGY_SINGLE,
            (1, 3) => nvmlGpuLevel_enum_NVML_TOPOLOGY_SYSTEM,
            _ => 77,
        };
        OK
    }
    // Links go to the first three GPUs in turn. There are six, but not the one in the middle; the
    // last is down.
    nvmlDeviceGetNvLinkState(
        &me, device: nvmlDevice_t, link: c_uint, active: *mut nvmlEnableState_t
    ) {
        *active = u32::from(link < 6);
        match link {
            3 => NOT_SUPPORTED,
            0..=6 => OK,
            _ => INVALID,
        }
    }
    nvmlDeviceGetNvLinkRemotePciInfo(
        &me, device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t
    ) {
        (*pci).bus = link % 3 + 1;
        OK
    }
    nvmlDeviceGetNvLinkRemotePciInfo_v2(
        &me, device: nvmlDevice_t, link: c_uint, pci: *mut nvmlPciInfo_t
    ) {
        (*pci).bus = link % 3 + 1;
        OK
    }
    nvmlDeviceGetGpuFabricInfo(
        &me, device: nvmlDevice_t, info: *mut nvmlGpuFabricInfo_t
    ) {
        (*info).clusterUuid = [0xab; 16];
        (*info).cliqueId = 7;
        ((*info).state, (*info).status) = me.fabric;
        OK
    }
    nvmlDeviceGetGpuFabricInfoV(
        &me, device: nvmlDevice_t, info: *mut nvmlGpuFabricInfoV_t
    ) {
        let info: *mut nvmlGpuFabricInfo_v2_t = info.cast();
        if me.fabric_query < 2 {
            return nvmlReturn_enum_NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        }
        assert_eq!((*info).version, size_of_val(&*info) as u32 | 2 << 24);
        (*info).clusterUuid = [0xab; 16];
        (*info).cliqueId = 7;
        ((*info).state, (*info).status) = me.fabric;
        OK
    }
}
