// SPDX-License-Identifier: Apache-2.0
//! The shared library, as a C program uses it.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;

use gpu::sys::*;
use gpu::{Functions, Library, NvmlCode};
use nvmlsim::{Handle, Options, WORLD_VARIABLE, World, verbs};

const NAMES: &str = include_str!("../nvml-functions.txt");

/// The library beside this test program.
fn library() -> PathBuf {
    std::env::current_exe()
        .unwrap()
        .with_file_name("libnvmlsim.so")
}

fn names() -> impl Iterator<Item = &'static str> {
    NAMES.lines().filter(|line| !line.starts_with('#'))
}

#[test]
fn every_function_of_the_header_is_exported() {
    // SAFETY: loading our own library runs nothing of it.
    let library = unsafe { libloading::Library::new(library()) }.unwrap();
    for line in names() {
        let name = line.split(' ').next().unwrap();
        // SAFETY: the symbol is looked up, not called.
        let found = unsafe { library.get::<extern "C" fn()>(name.as_bytes()) };
        assert!(found.is_ok(), "{name} is not exported");
    }
    assert_eq!(names().count(), 428);
}

#[test]
fn the_list_marks_what_is_served() {
    macro_rules! rows {
        ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => { [$(stringify!($name)),*] };
    }
    let mut served = gpu::nvml_functions!(rows).to_vec();
    served.push("nvmlErrorString");
    served.sort_unstable();
    let marked: Vec<&str> = names()
        .filter_map(|line| line.strip_suffix(" served"))
        .collect();
    assert_eq!(marked, served);
}

fn world(folder: &Path) -> Handle {
    let path = folder.join("world.json");
    let spec = "1xH100-80GB-SXM,1xT4".parse().unwrap();
    let handle = Handle::create(&path, &World::create(&spec, &Options::default())).unwrap();
    // SAFETY: no other test of this program touches the environment.
    unsafe { std::env::set_var(WORLD_VARIABLE, &path) };
    handle
}

#[track_caller]
fn assert_code(code: nvmlReturn_t, expected: NvmlCode) {
    assert_eq!(NvmlCode(code), expected);
}

