// SPDX-License-Identifier: Apache-2.0
//! As much of CUDA's driver API as it takes to be seen using a device: the same library under the
//! name `libcuda.so.1`.
//!
//! `cuInit` finds the devices whose device nodes this process has, as the real driver does; in a
//! process that `NVMLSIM_WORLD` tells its world these are all. A context is a hold on its device,
//! as `slicewright sim hold` makes one. Nothing is computed.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpu::sys::{c_char, c_int, c_uint};

use crate::device_files::has_nodes;
use crate::handle::Handle;
use crate::holders::{HoldGuard, Target};
use crate::locate::{WORLD_VARIABLE, world_file};

/// `CUresult`.
type CuResult = c_int;
const SUCCESS: CuResult = 0;
const INVALID_VALUE: CuResult = 1;
const NOT_INITIALIZED: CuResult = 3;
const NO_DEVICE: CuResult = 100;
const INVALID_DEVICE: CuResult = 101;
const INVALID_CONTEXT: CuResult = 201;
const UNKNOWN: CuResult = 999;

/// CUDA of this process.
struct Cuda {
    handle: Handle,
    /// UUIDs of the devices, by ordinal.
    devices: Vec<String>,
    contexts: BTreeMap<usize, HoldGuard>,
    next: usize,
}

static CUDA: Mutex<Option<Cuda>> = Mutex::new(None);

fn cuda() -> MutexGuard<'static, Option<Cuda>> {
    CUDA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs the body; a panic in it is an answer.
fn guarded(body: impl FnOnce() -> Result<(), CuResult>) -> CuResult {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => SUCCESS,
        Ok(Err(code)) => code,
        Err(_) => UNKNOWN,
    }
}

fn with<T>(body: impl FnOnce(&mut Cuda) -> Result<T, CuResult>) -> Result<T, CuResult> {
    cuda().as_mut().map_or(Err(NOT_INITIALIZED), body)
}

fn open() -> Result<Cuda, CuResult> {
    let path = world_file().ok_or(NO_DEVICE)?;
    let handle = Handle::open(&path).map_err(|_| NO_DEVICE)?;
    let world = handle.world().map_err(|_| NO_DEVICE)?;
    let sees_all = std::env::var_os(WORLD_VARIABLE).is_some();
    let mut devices = Vec::new();
    for gpu in world.gpus.iter().filter(|gpu| !gpu.lost) {
        if !gpu.mig_current && (sees_all || has_nodes(gpu.minor, None)) {
            devices.push(gpu.uuid.to_string());
        }
        for (instance, compute) in gpu.mig_devices() {
            if sees_all || has_nodes(gpu.minor, Some((instance.id, compute.id))) {
                devices.push(gpu.mig_uuid(instance, compute).to_string());
            }
        }
    }
    if devices.is_empty() {
        return Err(NO_DEVICE);
    }
    Ok(Cuda {
        handle,
        devices,
        contexts: BTreeMap::new(),
        next: 1,
    })
}

impl Cuda {
    /// The UUID of a device that is still there.
    fn device(&self, ordinal: c_int) -> Result<&str, CuResult> {
        let ordinal = usize::try_from(ordinal).map_err(|_| INVALID_DEVICE)?;
        let uuid = self.devices.get(ordinal).ok_or(INVALID_DEVICE)?;
        let world = self.handle.world().map_err(|_| UNKNOWN)?;
        Target::find(&world, uuid).ok_or(NO_DEVICE)?;
        Ok(uuid)
    }
}

/// `cuInit` of `cuda.h`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn cuInit(flags: c_uint) -> CuResult {
    guarded(|| {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let mut cuda = cuda();
        if cuda.is_none() {
            *cuda = Some(open()?);
        }
        Ok(())
    })
}

/// `cuDeviceGetCount` of `cuda.h`.
///
/// # Safety
/// `count` must be null or point to an `int`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuDeviceGetCount(count: *mut c_int) -> CuResult {
    guarded(|| {
        let found = with(|cuda| c_int::try_from(cuda.devices.len()).map_err(|_| UNKNOWN))?;
        // SAFETY: the caller's contract.
        unsafe { write(count, found) }
    })
}

/// `cuDeviceGet` of `cuda.h`.
///
/// # Safety
/// `device` must be null or point to a `CUdevice`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuDeviceGet(device: *mut c_int, ordinal: c_int) -> CuResult {
    guarded(|| {
        with(|cuda| cuda.device(ordinal).map(|_| ()))?;
        // SAFETY: the caller's contract.
        unsafe { write(device, ordinal) }
    })
}

/// `cuDeviceGetUuid_v2` of `cuda.h`: for a slice that of the slice.
///
/// # Safety
/// `uuid` must be null or point to 16 bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuDeviceGetUuid_v2(uuid: *mut [u8; 16], device: c_int) -> CuResult {
    guarded(|| {
        let found = with(|cuda| bytes(cuda.device(device)?).ok_or(UNKNOWN))?;
        // SAFETY: the caller's contract.
        unsafe { write(uuid, found) }
    })
}

/// `cuDeviceGetName` of `cuda.h`: the UUID with its prefix, which tells a slice from a GPU.
///
/// # Safety
/// `name` must be null or point to `length` bytes.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuDeviceGetName(
    name: *mut c_char,
    length: c_int,
    device: c_int,
) -> CuResult {
    guarded(|| {
        let found = with(|cuda| cuda.device(device).map(str::to_owned))?;
        let room = usize::try_from(length).map_err(|_| INVALID_VALUE)?;
        if name.is_null() || room <= found.len() {
            return Err(INVALID_VALUE);
        }
        // SAFETY: there is room for the text and its end, and the two do not overlap.
        unsafe {
            std::ptr::copy_nonoverlapping(found.as_ptr().cast(), name, found.len());
            name.add(found.len()).write(0);
        }
        Ok(())
    })
}

/// `cuCtxCreate_v2` of `cuda.h`: from here on this process is a holder of the device.
///
/// # Safety
/// `context` must be null or point to a `CUcontext`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn cuCtxCreate_v2(
    context: *mut usize,
    _flags: c_uint,
    device: c_int,
) -> CuResult {
    guarded(|| {
        let id = with(|cuda| {
            let uuid = cuda.device(device)?.to_owned();
            let hold = cuda.handle.hold(&uuid).map_err(|_| NO_DEVICE)?;
            let id = cuda.next;
            cuda.next += 1;
            cuda.contexts.insert(id, hold);
            Ok(id)
        })?;
        // SAFETY: the caller's contract.
        unsafe { write(context, id) }
    })
}

/// `cuCtxDestroy_v2` of `cuda.h`.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn cuCtxDestroy_v2(context: usize) -> CuResult {
    guarded(|| {
        with(|cuda| match cuda.contexts.remove(&context) {
            Some(_) => Ok(()),
            None => Err(INVALID_CONTEXT),
        })
    })
}

/// # Safety
/// `to` must be null or point to a `T`.
unsafe fn write<T>(to: *mut T, value: T) -> Result<(), CuResult> {
    if to.is_null() {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's contract.
    unsafe { to.write(value) };
    Ok(())
}

/// The bytes of `GPU-xxxxxxxx-xxxx-...`.
fn bytes(uuid: &str) -> Option<[u8; 16]> {
    let (_, digits) = uuid.split_once('-')?;
    let digits: Vec<char> = digits.chars().filter(|sign| *sign != '-').collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let text: String = pair.iter().collect();
        *byte = u8::from_str_radix(&text, 16).ok()?;
    }
    (digits.len() == 32).then_some(bytes)
}
