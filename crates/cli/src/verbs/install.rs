// SPDX-License-Identifier: Apache-2.0
//! `slicewright install`: the manifest of everything that the agent needs, in the order in which
//! `kubectl apply` can take it.

use std::fmt::Write;

use serde::Serialize;
use serde_json::json;
use units::Code;

use crate::args::{InstallArgs, PullPolicy};
use crate::failure::Failure;
use crate::output::Output;

const ACCOUNT: &str = include_str!("../install/account.yaml");
const ADMISSION: &str = include_str!("../install/admission.yaml");
const DAEMON_SET: &str = include_str!("../install/daemonset.yaml");

/// Prints the manifest.
///
/// # Errors
/// If a node selector is wrong.
pub fn run(args: &InstallArgs, output: &mut Output<'_>) -> Result<u8, Failure> {
    let manifest = manifest(args)?;
    output.text(manifest)?;
    Ok(0)
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
    ];
    let mut documents = vec![yaml(&kubeapi::gpu_node_crd())?];
    if !args.gpu_operator {
        documents.push(yaml(&kubeapi::cluster_policy_crd())?);
    }
    for template in [ACCOUNT, ADMISSION, DAEMON_SET] {
        documents.push(fill(template, &values));
    }
    if !args.gpu_operator {
        // Last: its kind has to be known by then.
        documents.push(yaml(&kubeapi::cluster_policy(&args.strategy))?);
    }
    Ok(documents.join("---\n"))
}

fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = template.to_owned();
    for (name, value) in values {
        text = text.replace(&format!("{{{{{name}}}}}"), value);
    }
    text
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
