// SPDX-License-Identifier: Apache-2.0
//! The one list of NVML functions: what the product calls, and what the simulator serves to
//! clients that others wrote.
//!
//! Rows are `name(argument: type, ...);` with the C signature of `nvml.h` 13; every function
//! returns `nvmlReturn_t`. (`nvmlErrorString`, which returns text, is the one exception in `nvml.h`
//! and is not in the list: our errors carry the code.) Newer versions stand beside the
//! older ones that drivers and clients still use.
//!
//! To make something of the rows, pass the name of a macro to [`nvml_functions!`]; it is called
//! with all of them. [`Functions`] and [`Library`](crate::Library) are made so, and the exported
//! symbols of the simulator.

use crate::sys::*;

/// Calls the macro of the given name with every row of the list.
///
/// The types in the rows are those of [`gpu::sys`](crate::sys), to be imported by the caller.
#[macro_export]
macro_rules! nvml_functions {
    ($callback:ident) => {
        $callback! {
            // Library.
            nvmlInit();
            nvmlInit_v2();
            nvmlInitWithFlags(flags: c_uint);
            nvmlShutdown();
            // System.
            nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint);
            nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint);
            nvmlSystemGetCudaDriverVersion(cuda_driver_version: *mut c_int);
            nvmlSystemGetCudaDriverVersion_v2(cuda_driver_version: *mut c_int);
            nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, length: c_uint);
            // Device handles.
            nvmlDeviceGetCount(device_count: *mut c_uint);
            nvmlDeviceGetCount_v2(device_count: *mut c_uint);
            nvmlDeviceGetHandleByIndex(index: c_uint, device: *mut nvmlDevice_t);
            nvmlDeviceGetHandleByIndex_v2(index: c_uint, device: *mut nvmlDevice_t);
            nvmlDeviceGetHandleByUUID(uuid: *const c_char, device: *mut nvmlDevice_t);
            nvmlDeviceGetHandleByPciBusId(pci_bus_id: *const c_char, device: *mut nvmlDevice_t);
            nvmlDeviceGetHandleByPciBusId_v2(pci_bus_id: *const c_char, device: *mut nvmlDevice_t);
            // Identity of a device.
            nvmlDeviceGetName(device: nvmlDevice_t, name: *mut c_char, length: c_uint);
            nvmlDeviceGetUUID(device: nvmlDevice_t, uuid: *mut c_char, length: c_uint);
            nvmlDeviceGetMinorNumber(device: nvmlDevice_t, minor_number: *mut c_uint);
            nvmlDeviceGetIndex(device: nvmlDevice_t, index: *mut c_uint);
            nvmlDeviceGetPciInfo(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            nvmlDeviceGetPciInfo_v2(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            nvmlDeviceGetPciInfo_v3(device: nvmlDevice_t, pci: *mut nvmlPciInfo_t);
            nvmlDeviceGetSerial(device: nvmlDevice_t, serial: *mut c_char, length: c_uint);
            nvmlDeviceGetBoardPartNumber(
                device: nvmlDevice_t,
                part_number: *mut c_char,
                length: c_uint,
            );
            nvmlDeviceGetBoardId(device: nvmlDevice_t, board_id: *mut c_uint);
            nvmlDeviceGetBrand(device: nvmlDevice_t, kind: *mut nvmlBrandType_t);
            nvmlDeviceGetArchitecture(device: nvmlDevice_t, arch: *mut nvmlDeviceArchitecture_t);
            nvmlDeviceGetCudaComputeCapability(
                device: nvmlDevice_t,
                major: *mut c_int,
                minor: *mut c_int,
            );
            nvmlDeviceGetNumaNodeId(device: nvmlDevice_t, node: *mut c_uint);
            nvmlDeviceGetVbiosVersion(device: nvmlDevice_t, version: *mut c_char, length: c_uint);
            nvmlDeviceGetVirtualizationMode(
                device: nvmlDevice_t,
                p_virtual_mode: *mut nvmlGpuVirtualizationMode_t,
            );
            nvmlDeviceGetNumGpuCores(device: nvmlDevice_t, num_cores: *mut c_uint);
            nvmlDeviceGetMultiGpuBoard(device: nvmlDevice_t, multi_gpu_bool: *mut c_uint);
            // Memory.
            nvmlDeviceGetMemoryInfo(device: nvmlDevice_t, memory: *mut nvmlMemory_t);
            nvmlDeviceGetMemoryInfo_v2(device: nvmlDevice_t, memory: *mut nvmlMemory_v2_t);
            nvmlDeviceGetBAR1MemoryInfo(device: nvmlDevice_t, bar1_memory: *mut nvmlBAR1Memory_t);
            // MIG mode and MIG devices.
            nvmlDeviceGetMigMode(
                device: nvmlDevice_t,
                current_mode: *mut c_uint,
                pending_mode: *mut c_uint,
            );
            nvmlDeviceSetMigMode(
                device: nvmlDevice_t,
                mode: c_uint,
                activation_status: *mut nvmlReturn_t,
            );
            nvmlDeviceIsMigDeviceHandle(device: nvmlDevice_t, is_mig_device: *mut c_uint);
            nvmlDeviceGetGpuInstanceId(device: nvmlDevice_t, id: *mut c_uint);
            nvmlDeviceGetComputeInstanceId(device: nvmlDevice_t, id: *mut c_uint);
            nvmlDeviceGetMaxMigDeviceCount(device: nvmlDevice_t, count: *mut c_uint);
            nvmlDeviceGetMigDeviceHandleByIndex(
                device: nvmlDevice_t,
                index: c_uint,
                mig_device: *mut nvmlDevice_t,
            );
            nvmlDeviceGetDeviceHandleFromMigDeviceHandle(
                mig_device: nvmlDevice_t,
                device: *mut nvmlDevice_t,
            );
            nvmlDeviceGetAttributes(device: nvmlDevice_t, attributes: *mut nvmlDeviceAttributes_t);
            nvmlDeviceGetAttributes_v2(
                device: nvmlDevice_t,
                attributes: *mut nvmlDeviceAttributes_t,
            );
            // GPU instances.
            nvmlDeviceGetGpuInstanceProfileInfo(
                device: nvmlDevice_t,
                profile: c_uint,
                info: *mut nvmlGpuInstanceProfileInfo_t,
            );
            nvmlDeviceGetGpuInstanceProfileInfoV(
                device: nvmlDevice_t,
                profile: c_uint,
                info: *mut nvmlGpuInstanceProfileInfo_v2_t,
            );
            nvmlDeviceGetGpuInstanceProfileInfoByIdV(
                device: nvmlDevice_t,
                profile_id: c_uint,
                info: *mut nvmlGpuInstanceProfileInfo_v2_t,
            );
            nvmlDeviceGetGpuInstancePossiblePlacements(
                device: nvmlDevice_t,
                profile_id: c_uint,
                placements: *mut nvmlGpuInstancePlacement_t,
                count: *mut c_uint,
            );
            nvmlDeviceGetGpuInstancePossiblePlacements_v2(
                device: nvmlDevice_t,
                profile_id: c_uint,
                placements: *mut nvmlGpuInstancePlacement_t,
                count: *mut c_uint,
            );
            nvmlDeviceGetGpuInstanceRemainingCapacity(
                device: nvmlDevice_t,
                profile_id: c_uint,
                count: *mut c_uint,
            );
            nvmlDeviceCreateGpuInstance(
                device: nvmlDevice_t,
                profile_id: c_uint,
                gpu_instance: *mut nvmlGpuInstance_t,
            );
            nvmlDeviceCreateGpuInstanceWithPlacement(
                device: nvmlDevice_t,
                profile_id: c_uint,
                placement: *const nvmlGpuInstancePlacement_t,
                gpu_instance: *mut nvmlGpuInstance_t,
            );
            nvmlGpuInstanceDestroy(gpu_instance: nvmlGpuInstance_t);
            nvmlDeviceGetGpuInstances(
                device: nvmlDevice_t,
                profile_id: c_uint,
                gpu_instances: *mut nvmlGpuInstance_t,
                count: *mut c_uint,
            );
            nvmlDeviceGetGpuInstanceById(
                device: nvmlDevice_t,
                id: c_uint,
                gpu_instance: *mut nvmlGpuInstance_t,
            );
            nvmlGpuInstanceGetInfo(
                gpu_instance: nvmlGpuInstance_t,
                info: *mut nvmlGpuInstanceInfo_t,
            );
            // Compute instances.
            nvmlGpuInstanceGetComputeInstanceProfileInfo(
                gpu_instance: nvmlGpuInstance_t,
                profile: c_uint,
                eng_profile: c_uint,
                info: *mut nvmlComputeInstanceProfileInfo_t,
            );
            nvmlGpuInstanceGetComputeInstanceProfileInfoV(
                gpu_instance: nvmlGpuInstance_t,
                profile: c_uint,
                eng_profile: c_uint,
                info: *mut nvmlComputeInstanceProfileInfo_v2_t,
            );
            nvmlGpuInstanceGetComputeInstancePossiblePlacements(
                gpu_instance: nvmlGpuInstance_t,
                profile_id: c_uint,
                placements: *mut nvmlComputeInstancePlacement_t,
                count: *mut c_uint,
            );
            nvmlGpuInstanceGetComputeInstanceRemainingCapacity(
                gpu_instance: nvmlGpuInstance_t,
                profile_id: c_uint,
                count: *mut c_uint,
            );
            nvmlGpuInstanceCreateComputeInstance(
                gpu_instance: nvmlGpuInstance_t,
                profile_id: c_uint,
                compute_instance: *mut nvmlComputeInstance_t,
            );
            nvmlGpuInstanceCreateComputeInstanceWithPlacement(
                gpu_instance: nvmlGpuInstance_t,
                profile_id: c_uint,
                placement: *const nvmlComputeInstancePlacement_t,
                compute_instance: *mut nvmlComputeInstance_t,
            );
            nvmlComputeInstanceDestroy(compute_instance: nvmlComputeInstance_t);
            nvmlGpuInstanceGetComputeInstances(
                gpu_instance: nvmlGpuInstance_t,
                profile_id: c_uint,
                compute_instances: *mut nvmlComputeInstance_t,
                count: *mut c_uint,
            );
            nvmlGpuInstanceGetComputeInstanceById(
                gpu_instance: nvmlGpuInstance_t,
                id: c_uint,
                compute_instance: *mut nvmlComputeInstance_t,
            );
            nvmlComputeInstanceGetInfo(
                compute_instance: nvmlComputeInstance_t,
                info: *mut nvmlComputeInstanceInfo_t,
            );
            nvmlComputeInstanceGetInfo_v2(
                compute_instance: nvmlComputeInstance_t,
                info: *mut nvmlComputeInstanceInfo_t,
            );
            // Processes.
            nvmlDeviceGetComputeRunningProcesses(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v1_t,
            );
            nvmlDeviceGetComputeRunningProcesses_v2(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v2_t,
            );
            nvmlDeviceGetComputeRunningProcesses_v3(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_t,
            );
            nvmlDeviceGetGraphicsRunningProcesses(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v1_t,
            );
            nvmlDeviceGetGraphicsRunningProcesses_v2(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v2_t,
            );
            nvmlDeviceGetGraphicsRunningProcesses_v3(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_t,
            );
            nvmlDeviceGetMPSComputeRunningProcesses(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v1_t,
            );
            nvmlDeviceGetMPSComputeRunningProcesses_v2(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_v2_t,
            );
            nvmlDeviceGetMPSComputeRunningProcesses_v3(
                device: nvmlDevice_t,
                info_count: *mut c_uint,
                infos: *mut nvmlProcessInfo_t,
            );
            nvmlDeviceGetProcessUtilization(
                device: nvmlDevice_t,
                utilization: *mut nvmlProcessUtilizationSample_t,
                process_samples_count: *mut c_uint,
                last_seen_time_stamp: c_ulonglong,
            );
            // Load and health.
            nvmlDeviceGetUtilizationRates(
                device: nvmlDevice_t,
                utilization: *mut nvmlUtilization_t,
            );
            nvmlDeviceGetEncoderUtilization(
                device: nvmlDevice_t,
                utilization: *mut c_uint,
                sampling_period_us: *mut c_uint,
            );
            nvmlDeviceGetDecoderUtilization(
                device: nvmlDevice_t,
                utilization: *mut c_uint,
                sampling_period_us: *mut c_uint,
            );
            nvmlDeviceGetJpgUtilization(
                device: nvmlDevice_t,
                utilization: *mut c_uint,
                sampling_period_us: *mut c_uint,
            );
            nvmlDeviceGetOfaUtilization(
                device: nvmlDevice_t,
                utilization: *mut c_uint,
                sampling_period_us: *mut c_uint,
            );
            nvmlDeviceGetTemperature(
                device: nvmlDevice_t,
                sensor_type: nvmlTemperatureSensors_t,
                temp: *mut c_uint,
            );
            nvmlDeviceGetTemperatureV(device: nvmlDevice_t, temperature: *mut nvmlTemperature_t);
            nvmlDeviceGetTemperatureThreshold(
                device: nvmlDevice_t,
                threshold_type: nvmlTemperatureThresholds_t,
                temp: *mut c_uint,
            );
            nvmlDeviceGetPowerUsage(device: nvmlDevice_t, power: *mut c_uint);
            nvmlDeviceGetPowerManagementLimit(device: nvmlDevice_t, limit: *mut c_uint);
            nvmlDeviceGetPowerManagementDefaultLimit(
                device: nvmlDevice_t,
                default_limit: *mut c_uint,
            );
            nvmlDeviceGetPowerManagementLimitConstraints(
                device: nvmlDevice_t,
                min_limit: *mut c_uint,
                max_limit: *mut c_uint,
            );
            nvmlDeviceGetPowerManagementMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            nvmlDeviceGetEnforcedPowerLimit(device: nvmlDevice_t, limit: *mut c_uint);
            nvmlDeviceGetTotalEnergyConsumption(device: nvmlDevice_t, energy: *mut c_ulonglong);
            nvmlDeviceGetClockInfo(device: nvmlDevice_t, kind: nvmlClockType_t, clock: *mut c_uint);
            nvmlDeviceGetMaxClockInfo(
                device: nvmlDevice_t,
                kind: nvmlClockType_t,
                clock: *mut c_uint,
            );
            nvmlDeviceGetFanSpeed(device: nvmlDevice_t, speed: *mut c_uint);
            nvmlDeviceGetFanSpeed_v2(device: nvmlDevice_t, fan: c_uint, speed: *mut c_uint);
            nvmlDeviceGetNumFans(device: nvmlDevice_t, num_fans: *mut c_uint);
            nvmlDeviceGetEccMode(
                device: nvmlDevice_t,
                current: *mut nvmlEnableState_t,
                pending: *mut nvmlEnableState_t,
            );
            nvmlDeviceGetTotalEccErrors(
                device: nvmlDevice_t,
                error_type: nvmlMemoryErrorType_t,
                counter_type: nvmlEccCounterType_t,
                ecc_counts: *mut c_ulonglong,
            );
            nvmlDeviceGetMemoryErrorCounter(
                device: nvmlDevice_t,
                error_type: nvmlMemoryErrorType_t,
                counter_type: nvmlEccCounterType_t,
                location_type: nvmlMemoryLocation_t,
                count: *mut c_ulonglong,
            );
            nvmlDeviceGetPerformanceState(device: nvmlDevice_t, p_state: *mut nvmlPstates_t);
            nvmlDeviceGetPowerState(device: nvmlDevice_t, p_state: *mut nvmlPstates_t);
            nvmlDeviceGetPersistenceMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            nvmlDeviceGetComputeMode(device: nvmlDevice_t, mode: *mut nvmlComputeMode_t);
            nvmlDeviceGetDisplayMode(device: nvmlDevice_t, display: *mut nvmlEnableState_t);
            nvmlDeviceGetDisplayActive(device: nvmlDevice_t, is_active: *mut nvmlEnableState_t);
            nvmlDeviceGetDriverModel(
                device: nvmlDevice_t,
                current: *mut nvmlDriverModel_t,
                pending: *mut nvmlDriverModel_t,
            );
            nvmlDeviceGetCurrentClocksThrottleReasons(
                device: nvmlDevice_t,
                clocks_throttle_reasons: *mut c_ulonglong,
            );
            nvmlDeviceGetCurrentClocksEventReasons(
                device: nvmlDevice_t,
                clocks_event_reasons: *mut c_ulonglong,
            );
            nvmlDeviceGetAccountingMode(device: nvmlDevice_t, mode: *mut nvmlEnableState_t);
            nvmlDeviceGetMemoryBusWidth(device: nvmlDevice_t, bus_width: *mut c_uint);
            nvmlDeviceGetFieldValues(
                device: nvmlDevice_t,
                values_count: c_int,
                values: *mut nvmlFieldValue_t,
            );
            // PCIe, NVLink and topology.
            nvmlDeviceGetCurrPcieLinkGeneration(device: nvmlDevice_t, curr_link_gen: *mut c_uint);
            nvmlDeviceGetCurrPcieLinkWidth(device: nvmlDevice_t, curr_link_width: *mut c_uint);
            nvmlDeviceGetMaxPcieLinkGeneration(device: nvmlDevice_t, max_link_gen: *mut c_uint);
            nvmlDeviceGetMaxPcieLinkWidth(device: nvmlDevice_t, max_link_width: *mut c_uint);
            nvmlDeviceGetPcieThroughput(
                device: nvmlDevice_t,
                counter: nvmlPcieUtilCounter_t,
                value: *mut c_uint,
            );
            nvmlDeviceGetTopologyCommonAncestor(
                device1: nvmlDevice_t,
                device2: nvmlDevice_t,
                path_info: *mut nvmlGpuTopologyLevel_t,
            );
            nvmlDeviceGetP2PStatus(
                device1: nvmlDevice_t,
                device2: nvmlDevice_t,
                p2p_index: nvmlGpuP2PCapsIndex_t,
                p2p_status: *mut nvmlGpuP2PStatus_t,
            );
            nvmlDeviceGetNvLinkState(
                device: nvmlDevice_t,
                link: c_uint,
                is_active: *mut nvmlEnableState_t,
            );
            nvmlDeviceGetNvLinkVersion(device: nvmlDevice_t, link: c_uint, version: *mut c_uint);
            nvmlDeviceGetNvLinkCapability(
                device: nvmlDevice_t,
                link: c_uint,
                capability: nvmlNvLinkCapability_t,
                cap_result: *mut c_uint,
            );
            nvmlDeviceGetNvLinkRemotePciInfo(
                device: nvmlDevice_t,
                link: c_uint,
                pci: *mut nvmlPciInfo_t,
            );
            nvmlDeviceGetNvLinkRemotePciInfo_v2(
                device: nvmlDevice_t,
                link: c_uint,
                pci: *mut nvmlPciInfo_t,
            );
            nvmlDeviceGetNvLinkRemoteDeviceType(
                device: nvmlDevice_t,
                link: c_uint,
                p_nv_link_device_type: *mut nvmlIntNvLinkDeviceType_t,
            );
            nvmlDeviceGetMemoryAffinity(
                device: nvmlDevice_t,
                node_set_size: c_uint,
                node_set: *mut c_ulong,
                scope: nvmlAffinityScope_t,
            );
            nvmlDeviceGetCpuAffinity(
                device: nvmlDevice_t,
                cpu_set_size: c_uint,
                cpu_set: *mut c_ulong,
            );
            nvmlDeviceGetGpuFabricInfo(
                device: nvmlDevice_t,
                gpu_fabric_info: *mut nvmlGpuFabricInfo_t,
            );
            nvmlDeviceGetGpuFabricInfoV(
                device: nvmlDevice_t,
                gpu_fabric_info: *mut nvmlGpuFabricInfoV_t,
            );
            // Events.
            nvmlEventSetCreate(set: *mut nvmlEventSet_t);
            nvmlDeviceRegisterEvents(
                device: nvmlDevice_t,
                event_types: c_ulonglong,
                set: nvmlEventSet_t,
            );
            nvmlDeviceGetSupportedEventTypes(device: nvmlDevice_t, event_types: *mut c_ulonglong);
            nvmlEventSetWait(set: nvmlEventSet_t, data: *mut nvmlEventData_t, timeoutms: c_uint);
            nvmlEventSetWait_v2(set: nvmlEventSet_t, data: *mut nvmlEventData_t, timeoutms: c_uint);
            nvmlEventSetFree(set: nvmlEventSet_t);
        }
    };
}

macro_rules! functions_trait {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        /// The functions of NVML, with their C signatures. One that an implementation leaves out
        /// answers `NVML_ERROR_FUNCTION_NOT_FOUND`, as an old driver that lacks the symbol.
        #[allow(non_snake_case)]
        pub trait Functions: Send + Sync {
            $(
                #[doc = concat!("`", stringify!($name), "` of `nvml.h`.")]
                ///
                /// # Safety
                /// Handles must come from this implementation, and pointers be valid for what
                /// `nvml.h` says that the function reads or writes, or null where it allows that.
                unsafe fn $name(&self, $($argument: $kind),*) -> nvmlReturn_t {
                    $(let _ = $argument;)*
                    nvmlReturn_enum_NVML_ERROR_FUNCTION_NOT_FOUND
                }
            )*
        }
    };
}

nvml_functions!(functions_trait);
