// SPDX-License-Identifier: Apache-2.0
//! `slicewright agent`: from flags, environment and files to the agent's settings.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use agent::{CdiHooks, Kubernetes, LogFormat, Overrides, Paths, Settings};
use config::deviceplugin::{Choice, ListStrategy};
use config::gpu_clients::{self, GpuClients};
use config::manifest::{self, Kind};
use config::sink::Sink;
use publish::XidPolicy;
use units::Code;

use crate::args::AgentArgs;
use crate::env::Env;
use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Namespace where none is said.
const NAMESPACE: &str = "slicewright";

/// Runs the agent until it is told to end.
///
/// # Errors
/// If a flag, variable or file is wrong, or there is no way to the API server.
pub fn run(args: &AgentArgs, env: &Env, output: &mut Output<'_>) -> Result<u8, Failure> {
    let settings = settings(args, env, output)?;
    let format = match args.log_format.as_str() {
        "json" => LogFormat::Json,
        _ => LogFormat::Text,
    };
    match agent::run(settings, format) {
        Ok(()) => Ok(0),
        Err(error) => Err(Failure::new(Code::Usage, error.to_string())),
    }
}

fn settings(args: &AgentArgs, env: &Env, output: &mut Output<'_>) -> Result<Settings, Failure> {
    let given = Given { env };
    let mut plugin_file = None;
    let mut mig_file = None;
    let files = match args.config_file.as_slice() {
        [] => env
            .get("CONFIG_FILE")
            .map(PathBuf::from)
            .into_iter()
            .collect(),
        files => files.to_vec(),
    };
    for path in files {
        let shown = path.display().to_string();
        let text = files::read(&shown, Code::ConfigInvalid)?;
        match kind(&shown, &text) {
            Kind::MigConfig => mig_file = Some((shown, text)),
            _ => plugin_file = Some((shown, text)),
        }
    }
    let (xids, warnings) = XidPolicy::from_variables(
        env.get("DP_DISABLE_HEALTHCHECKS"),
        env.get("DP_ENABLE_HEALTHCHECKS"),
    );
    for warning in warnings {
        output.warn(warning.code, warning.message);
    }
    Ok(Settings {
        kubernetes: kubernetes(args, env),
        plugin_file,
        mig_file,
        overrides: overrides(args, &given)?,
        paths: paths(args, env),
        listen: listen(&args.listen)?,
        xids,
        may_disrupt: given
            .bool("--may-disrupt", &args.may_disrupt, &[])?
            .unwrap_or(false),
        may_reboot: given
            .bool("--with-reboot", &args.with_reboot, &["WITH_REBOOT"])?
            .unwrap_or(false),
        services: services(args, &given, output)?,
    })
}

/// The services of the node that may be stopped.
fn services(
    args: &AgentArgs,
    given: &Given<'_>,
    output: &mut Output<'_>,
) -> Result<Option<GpuClients>, Failure> {
    let may = given.bool(
        "--with-shutdown-host-gpu-clients",
        &args.with_shutdown_host_gpu_clients,
        &["WITH_SHUTDOWN_HOST_GPU_CLIENTS"],
    )?;
    let file = args.gpu_clients_file.as_deref();
    match (may, file.or(given.env.get("GPU_CLIENTS_FILE"))) {
        (Some(true), Some(file)) => {
            let text = files::read(file, Code::ConfigInvalid)?;
            let (clients, warnings) = gpu_clients::parse(file, &text)?;
            for warning in &warnings {
                output.warn(warning.code, warning);
            }
            Ok(Some(clients))
        }
        (Some(true), None) => Ok(Some(GpuClients::default())),
        _ => Ok(None),
    }
}

/// What a file is. One with nothing but a version is taken for a device-plugin configuration.
fn kind(name: &str, text: &str) -> Kind {
    let mut sink = Sink::new(name);
    let parts = manifest::parts(&mut sink, text);
    parts.first().map_or(Kind::Blank, |part| part.kind)
}

