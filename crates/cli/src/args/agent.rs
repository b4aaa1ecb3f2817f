// SPDX-License-Identifier: Apache-2.0
//! Arguments of `slicewright agent`.

use std::path::PathBuf;

use clap::Args;

/// Flags of the agent. Those of NVIDIA's programs keep their names; each can be given as the
/// environment variable in brackets too, and a flag beats a variable.
#[derive(Debug, Args)]
pub struct AgentArgs {
    /// Name of this node [env: NODE_NAME]. Without it the agent works without Kubernetes, with
    /// configuration from files alone.
    #[arg(long, value_name = "NAME")]
    pub node_name: Option<String>,
    /// Kubeconfig [env: KUBECONFIG; else that of the pod].
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Namespace of the agent and of its ConfigMaps [env: POD_NAMESPACE; default: slicewright].
    #[arg(long, value_name = "NAMESPACE")]
    pub namespace: Option<String>,
    /// A device-plugin configuration or a MIG configuration, told apart by content; may be given
    /// twice [env: CONFIG_FILE].
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// ConfigMap with named sharing configs, where ClusterPolicy names none.
    #[arg(long, value_name = "NAME")]
    pub sharing_config_map: Option<String>,
    /// Sharing config of nodes without the label, where ClusterPolicy names none
    /// [env: DEFAULT_CONFIG].
    #[arg(long, value_name = "NAME")]
    pub default_sharing_config: Option<String>,
    /// MIG config that a node without the label gets, where ClusterPolicy names none.
    #[arg(long, value_name = "NAME")]
    pub default_mig_config: Option<String>,
    /// How slices are named: none, single or mixed [env: MIG_STRATEGY].
    #[arg(long, value_name = "STRATEGY")]
    pub mig_strategy: Option<String>,
    /// How containers learn their devices, several separated by commas: envvar, volume-mounts,
    /// cdi-annotations, cdi-cri [env: DEVICE_LIST_STRATEGY].
    #[arg(long, value_name = "LIST")]
    pub device_list_strategy: Option<String>,
    /// What the ids in it are: uuid or index [env: DEVICE_ID_STRATEGY].
    #[arg(long, value_name = "STRATEGY")]
    pub device_id_strategy: Option<String>,
    /// Whether device nodes are in the answer to the kubelet [env: PASS_DEVICE_SPECS].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub pass_device_specs: Option<String>,
    /// Prefix of CDI annotations [env: CDI_ANNOTATION_PREFIX].
    #[arg(long, value_name = "PREFIX")]
    pub cdi_annotation_prefix: Option<String>,
    /// Which GPU a replica is taken from: distributed or packed
    /// [env: SHARED_DEVICES_ALLOCATION_POLICY].
    #[arg(long, value_name = "POLICY")]
    pub shared_devices_allocation_policy: Option<String>,
    /// Root of the driver installation on the node [env: NVIDIA_DRIVER_ROOT; default: /].
    #[arg(long, alias = "nvidia-driver-root", value_name = "DIR")]
    pub driver_root: Option<String>,
    /// The same as the agent sees it [env: DRIVER_ROOT_CTR_PATH, CONTAINER_DRIVER_ROOT; default:
    /// the driver root].
    #[arg(long, alias = "container-driver-root", value_name = "DIR")]
    pub driver_root_ctr_path: Option<String>,
    /// Root of the device nodes on the node [env: NVIDIA_DEV_ROOT; default: the driver root].
    #[arg(long, alias = "nvidia-dev-root", value_name = "DIR")]
    pub dev_root: Option<String>,
    /// The same as the agent sees it [env: DEV_ROOT_CTR_PATH; default: /, or the driver root as the
    /// agent sees it where no root of device nodes is given].
    #[arg(long, value_name = "DIR")]
    pub dev_root_ctr_path: Option<String>,
    /// Program that CDI hooks call; empty: no hooks [env: NVIDIA_CDI_HOOK_PATH, NVIDIA_CTK_PATH].
    #[arg(long, alias = "nvidia-ctk-path", value_name = "PATH")]
    pub nvidia_cdi_hook_path: Option<String>,
    /// CDI hooks that are not wanted, several separated by commas; all: none is
    /// [env: CDI_DISABLE_HOOKS].
    #[arg(long, value_name = "LIST")]
    pub cdi_disable_hooks: Option<String>,
    /// Socket at which plugins register; empty: they do not [env: KUBELET_SOCKET].
    #[arg(long, value_name = "SOCKET")]
    pub kubelet_socket: Option<String>,
    /// Folder of the plugins' sockets.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "/var/lib/kubelet/device-plugins"
    )]
    pub plugin_dir: PathBuf,
    /// Socket of the kubelet's pod-resources; empty: it is not asked who has which device.
    #[arg(
        long,
        value_name = "SOCKET",
        default_value = "/var/lib/kubelet/pod-resources/kubelet.sock"
    )]
    pub pod_resources_socket: String,
    /// Folder of CDI specifications.
    #[arg(long, value_name = "DIR", default_value = "/var/run/cdi")]
    pub cdi_dir: PathBuf,
    /// Folder of journal and history.
    #[arg(long, value_name = "DIR", default_value = "/var/lib/slicewright")]
    pub state_dir: PathBuf,
    /// The node's /sys.
    #[arg(long, value_name = "DIR", default_value = "/sys")]
    pub sys_root: PathBuf,
    /// The node's /proc/driver.
    #[arg(long, value_name = "DIR", default_value = "/proc/driver")]
    pub proc_driver: PathBuf,
    /// Write labels to this file, for Node Feature Discovery, instead of to the node
    /// [env: GFD_OUTPUT_FILE].
    #[arg(long, alias = "output-file", value_name = "FILE")]
    pub label_file: Option<String>,
    /// No label with the time at which the settings came into force [env: GFD_NO_TIMESTAMP].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub no_timestamp: Option<String>,
    /// Whether a change of layout may take slices from pods that have them
    /// (annotation slicewright.dev/may-disrupt beats it).
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub may_disrupt: Option<String>,
    /// Whether the node may be rebooted where a change of the MIG mode takes no effect without
    /// (annotation slicewright.dev/may-reboot beats it) [env: WITH_REBOOT].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub with_reboot: Option<String>,
    /// Whether services of the node that keep GPUs open are stopped while a layout changes
    /// [env: WITH_SHUTDOWN_HOST_GPU_CLIENTS].
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true")]
    pub with_shutdown_host_gpu_clients: Option<String>,
    /// File with these services, NVIDIA's format; ClusterPolicy may name a ConfigMap that beats it
    /// [env: GPU_CLIENTS_FILE] [default: those of GPU Operator].
    #[arg(long, value_name = "FILE")]
    pub gpu_clients_file: Option<String>,
    /// Where /healthz, /readyz and /metrics are served; `none`: nowhere.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    pub listen: String,
    /// How log lines look: text or json.
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = ["text", "json"])]
    pub log_format: String,
}
