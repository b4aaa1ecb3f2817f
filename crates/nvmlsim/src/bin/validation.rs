// SPDX-License-Identifier: Apache-2.0
//! What a workload does with the GPU or slice that it was given, and nothing else: opens it, is seen
//! as its holder, and looks every 100 ms whether it is still there.
//!
//! It finds its devices as any CUDA program does, by `libcuda.so.1`, so with what the kubelet's
//! device plugin gave the container, or not at all.
//!
//! usage: validation [--once] [--devices N]
//!   --once       end after the test; else run until a signal
//!   --devices N  fail unless exactly N devices are there

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::process::ExitCode;
use std::time::Duration;

use libloading::{Library, Symbol};

/// How often a device is looked at.
const EVERY: Duration = Duration::from_millis(100);

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            println!("Test FAILED: {reason}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let cuda = Cuda::load()?;
    let count = cuda.count()?;
    if let Some(at) = words.iter().position(|word| word == "--devices") {
        let wanted = words.get(at + 1).and_then(|word| word.parse().ok());
        if wanted != Some(count) {
            return Err(format!("there are {count} devices, expected {wanted:?}"));
        }
    }
    let mut names = Vec::new();
    for device in 0..count {
        names.push(cuda.name(device)?);
        cuda.open(device)?;
    }
    println!("Devices: {}", names.join(" "));
    println!("Test PASSED");
    if words.iter().any(|word| word == "--once") {
        return Ok(());
    }
    loop {
        std::thread::sleep(EVERY);
        for (device, name) in (0..).zip(&names) {
            let now = cuda
                .name(device)
                .map_err(|why| format!("{name} is gone: {why}"))?;
            if now != *name {
                return Err(format!("{name} has become {now}"));
            }
        }
    }
}

struct Cuda(Library);

impl Cuda {
    fn load() -> Result<Self, String> {
        // SAFETY: loading the driver's library runs its initialisers, which every CUDA program does.
        let library = unsafe { Library::new("libcuda.so.1") };
        let cuda = Self(library.map_err(|error| format!("no driver here: {error}"))?);
        // SAFETY: the signature is that of cuda.h.
        let init: Symbol<'_, unsafe extern "C" fn(u32) -> i32> =
            unsafe { cuda.function("cuInit") }?;
        // SAFETY: no preconditions.
        check("cuInit", unsafe { init(0) })?;
        Ok(cuda)
    }

    /// # Safety
    /// `T` must be the function's type in cuda.h.
    unsafe fn function<T>(&self, name: &str) -> Result<Symbol<'_, T>, String> {
        // SAFETY: the caller's contract.
        let found = unsafe { self.0.get(name.as_bytes()) };
        found.map_err(|error| error.to_string())
    }

    fn count(&self) -> Result<i32, String> {
        // SAFETY: the signature is that of cuda.h.
        let get: Symbol<'_, unsafe extern "C" fn(*mut i32) -> i32> =
            unsafe { self.function("cuDeviceGetCount") }?;
        let mut count = 0;
        // SAFETY: the out parameter is a live local.
        check("cuDeviceGetCount", unsafe { get(&raw mut count) })?;
        Ok(count)
    }

    fn name(&self, device: i32) -> Result<String, String> {
        // SAFETY: the signature is that of cuda.h.
        let get: Symbol<'_, unsafe extern "C" fn(*mut i8, i32, i32) -> i32> =
            unsafe { self.function("cuDeviceGetName") }?;
        let mut name = [0_i8; 128];
        // SAFETY: the buffer is as long as is said.
        check("cuDeviceGetName", unsafe {
            get(name.as_mut_ptr(), 128, device)
        })?;
        // SAFETY: the driver ends the text within the buffer.
        let text = unsafe { CStr::from_ptr(name.as_ptr()) };
        Ok(text.to_string_lossy().into_owned())
    }

    fn open(&self, device: i32) -> Result<(), String> {
        // SAFETY: the signature is that of cuda.h.
        let create: Symbol<'_, unsafe extern "C" fn(*mut usize, u32, i32) -> i32> =
            unsafe { self.function("cuCtxCreate_v2") }?;
        let mut context = 0;
        // SAFETY: the out parameter is a live local. The context lives as long as the process.
        check("cuCtxCreate", unsafe {
            create(&raw mut context, 0, device)
        })
    }
}

fn check(what: &str, code: i32) -> Result<(), String> {
    match code {
        0 => Ok(()),
        code => Err(format!("{what} answered {code}")),
    }
}