fn kubernetes(args: &AgentArgs, env: &Env) -> Option<Kubernetes> {
    let text = |flag: &Option<String>, name: &str| {
        flag.clone().or_else(|| env.get(name).map(str::to_owned))
    };
    let node = text(&args.node_name, "NODE_NAME")?;
    Some(Kubernetes {
        node,
        namespace: text(&args.namespace, "POD_NAMESPACE").unwrap_or_else(|| NAMESPACE.to_owned()),
        kubeconfig: args
            .kubeconfig
            .clone()
            .or_else(|| env.get("KUBECONFIG").map(PathBuf::from)),
        sharing_config_map: args.sharing_config_map.clone(),
        sharing_default: text(&args.default_sharing_config, "DEFAULT_CONFIG"),
        mig_default: args.default_mig_config.clone(),
    })
}

fn paths(args: &AgentArgs, env: &Env) -> Paths {
    let path = |flag: &Option<String>, names: &[&str]| {
        let variable = names.iter().find_map(|name| env.get(name));
        flag.as_deref().or(variable).map(PathBuf::from)
    };
    let driver_root = path(&args.driver_root, &["NVIDIA_DRIVER_ROOT"]);
    let driver_root = driver_root.unwrap_or_else(|| "/".into());
    let here = path(
        &args.driver_root_ctr_path,
        &["DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"],
    );
    let dev_root = path(&args.dev_root, &["NVIDIA_DEV_ROOT"]);
    let dev_here = path(&args.dev_root_ctr_path, &["DEV_ROOT_CTR_PATH"]);
    let named = |path: &Path| (!path.as_os_str().is_empty()).then(|| path.to_owned());
    let kubelet = args.kubelet_socket.as_deref().or(env.get("KUBELET_SOCKET"));
    let kubelet = match kubelet {
        Some(path) => named(Path::new(path)),
        None => Some(args.plugin_dir.join("kubelet.sock")),
    };
    let hook = path(
        &args.nvidia_cdi_hook_path,
        &["NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"],
    );
    let off = args.cdi_disable_hooks.as_deref();
    let off = off.or(env.get("CDI_DISABLE_HOOKS")).unwrap_or_default();
    let driver_root_here = here.unwrap_or_else(|| driver_root.clone());
    // As the original: device nodes are below the driver root unless something else is said.
    let default_here = match dev_root {
        Some(_) => PathBuf::from("/"),
        None => driver_root_here.clone(),
    };
    Paths {
        dev_root: dev_root.unwrap_or_else(|| driver_root.clone()),
        dev_root_here: dev_here.unwrap_or(default_here),
        driver_root_here,
        driver_root,
        plugins: args.plugin_dir.clone(),
        kubelet,
        pod_resources: named(Path::new(&args.pod_resources_socket)),
        cdi: args.cdi_dir.clone(),
        cdi_hooks: CdiHooks {
            program: hook.map_or_else(String::new, |hook| hook.display().to_string()),
            off: words(off).map(str::to_owned).collect(),
        },
        state: args.state_dir.clone(),
        sys: args.sys_root.clone(),
        proc_driver: args.proc_driver.clone(),
        proc: PathBuf::from("/proc"),
    }
}

fn overrides(args: &AgentArgs, given: &Given<'_>) -> Result<Overrides, Failure> {
    let text = |flag: &Option<String>, name: &str| given.text(flag, &[name]);
    Ok(Overrides {
        mig_strategy: given.choice("--mig-strategy", &args.mig_strategy, "MIG_STRATEGY")?,
        device_list_strategy: list(given, &args.device_list_strategy)?,
        device_id_strategy: given.choice(
            "--device-id-strategy",
            &args.device_id_strategy,
            "DEVICE_ID_STRATEGY",
        )?,
        pass_device_specs: given.bool(
            "--pass-device-specs",
            &args.pass_device_specs,
            &["PASS_DEVICE_SPECS"],
        )?,
        cdi_annotation_prefix: text(&args.cdi_annotation_prefix, "CDI_ANNOTATION_PREFIX"),
        shared_devices_allocation_policy: given.choice(
            "--shared-devices-allocation-policy",
            &args.shared_devices_allocation_policy,
            "SHARED_DEVICES_ALLOCATION_POLICY",
        )?,
        nvidia_driver_root: text(&args.driver_root, "NVIDIA_DRIVER_ROOT"),
        nvidia_dev_root: text(&args.dev_root, "NVIDIA_DEV_ROOT"),
        gdrcopy_enabled: given.bool("GDRCOPY_ENABLED", &None, &["GDRCOPY_ENABLED"])?,
        gds_enabled: given.bool("GDS_ENABLED", &None, &["GDS_ENABLED"])?,
        mofed_enabled: given.bool("MOFED_ENABLED", &None, &["MOFED_ENABLED"])?,
        imex_channel_0: imex(given)?,
        imex_required: given.bool("IMEX_REQUIRED", &None, &["IMEX_REQUIRED"])?,
        no_timestamp: given.bool("--no-timestamp", &args.no_timestamp, &["GFD_NO_TIMESTAMP"])?,
        label_file: text(&args.label_file, "GFD_OUTPUT_FILE"),
        machine_type_file: text(&None, "GFD_MACHINE_TYPE_FILE"),
    })
}

