// SPDX-License-Identifier: Apache-2.0
//! What the agent is told when it starts. Flags and environment are read by the caller.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use cdi::Hooks;
use config::deviceplugin::{AllocationPolicy, Config, IdStrategy, ListStrategy, MigStrategy};
use config::gpu_clients::GpuClients;
use publish::XidPolicy;

/// Everything that the agent is told when it starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How Kubernetes is reached; `None`: without it, with configuration from files alone.
    pub kubernetes: Option<Kubernetes>,
    /// Text of a device-plugin configuration file, with its path.
    pub plugin_file: Option<(String, String)>,
    /// Text of a MIG configuration file, with its path.
    pub mig_file: Option<(String, String)>,
    /// Settings that beat every configuration file.
    pub overrides: Overrides,
    /// Paths on this machine.
    pub paths: Paths,
    /// Where health and metrics are served; `None`: nowhere.
    pub listen: Option<SocketAddr>,
    /// Which XIDs make a device unhealthy.
    pub xids: XidPolicy,
    /// Whether a change of layout may take slices from pods to which they are allocated, unless an
    /// annotation of the node says otherwise.
    pub may_disrupt: bool,
    /// Whether the node may be rebooted for a change of the MIG mode, unless an annotation of the
    /// node says otherwise.
    pub may_reboot: bool,
    /// Services of the node that are stopped while a layout changes, where no ConfigMap names
    /// others; `None`: none are.
    pub services: Option<GpuClients>,
}

/// This node in its cluster.
#[derive(Clone, Debug)]
pub struct Kubernetes {
    /// The node's name.
    pub node: String,
    /// Namespace of the agent, of its ConfigMaps and of the clients that it pauses.
    pub namespace: String,
    /// Kubeconfig; `None`: `KUBECONFIG`, then that of the pod.
    pub kubeconfig: Option<PathBuf>,
    /// ConfigMap with named sharing configs, where ClusterPolicy names none.
    pub sharing_config_map: Option<String>,
    /// Default in it, where ClusterPolicy names none.
    pub sharing_default: Option<String>,
    /// MIG config for a node without the label, where ClusterPolicy names none.
    pub mig_default: Option<String>,
}

/// Paths on this machine.
#[derive(Clone, Debug)]
pub struct Paths {
    /// Root of the driver installation as the node has it.
    pub driver_root: PathBuf,
    /// The same as the agent sees it.
    pub driver_root_here: PathBuf,
    /// Root of the device nodes as the node has it.
    pub dev_root: PathBuf,
    /// The same as the agent sees it.
    pub dev_root_here: PathBuf,
    /// Folder of the sockets of device plugins.
    pub plugins: PathBuf,
    /// Socket at which plugins register; `None`: they do not.
    pub kubelet: Option<PathBuf>,
    /// Socket of the kubelet's pod-resources; `None`: it is not asked.
    pub pod_resources: Option<PathBuf>,
    /// Folder of CDI specifications.
    pub cdi: PathBuf,
    /// Hooks of CDI specifications.
    pub cdi_hooks: Hooks,
    /// Journal and history.
    pub state: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// `/proc/driver`.
    pub proc_driver: PathBuf,
    /// `/proc`, in which the node's processes are looked for.
    pub proc: PathBuf,
}

/// Settings of NVIDIA's programs that were given as flag or environment variable: they beat a
/// configuration file (source: the device plugin; measured).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `MIG_STRATEGY`.
    pub mig_strategy: Option<MigStrategy>,
    /// `DEVICE_LIST_STRATEGY`.
    pub device_list_strategy: Option<BTreeSet<ListStrategy>>,
    /// `DEVICE_ID_STRATEGY`.
    pub device_id_strategy: Option<IdStrategy>,
    /// `PASS_DEVICE_SPECS`.
    pub pass_device_specs: Option<bool>,
    /// `CDI_ANNOTATION_PREFIX`.
    pub cdi_annotation_prefix: Option<String>,
    /// `SHARED_DEVICES_ALLOCATION_POLICY`.
    pub shared_devices_allocation_policy: Option<AllocationPolicy>,
    /// `NVIDIA_DRIVER_ROOT`.
    pub nvidia_driver_root: Option<String>,
    /// `NVIDIA_DEV_ROOT`.
    pub nvidia_dev_root: Option<String>,
    /// `GDRCOPY_ENABLED`.
    pub gdrcopy_enabled: Option<bool>,
    /// `GDS_ENABLED`.
    pub gds_enabled: Option<bool>,
    /// `MOFED_ENABLED`.
    pub mofed_enabled: Option<bool>,
    /// `IMEX_CHANNEL_IDS`: whether channel 0 is given to containers.
    pub imex_channel_0: Option<bool>,
    /// `IMEX_REQUIRED`.
    pub imex_required: Option<bool>,
    /// `GFD_NO_TIMESTAMP`.
    pub no_timestamp: Option<bool>,
    /// `GFD_OUTPUT_FILE`: labels go to this file instead of to the node.
    pub label_file: Option<String>,
    /// `GFD_MACHINE_TYPE_FILE`.
    pub machine_type_file: Option<String>,
}

impl Overrides {
    /// A configuration with these settings over it.
    #[must_use]
    pub fn over(&self, mut config: Config) -> Config {
        fn set<T: Clone>(to: &mut T, from: Option<&T>) {
            if let Some(from) = from {
                to.clone_from(from);
            }
        }
        let flags = &mut config.flags;
        set(&mut flags.mig_strategy, self.mig_strategy.as_ref());
        if let Some(root) = &self.nvidia_driver_root {
            flags.nvidia_driver_root.clone_from(root);
            flags.nvidia_dev_root.clone_from(root);
        }
        set(&mut flags.nvidia_dev_root, self.nvidia_dev_root.as_ref());
        set(&mut flags.gdrcopy_enabled, self.gdrcopy_enabled.as_ref());
        set(&mut flags.gds_enabled, self.gds_enabled.as_ref());
        set(&mut flags.mofed_enabled, self.mofed_enabled.as_ref());
        let plugin = &mut flags.plugin;
        set(
            &mut plugin.device_list_strategy,
            self.device_list_strategy.as_ref(),
        );
        set(
            &mut plugin.device_id_strategy,
            self.device_id_strategy.as_ref(),
        );
        set(
            &mut plugin.pass_device_specs,
            self.pass_device_specs.as_ref(),
        );
        set(
            &mut plugin.cdi_annotation_prefix,
            self.cdi_annotation_prefix.as_ref(),
        );
        set(
            &mut plugin.shared_devices_allocation_policy,
            self.shared_devices_allocation_policy.as_ref(),
        );
        set(&mut config.imex.channel_0, self.imex_channel_0.as_ref());
        set(&mut config.imex.required, self.imex_required.as_ref());
        let gfd = &mut config.flags.gfd;
        set(&mut gfd.no_timestamp, self.no_timestamp.as_ref());
        set(&mut gfd.output_file, self.label_file.as_ref());
        set(&mut gfd.machine_type_file, self.machine_type_file.as_ref());
        config
    }
}
