// SPDX-License-Identifier: Apache-2.0
//! The layout of every struct that we share with NVML, checked by the C compiler against the newest
//! header, which `go-nvml` carries.

use std::mem::offset_of;
use std::path::{Path, PathBuf};

use gpu::sys::*;

use super::Findings;
use crate::error::Error;
use crate::process::{command, output};

/// Assertions in C about these structs and these fields of them, from their layout in Rust.
macro_rules! assertions {
    ($($kind:ident { $($field:ident),* })*) => {
        [$(
            assertion(
                concat!("sizeof(", stringify!($kind), ")"),
                size_of::<$kind>(),
            ),
            $(assertion(
                concat!("offsetof(", stringify!($kind), ", ", stringify!($field), ")"),
                offset_of!($kind, $field),
            ),)*
        )*]
    };
}

fn assertion(what: &str, value: usize) -> String {
    format!("_Static_assert({what} == {value}, \"{what} is not {value}\");")
}

fn structs() -> Vec<String> {
    assertions! {
        nvmlPciInfo_t { busIdLegacy, domain, bus, device, pciDeviceId, pciSubSystemId, busId }
        nvmlMemory_t { total, free, used }
        nvmlMemory_v2_t { version, total, reserved, free, used }
        nvmlUtilization_t { gpu, memory }
        nvmlProcessInfo_v1_t { pid, usedGpuMemory }
        nvmlProcessInfo_t { pid, usedGpuMemory, gpuInstanceId, computeInstanceId }
        nvmlDeviceAttributes_t {
            multiprocessorCount, sharedCopyEngineCount, sharedDecoderCount, sharedEncoderCount,
            sharedJpegCount, sharedOfaCount, gpuInstanceSliceCount, computeInstanceSliceCount,
            memorySizeMB
        }
        nvmlGpuInstancePlacement_t { start, size }
        nvmlGpuInstanceProfileInfo_t {
            id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
            decoderCount, encoderCount, jpegCount, ofaCount, memorySizeMB
        }
        nvmlGpuInstanceProfileInfo_v2_t {
            version, id, isP2pSupported, sliceCount, instanceCount, multiprocessorCount,
            copyEngineCount, decoderCount, encoderCount, jpegCount, ofaCount, memorySizeMB, name
        }
        nvmlGpuInstanceProfileInfo_v3_t {
            version, id, sliceCount, instanceCount, multiprocessorCount, copyEngineCount,
            decoderCount, encoderCount, jpegCount, ofaCount, memorySizeMB, name, capabilities
        }
        nvmlGpuInstanceInfo_t { device, id, profileId, placement }
        nvmlComputeInstancePlacement_t { start, size }
        nvmlComputeInstanceProfileInfo_t {
            id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
            sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount
        }
        nvmlComputeInstanceProfileInfo_v2_t {
            version, id, sliceCount, instanceCount, multiprocessorCount, sharedCopyEngineCount,
            sharedDecoderCount, sharedEncoderCount, sharedJpegCount, sharedOfaCount, name
        }
        nvmlComputeInstanceInfo_t { device, gpuInstance, id, profileId, placement }
        nvmlEventData_t { device, eventType, eventData, gpuInstanceId, computeInstanceId }
        nvmlFieldValue_t {
            fieldId, scopeId, timestamp, latencyUsec, valueType, nvmlReturn, value
        }
        nvmlBAR1Memory_t { bar1Total, bar1Free, bar1Used }
        nvmlGpuFabricInfoV_t { version, clusterUuid, status, cliqueId, state, healthMask }
    }
    .into()
}

/// What the header calls the version tags that we compute.
fn tags() -> [String; 4] {
    let tag = |name: &str, size: usize, version: usize| assertion(name, size | version << 24);
    [
        tag("nvmlMemory_v2", size_of::<nvmlMemory_v2_t>(), 2),
        tag(
            "nvmlGpuInstanceProfileInfo_v2",
            size_of::<nvmlGpuInstanceProfileInfo_v2_t>(),
            2,
        ),
        tag(
            "nvmlGpuInstanceProfileInfo_v3",
            size_of::<nvmlGpuInstanceProfileInfo_v3_t>(),
            3,
        ),
        tag(
            "nvmlComputeInstanceProfileInfo_v2",
            size_of::<nvmlComputeInstanceProfileInfo_v2_t>(),
            2,
        ),
    ]
}

/// Compiles the assertions; what does not hold.
///
/// # Errors
/// If the header cannot be found, or the compiler cannot be started.
pub fn check(root: &Path, work: &Path) -> Result<Findings, Error> {
    let list = ["go", "-C", "interop/go", "list", "-m", "-f", "{{.Dir}}"];
    let module = output(
        root,
        &[list.as_slice(), &["github.com/NVIDIA/go-nvml"]].concat(),
    )?;
    let headers: PathBuf = Path::new(module.trim()).join("pkg/nvml");
    let program = work.join("layout.c");
    let mut lines = vec![
        "#include <stddef.h>".to_owned(),
        "#include \"nvml.h\"".to_owned(),
    ];
    lines.extend(structs());
    lines.extend(tags());
    std::fs::write(&program, lines.join("\n") + "\n")
        .map_err(|error| Error::interop("write the layout check", error))?;
    let [headers, program] = [&headers, &program].map(|path| path.to_string_lossy());
    let words = ["cc", "-std=c11", "-fsyntax-only", "-I", &headers, &program];
    let result = command(root, &words)
        .output()
        .map_err(|source| Error::Run {
            command: words.join(" "),
            source,
        })?;
    let stderr = String::from_utf8_lossy(&result.stderr);
    let complaints = stderr.lines().filter(|line| line.contains("error"));
    let mut findings: Findings = complaints.map(str::to_owned).collect();
    if !result.status.success() && findings.is_empty() {
        findings.push(format!("cc failed: {stderr}"));
    }
    Ok(findings)
}
