// SPDX-License-Identifier: Apache-2.0
//! Load and health: what an idle GPU in good order shows. The figures are plausible constants.

use geometry::Board;
use gpu::sys::*;

use super::{Answer, Out, Simulated, version};
use crate::code::{ARGUMENT_VERSION_MISMATCH, INVALID_ARGUMENT, NOT_SUPPORTED};

const TEMPERATURE_C: c_uint = 33;
const IDLE_MILLIWATTS: c_uint = 68_000;
const ENABLED: nvmlEnableState_t = nvmlEnableState_enum_NVML_FEATURE_ENABLED;
const DISABLED: nvmlEnableState_t = nvmlEnableState_enum_NVML_FEATURE_DISABLED;

/// Power limit in milliwatts, about that of the largest board of the architecture.
fn power_limit(board: &Board) -> c_uint {
    match board.architecture.split(' ').next().unwrap_or_default() {
        "Turing" => 70_000,
        "Ampere" => 400_000,
        "Hopper" => 700_000,
        "Blackwell" => 1_000_000,
        _ => 300_000,
    }
}

fn clock(kind: nvmlClockType_t, graphics: c_uint, memory: c_uint) -> Answer<c_uint> {
    match kind {
        nvmlClockType_enum_NVML_CLOCK_GRAPHICS
        | nvmlClockType_enum_NVML_CLOCK_SM
        | nvmlClockType_enum_NVML_CLOCK_VIDEO => Ok(graphics),
        nvmlClockType_enum_NVML_CLOCK_MEM => Ok(memory),
        _ => Err(INVALID_ARGUMENT),
    }
}

macro_rules! constants {
    ($($name:ident: $kind:ty = $value:expr;)*) => {
        $(
            pub fn $name(
                sim: &Simulated,
                device: Out<nvmlDevice_st>,
                value: Out<$kind>,
            ) -> Answer<()> {
                sim.world()?.whole(device)?;
                value.put($value)
            }
        )*
    };
}
constants! {
    nvmlDeviceGetPowerUsage: c_uint = IDLE_MILLIWATTS;
    nvmlDeviceGetPowerManagementMode: nvmlEnableState_t = ENABLED;
    nvmlDeviceGetTotalEnergyConsumption: c_ulonglong = 1_000_000;
    nvmlDeviceGetNumFans: c_uint = 0;
    nvmlDeviceGetPerformanceState: nvmlPstates_t = nvmlPStates_enum_NVML_PSTATE_0;
    nvmlDeviceGetPowerState: nvmlPstates_t = nvmlPStates_enum_NVML_PSTATE_0;
    nvmlDeviceGetComputeMode: nvmlComputeMode_t =
        nvmlComputeMode_enum_NVML_COMPUTEMODE_DEFAULT;
    nvmlDeviceGetDisplayMode: nvmlEnableState_t = DISABLED;
    nvmlDeviceGetDisplayActive: nvmlEnableState_t = DISABLED;
    nvmlDeviceGetAccountingMode: nvmlEnableState_t = DISABLED;
    // Bit 0: idle.
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = 1;
    nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = 1;
    nvmlDeviceGetMemoryBusWidth: c_uint = 5120;
}

pub fn nvmlDeviceGetPersistenceMode(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    mode: Out<nvmlEnableState_t>,
) -> Answer<()> {
    let persistence = sim.world()?.whole(device)?.1.persistence;
    mode.put(if persistence { ENABLED } else { DISABLED })
}

/// Not supported while MIG is on, as on a real GPU.
pub fn nvmlDeviceGetUtilizationRates(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    utilization: Out<nvmlUtilization_t>,
) -> Answer<()> {
    if sim.world()?.whole(device)?.1.mig_current {
        return Err(NOT_SUPPORTED);
    }
    utilization.put(nvmlUtilization_t { gpu: 0, memory: 0 })
}

macro_rules! idle_engines {
    ($($name:ident),*) => {
        $(
            pub fn $name(
                sim: &Simulated,
                device: Out<nvmlDevice_st>,
                utilization: Out<c_uint>,
                sampling_period_us: Out<c_uint>,
            ) -> Answer<()> {
                if sim.world()?.whole(device)?.1.mig_current {
                    return Err(NOT_SUPPORTED);
                }
                utilization.put(0)?;
                sampling_period_us.put(167_000)
            }
        )*
    };
}
idle_engines!(
    nvmlDeviceGetEncoderUtilization,
    nvmlDeviceGetDecoderUtilization,
    nvmlDeviceGetJpgUtilization,
    nvmlDeviceGetOfaUtilization
);

pub fn nvmlDeviceGetTemperature(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    sensor_type: nvmlTemperatureSensors_t,
    temp: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    if sensor_type != nvmlTemperatureSensors_enum_NVML_TEMPERATURE_GPU {
        return Err(INVALID_ARGUMENT);
    }
    temp.put(TEMPERATURE_C)
}

