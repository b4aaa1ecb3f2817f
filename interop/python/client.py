# SPDX-License-Identifier: Apache-2.0
"""Reads and changes MIG through nvidia-ml-py. See ../README.md."""

import json
import sys
from ctypes import byref, c_uint

from pynvml import *  # noqa: F403, that is how NVIDIA documents it

MIB = 1 << 20


def walk(ask):
    """Answers for enum values from 0 until one is invalid, without those that are not supported."""
    for number in range(64):
        try:
            yield ask(number)
        except NVMLError_NotSupported:
            continue
        except NVMLError_InvalidArgument:
            return


def placements(gpu, profile):
    count, buffer = c_uint(), (c_nvmlGpuInstancePlacement_t * 64)()
    nvmlDeviceGetGpuInstancePossiblePlacements(gpu, profile, buffer, byref(count))
    return sorted([place.start, place.size] for place in buffer[: count.value])


def profiles(gpu):
    found = []
    for info in walk(lambda number: nvmlDeviceGetGpuInstanceProfileInfo(gpu, number, 2)):
        found.append(
            {
                "name": info.name,
                "id": info.id,
                "instances": info.instanceCount,
                "memory_mib": info.memorySizeMB,
                "placements": placements(gpu, info.id),
            }
        )
    return found


def slices(gpu):
    found = []
    for index in range(nvmlDeviceGetMaxMigDeviceCount(gpu)):
        try:
            mig = nvmlDeviceGetMigDeviceHandleByIndex(gpu, index)
        except NVMLError_NotFound:
            continue
        found.append(
            {
                "uuid": nvmlDeviceGetUUID(mig),
                "name": nvmlDeviceGetName(mig),
                "gpu_instance": nvmlDeviceGetGpuInstanceId(mig),
                "compute_instance": nvmlDeviceGetComputeInstanceId(mig),
                "memory_mib": nvmlDeviceGetAttributes(mig).memorySizeMB,
            }
        )
    return found


def read():
    gpus = []
    for index in range(nvmlDeviceGetCount()):
        gpu = nvmlDeviceGetHandleByIndex(index)
        try:
            mig, _ = nvmlDeviceGetMigMode(gpu)
        except NVMLError_NotSupported:
            mig = None
        gpus.append(
            {
                "uuid": nvmlDeviceGetUUID(gpu),
                "name": nvmlDeviceGetName(gpu),
                "memory_mib": nvmlDeviceGetMemoryInfo(gpu).total // MIB,
                "pci": nvmlDeviceGetPciInfo(gpu).busId,
                "mig": mig,
                "profiles": [] if mig is None else profiles(gpu),
                "slices": slices(gpu) if mig else [],
            }
        )
    return {"driver": nvmlSystemGetDriverVersion(), "gpus": gpus}


def create(index, profile, start, size):
    gpu = nvmlDeviceGetHandleByIndex(index)
    place = c_nvmlGpuInstancePlacement_t(start, size)
    instance = nvmlDeviceCreateGpuInstanceWithPlacement(gpu, profile, byref(place))
    whole = max(
        walk(lambda number: nvmlGpuInstanceGetComputeInstanceProfileInfo(instance, number, 0)),
        key=lambda info: info.sliceCount,
    )
    compute = nvmlGpuInstanceCreateComputeInstance(instance, whole.id)
    return {
        "gpu_instance": nvmlGpuInstanceGetInfo(instance).id,
        "compute_instance": nvmlComputeInstanceGetInfo(compute).id,
    }


def destroy(index, gpu_instance, compute_instance):
    instance = nvmlDeviceGetGpuInstanceById(nvmlDeviceGetHandleByIndex(index), gpu_instance)
    nvmlComputeInstanceDestroy(nvmlGpuInstanceGetComputeInstanceById(instance, compute_instance))
    nvmlGpuInstanceDestroy(instance)
    return {}


nvmlInit()
command, *numbers = sys.argv[1:]
commands = {"read": read, "create": create, "destroy": destroy}
print(json.dumps(commands[command](*map(int, numbers))))
nvmlShutdown()
