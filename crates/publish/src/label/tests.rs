// SPDX-License-Identifier: Apache-2.0
//! Which keys are ours.

use super::*;

#[test]
fn keys_that_others_set_are_not_ours() {
    for key in [
        "nvidia.com/gpu.product",
        "nvidia.com/gpu.clique",
        "nvidia.com/gpu.slices.gi",
        "nvidia.com/mig-1g.10gb.me.engines.ofa",
        "nvidia.com/mig.strategy",
        "nvidia.com/mps.capable",
        "nvidia.com/cuda.driver.rev",
        "nvidia.com/cuda.runtime-version.full",
        "nvidia.com/vgpu.host-driver-branch",
        "nvidia.com/gfd.timestamp",
        "slicewright.dev/gpu-model.Tesla-T4",
    ] {
        assert!(is_ours(key), "{key}");
    }
    for key in [
        "nvidia.com/gpu.present",
        "nvidia.com/gpu.deploy.device-plugin",
        "nvidia.com/gpu.workload.config",
        "nvidia.com/gpu-driver-upgrade-state",
        "nvidia.com/mig.config",
        "nvidia.com/mig.config.state",
        "nvidia.com/device-plugin.config",
        "nvidia.com/mig-manager.version",
        "kubernetes.io/hostname",
        "slicewright.dev/pool",
    ] {
        assert!(!is_ours(key), "{key}");
    }
}