/// One test, because a process has one NVML.
#[test]
fn nothing_a_caller_does_can_hurt() {
    let folder = std::env::temp_dir().join(format!("nvmlsim-abi-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let handle = world(&folder);
    let nvml = Library::load(Some(&library())).unwrap();
    let mut count = 0;
    let mut device = null_mut();
    let mut mode = 0;
    // SAFETY: pointers to locals or null; handles are numbers to this library, and wrong ones are
    // what is tested.
    unsafe {
        assert_code(nvml.nvmlDeviceGetCount_v2(&mut count), NvmlCode(1));
        assert_code(nvml.nvmlShutdown(), NvmlCode(1));
        assert_code(nvml.nvmlInit_v2(), NvmlCode(0));
        assert_code(nvml.nvmlDeviceGetCount_v2(&mut count), NvmlCode(0));
        assert_eq!(count, 2);
        assert_code(
            nvml.nvmlDeviceGetCount_v2(null_mut()),
            NvmlCode::INVALID_ARGUMENT,
        );
        let wrong = nvml.nvmlDeviceGetHandleByIndex_v2(2, &mut device);
        assert_code(wrong, NvmlCode::INVALID_ARGUMENT);
        let null = nvml.nvmlDeviceGetMigMode(null_mut(), &mut mode, &mut mode);
        assert_code(null, NvmlCode::INVALID_ARGUMENT);
        let foreign = nvml.nvmlDeviceGetMigMode(0x1000 as nvmlDevice_t, &mut mode, &mut mode);
        assert_code(foreign, NvmlCode::INVALID_ARGUMENT);
        let bad_text = nvml.nvmlDeviceGetHandleByUUID(c"\xff".as_ptr(), &mut device);
        assert_code(bad_text, NvmlCode::INVALID_ARGUMENT);
        assert_code(
            nvml.nvmlDeviceGetHandleByIndex_v2(0, &mut device),
            NvmlCode(0),
        );
        let mut short = [1; 4];
        let cut = nvml.nvmlDeviceGetUUID(device, short.as_mut_ptr(), 4);
        assert_code(cut, NvmlCode::INSUFFICIENT_SIZE);
        assert_eq!(short, [1; 4]);
        versions(&nvml, device);
        stale_handles(&nvml, &handle, device);
        events(&nvml, &handle, device);
        assert_code(nvml.nvmlShutdown(), NvmlCode(0));
        assert_code(nvml.nvmlDeviceGetCount_v2(&mut count), NvmlCode(1));
        std::fs::write(folder.join("world.json"), "{}").unwrap();
        assert_code(nvml.nvmlInit_v2(), NvmlCode::DRIVER_NOT_LOADED);
    }
    std::fs::remove_dir_all(folder).unwrap();
}

unsafe fn versions(nvml: &Library, device: nvmlDevice_t) {
    // SAFETY: C structs of integers, for which all zeros is a value; pointers to locals.
    unsafe {
        let mut info: nvmlGpuInstanceProfileInfo_v3_t = std::mem::zeroed();
        let ask = |info: &mut nvmlGpuInstanceProfileInfo_v3_t| {
            nvml.nvmlDeviceGetGpuInstanceProfileInfoV(device, 7, std::ptr::from_mut(info).cast())
        };
        assert_code(ask(&mut info), NvmlCode::ARGUMENT_VERSION_MISMATCH);
        info.version = size_of_val(&info) as u32 | 3 << 24;
        assert_code(ask(&mut info), NvmlCode(0));
        let name = CStr::from_ptr(info.name.as_ptr());
        assert_eq!((info.id, name), (20, c"MIG 1g.10gb+me"));
        let mut memory: nvmlMemory_v2_t = std::mem::zeroed();
        let old = nvml.nvmlDeviceGetMemoryInfo_v2(device, &mut memory);
        assert_code(old, NvmlCode::ARGUMENT_VERSION_MISMATCH);
        memory.version = size_of_val(&memory) as u32 | 2 << 24;
        assert_code(
            nvml.nvmlDeviceGetMemoryInfo_v2(device, &mut memory),
            NvmlCode(0),
        );
        assert_eq!(memory.total, 81559 << 20);
    }
}

unsafe fn stale_handles(nvml: &Library, handle: &Handle, device: nvmlDevice_t) {
    let mut activation = 0;
    let (mut first, mut second) = (null_mut(), null_mut());
    // SAFETY: pointers to locals, and handles of this library, stale ones among them.
    unsafe {
        let info = |instance| {
            let mut info: nvmlGpuInstanceInfo_t = std::mem::zeroed();
            NvmlCode(nvml.nvmlGpuInstanceGetInfo(instance, &mut info))
        };
        assert_code(
            nvml.nvmlDeviceSetMigMode(device, 1, &mut activation),
            NvmlCode(0),
        );
        assert_code(
            nvml.nvmlDeviceCreateGpuInstance(device, 0, &mut first),
            NvmlCode(0),
        );
        let full = nvml.nvmlDeviceCreateGpuInstance(device, 0, &mut second);
        assert_code(full, NvmlCode::INSUFFICIENT_RESOURCES);
        assert_code(nvml.nvmlGpuInstanceDestroy(first), NvmlCode(0));
        assert_eq!(info(first), NvmlCode::INVALID_ARGUMENT);
        assert_code(
            nvml.nvmlDeviceCreateGpuInstance(device, 0, &mut second),
            NvmlCode(0),
        );
        assert_eq!(
            (info(first), info(second)),
            (NvmlCode::INVALID_ARGUMENT, NvmlCode(0))
        );
        verbs::fault(handle, &["stale gpu=0"]).unwrap();
        assert_eq!(info(second), NvmlCode::INVALID_ARGUMENT);
    }
}

unsafe fn events(nvml: &Library, handle: &Handle, device: nvmlDevice_t) {
    let mut set = null_mut();
    // SAFETY: pointers to locals, and handles of this library.
    unsafe {
        let mut data: nvmlEventData_t = std::mem::zeroed();
        assert_code(nvml.nvmlEventSetCreate(&mut set), NvmlCode(0));
        let xids = u64::from(nvmlEventTypeXidCriticalError);
        assert_code(
            nvml.nvmlDeviceRegisterEvents(device, xids, set),
            NvmlCode(0),
        );
        assert_code(
            nvml.nvmlEventSetWait_v2(set, &mut data, 0),
            NvmlCode::TIMEOUT,
        );
        verbs::fault(handle, &["xid gpu=1 13", "xid gpu=0 gi=0 ci=0 79"]).unwrap();
        assert_code(nvml.nvmlEventSetWait_v2(set, &mut data, 0), NvmlCode(0));
        assert_eq!(
            (data.eventType, data.eventData, data.gpuInstanceId),
            (8, 79, 0)
        );
        assert_code(
            nvml.nvmlEventSetWait_v2(set, &mut data, 0),
            NvmlCode::TIMEOUT,
        );
        assert_code(nvml.nvmlEventSetFree(set), NvmlCode(0));
        let freed = nvml.nvmlEventSetWait_v2(set, &mut data, 0);
        assert_code(freed, NvmlCode::INVALID_ARGUMENT);
    }
}