fn list(
    given: &Given<'_>,
    flag: &Option<String>,
) -> Result<Option<BTreeSet<ListStrategy>>, Failure> {
    let Some((place, text)) =
        given.found("--device-list-strategy", flag, &["DEVICE_LIST_STRATEGY"])
    else {
        return Ok(None);
    };
    let strategies = words(&text).map(|word| {
        ListStrategy::from_word(word).ok_or_else(|| wrong(place, word, &ListStrategy::expected()))
    });
    strategies.collect::<Result<_, _>>().map(Some)
}

/// The words of a list with commas.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(',').map(str::trim);
    words.filter(|word| !word.is_empty())
}

fn imex(given: &Given<'_>) -> Result<Option<bool>, Failure> {
    match given.text(&None, &["IMEX_CHANNEL_IDS"]).as_deref() {
        None => Ok(None),
        Some("0") => Ok(Some(true)),
        Some(other) => Err(wrong(
            "IMEX_CHANNEL_IDS",
            other,
            "0, the only channel that there is",
        )),
    }
}

fn listen(text: &str) -> Result<Option<SocketAddr>, Failure> {
    match text {
        "none" => Ok(None),
        text => text
            .parse()
            .map(Some)
            .map_err(|_| wrong("--listen", text, "an address such as 0.0.0.0:8080, or none")),
    }
}

fn wrong(what: &str, found: &str, expected: &str) -> Failure {
    Failure::new(
        Code::Usage,
        format!("{what}: found {found:?}, expected {expected}"),
    )
}

/// Flags, and variables where there is no flag. A variable that is empty counts as not set.
struct Given<'a> {
    env: &'a Env,
}

impl Given<'_> {
    fn text(&self, flag: &Option<String>, names: &[&str]) -> Option<String> {
        self.found("", flag, names).map(|(_, text)| text)
    }

    /// The text, and which of the flag and the variables says it.
    fn found<'n>(
        &self,
        flag_name: &'n str,
        flag: &Option<String>,
        names: &[&'n str],
    ) -> Option<(&'n str, String)> {
        if let Some(text) = flag {
            return Some((flag_name, text.clone()));
        }
        let mut set = names
            .iter()
            .filter_map(|name| Some((*name, self.env.get(name)?)));
        set.next().map(|(name, text)| (name, text.to_owned()))
    }

    fn choice<T: Choice>(
        &self,
        flag_name: &str,
        flag: &Option<String>,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let Some((place, word)) = self.found(flag_name, flag, &[name]) else {
            return Ok(None);
        };
        T::from_word(&word)
            .map(Some)
            .ok_or_else(|| wrong(place, &word, &T::expected()))
    }

    /// A yes or no in the words that Go's `ParseBool` takes, as the original programs do.
    fn bool(
        &self,
        flag_name: &str,
        flag: &Option<String>,
        names: &[&str],
    ) -> Result<Option<bool>, Failure> {
        let Some((place, word)) = self.found(flag_name, flag, names) else {
            return Ok(None);
        };
        match word.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Some(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Some(false)),
            other => Err(wrong(place, other, "true or false")),
        }
    }
}
