// SPDX-License-Identifier: Apache-2.0
//! `slicewright install`: the manifest of everything that the agent needs, in the order in which
//! `kubectl apply` can take it. And what its job does.

use std::fmt::Write;

use agent::ClusterPolicyIs;
use serde::Serialize;
use serde_json::json;
use units::Code;

use crate::args::{InstallArgs, InstallVerb, PullPolicy};
use crate::failure::Failure;
use crate::output::Output;

const ACCOUNT: &str = include_str!("../install/account.yaml");
const NAMESPACE: &str = include_str!("../install/namespace.yaml");
const ADMISSION: &str = include_str!("../install/admission.yaml");
const CLUSTER_POLICY: &str = include_str!("../install/cluster-policy.yaml");
const DAEMON_SET: &str = include_str!("../install/daemonset.yaml");

/// Prints the manifest, or does what its job is for.
///
/// # Errors
/// If a value makes no sense, or ClusterPolicy cannot be created.
pub fn run(args: &InstallArgs, output: &mut Output<'_>) -> Result<u8, Failure> {
    let text = match &args.verb {
        Some(InstallVerb::ClusterPolicy { strategy }) => cluster_policy(strategy)?.to_owned(),
        None => manifest(args)?,
    };
    output.text(text)?;
    Ok(0)
}

fn cluster_policy(strategy: &str) -> Result<&'static str, Failure> {
    match agent::create_cluster_policy(strategy) {
        Ok(ClusterPolicyIs::Ours) => Ok("ClusterPolicy is there.\n"),
        Ok(ClusterPolicyIs::Anothers) => {
            Ok("The kind ClusterPolicy is another's, such as GPU Operator's: left as it is.\n")
        }
        Err(error) => Err(Failure::new(Code::Usage, error.to_string())),
    }
}

fn manifest(args: &InstallArgs) -> Result<String, Failure> {
    let beside = args.compat || args.gpu_operator;
    let namespace = match &args.namespace {
        Some(namespace) if !is_label(namespace) => {
            let message = format!(
                "--namespace {namespace:?}: expected at most 63 of the characters a-z, 0-9 and -, \
                 with a letter or digit at both ends"
            );
            return Err(Failure::new(Code::Usage, message));
        }
        Some(namespace) => namespace.as_str(),
        None if beside => "gpu-operator",
        None => "slicewright",
    };
    let (daemon_set, app, container) = match args.compat {
        true => (
            "nvidia-device-plugin-daemonset",
            "nvidia-mig-manager",
            "nvidia-mig-manager",
        ),
        false => ("slicewright-agent", "slicewright-agent", "agent"),
    };
    let pull_policy = match args.pull_policy {
        PullPolicy::IfNotPresent => "IfNotPresent",
        PullPolicy::Always => "Always",
        PullPolicy::Never => "Never",
    };
    let selector = selector(&args.node_selector)?;
    // A JSON string is a YAML string, whatever is in it.
    let [image, driver_root, cdi_hook_path] =
        [&args.image, &args.driver_root, &args.cdi_hook_path].map(|text| json!(text).to_string());
    let values = [
        ("namespace", namespace),
        ("daemonset", daemon_set),
        ("app", app),
        ("container", container),
        ("image", &image),
        ("pull-policy", pull_policy),
        ("driver-root", &driver_root),
        ("cdi-hook-path", &cdi_hook_path),
        ("node-selector", &selector),
        ("strategy", &args.strategy),
    ];
    let mut documents = vec![yaml(&kubeapi::gpu_node_crd())?];
    if !args.gpu_operator {
        // Whoever deletes what was printed must not delete GPU Operator with its namespace.
        documents.push(fill(NAMESPACE, &values));
    }
    documents.push(fill(ACCOUNT, &values));
    documents.push(fill(ADMISSION, &values));
    if !args.gpu_operator {
        let job = fill(CLUSTER_POLICY, &values);
        // A job cannot be changed: another image is another job.
        documents.push(job.replace("{{digest}}", &format!("{:08x}", digest(&job))));
    }
    documents.push(fill(DAEMON_SET, &values));
    Ok(documents.join("---\n"))
}

fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    text
}

/// FNV-1a: tells texts apart, no more.
fn digest(text: &str) -> u32 {
    let mix = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    text.bytes().fold(0x811c_9dc5, mix)
}

fn yaml(object: &impl Serialize) -> Result<String, Failure> {
    serde_saphyr::to_string(object)
        .map_err(|error| Failure::new(Code::Usage, format!("cannot be printed: {error}")))
}

/// Whether Kubernetes takes it as a name of a namespace (RFC 1123, a label).
fn is_label(name: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    (1..=63).contains(&name.len())
        && name.bytes().all(inner)
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The lines of a node selector.
fn selector(pairs: &[String]) -> Result<String, Failure> {
    let mut text = "        kubernetes.io/os: linux".to_owned();
    for pair in pairs {
        let parts = pair.split_once('=').filter(|(key, _)| !key.is_empty());
        let (key, value) = parts.ok_or_else(|| {
            let message = format!("--node-selector {pair:?}: expected KEY=VALUE");
            Failure::new(Code::Usage, message)
        })?;
        // Writing to a string cannot fail.
        let _ = write!(text, "\n        {}: {}", json!(key), json!(value));
    }
    Ok(text)
}
