// SPDX-License-Identifier: Apache-2.0
//! Names of labels, annotations and the like. Those below `nvidia.com` are NVIDIA's (source: GPU
//! Operator, MIG Manager, device plugin); those below `slicewright.dev` are ours.

/// Label: name of the wanted MIG config. Written by people, operators and controllers.
pub const MIG_CONFIG: &str = "nvidia.com/mig.config";
/// Label: what became of it: `pending`, `rebooting`, `success` or `failed`.
pub const MIG_CONFIG_STATE: &str = "nvidia.com/mig.config.state";
/// Label: name of the wanted sharing config.
pub const DEVICE_PLUGIN_CONFIG: &str = "nvidia.com/device-plugin.config";
/// Label: the node has a GPU.
pub const GPU_PRESENT: &str = "nvidia.com/gpu.present";

/// Annotation: why `nvidia.com/mig.config.state` is what it is, with a stable code.
pub const MIG_CONFIG_REASON: &str = "slicewright.dev/mig-config-reason";
/// Annotation: strategy that a change set for this node; beats ClusterPolicy.
pub const MIG_STRATEGY: &str = "slicewright.dev/mig-strategy";
/// Annotation: `true`: a change of layout may take slices from pods that have them.
pub const MAY_DISRUPT: &str = "slicewright.dev/may-disrupt";
/// Annotation: `true`: the node may be rebooted for a change of the MIG mode.
pub const MAY_REBOOT: &str = "slicewright.dev/may-reboot";

/// Start of the names of NVIDIA's extended resources.
pub const RESOURCE_PREFIX: &str = "nvidia.com/";

/// Taint that nodes may be born with: the agent takes it away once the node's layout is there.
pub const NOT_READY_TAINT: &str = "slicewright.dev/not-ready";
/// Who writes, as the API server and events name it.
pub const FIELD_MANAGER: &str = "slicewright-agent";

/// Name of the ConfigMap with the MIG configs that fit a node's hardware.
pub fn generated_config_map(node: &str) -> String {
    format!("{node}-mig-config")
}