pub fn nvmlDeviceGetTemperatureV(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    temperature: Out<nvmlTemperature_t>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    if temperature.cast::<c_uint>().get()? != version::<nvmlTemperature_t>(1) {
        return Err(ARGUMENT_VERSION_MISMATCH);
    }
    let asked = temperature.get()?;
    temperature.put(nvmlTemperature_t {
        temperature: TEMPERATURE_C as c_int,
        ..asked
    })
}

pub fn nvmlDeviceGetTemperatureThreshold(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    threshold_type: nvmlTemperatureThresholds_t,
    temp: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    match threshold_type {
        nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SHUTDOWN => temp.put(92),
        nvmlTemperatureThresholds_enum_NVML_TEMPERATURE_THRESHOLD_SLOWDOWN => temp.put(89),
        _ => Err(NOT_SUPPORTED),
    }
}

pub fn nvmlDeviceGetPowerManagementLimit(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    limit: Out<c_uint>,
) -> Answer<()> {
    limit.put(power_limit(sim.world()?.whole(device)?.1.board()?))
}

pub fn nvmlDeviceGetPowerManagementDefaultLimit(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    limit: Out<c_uint>,
) -> Answer<()> {
    nvmlDeviceGetPowerManagementLimit(sim, device, limit)
}

pub fn nvmlDeviceGetEnforcedPowerLimit(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    limit: Out<c_uint>,
) -> Answer<()> {
    nvmlDeviceGetPowerManagementLimit(sim, device, limit)
}

pub fn nvmlDeviceGetPowerManagementLimitConstraints(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    min_limit: Out<c_uint>,
    max_limit: Out<c_uint>,
) -> Answer<()> {
    min_limit.put(IDLE_MILLIWATTS)?;
    nvmlDeviceGetPowerManagementLimit(sim, device, max_limit)
}

pub fn nvmlDeviceGetClockInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    kind: nvmlClockType_t,
    value: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    value.put(clock(kind, 345, 2619)?)
}

pub fn nvmlDeviceGetMaxClockInfo(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    kind: nvmlClockType_t,
    value: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    value.put(clock(kind, 1980, 2619)?)
}

/// These boards have no fan of their own.
pub fn nvmlDeviceGetFanSpeed(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _speed: Out<c_uint>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    Err(NOT_SUPPORTED)
}

pub fn nvmlDeviceGetFanSpeed_v2(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _fan: c_uint,
    speed: Out<c_uint>,
) -> Answer<()> {
    nvmlDeviceGetFanSpeed(sim, device, speed)
}

pub fn nvmlDeviceGetEccMode(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    current: Out<nvmlEnableState_t>,
    pending: Out<nvmlEnableState_t>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    current.put(ENABLED)?;
    pending.put(ENABLED)
}

pub fn nvmlDeviceGetTotalEccErrors(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _error_type: nvmlMemoryErrorType_t,
    _counter_type: nvmlEccCounterType_t,
    ecc_counts: Out<c_ulonglong>,
) -> Answer<()> {
    sim.world()?.device(device)?;
    ecc_counts.put(0)
}

pub fn nvmlDeviceGetMemoryErrorCounter(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _error_type: nvmlMemoryErrorType_t,
    _counter_type: nvmlEccCounterType_t,
    _location_type: nvmlMemoryLocation_t,
    count: Out<c_ulonglong>,
) -> Answer<()> {
    sim.world()?.device(device)?;
    count.put(0)
}

/// There are driver models on Windows only.
pub fn nvmlDeviceGetDriverModel(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    _current: Out<nvmlDriverModel_t>,
    _pending: Out<nvmlDriverModel_t>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    Err(NOT_SUPPORTED)
}

/// Each value has its own return code.
pub fn nvmlDeviceGetFieldValues(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    values_count: c_int,
    values: Out<nvmlFieldValue_t>,
) -> Answer<()> {
    use field_id::*;
    let world = sim.world()?;
    let board = world.device(device)?.gpu.board()?;
    let count = usize::try_from(values_count).map_err(|_| INVALID_ARGUMENT)?;
    let resetless = board.has_mig() && board.mode_change == geometry::ModeChange::Immediate;
    for index in 0..count {
        let place = values.at(index);
        let mut value = if values.is_null() {
            return Err(INVALID_ARGUMENT);
        } else {
            place.get()?
        };
        let known = match value.fieldId {
            NVML_FI_DEV_IS_RESETLESS_MIG_SUPPORTED => Some(resetless),
            NVML_FI_DEV_IS_MIG_MODE_INDEPENDENT_MIG_QUERY_CAPABLE => {
                Some(super::profiles::answers_while_off(&world))
            }
            _ => None,
        };
        value.nvmlReturn = nvmlReturn_enum_NVML_ERROR_NOT_SUPPORTED;
        if let Some(known) = known {
            value.nvmlReturn = nvmlReturn_enum_NVML_SUCCESS;
            value.valueType = nvmlValueType_enum_NVML_VALUE_TYPE_UNSIGNED_INT;
            value.value = nvmlValue_t {
                uiVal: known.into(),
            };
        }
        place.put(value)?;
    }
    Ok(())
}
