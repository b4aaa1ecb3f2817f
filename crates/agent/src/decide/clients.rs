// SPDX-License-Identifier: Apache-2.0
//! Programs of others that keep GPUs open: paused while a layout changes, by the labels that their
//! DaemonSets select nodes with.

use std::collections::BTreeMap;

/// Value of a label of a client that is paused (source: NVIDIA's MIG manager).
pub const PAUSED: &str = "paused-for-mig-change";
/// Value of such a label while the driver is replaced (source: NVIDIA's driver manager).
pub const DRIVER_UPGRADE: &str = "paused-for-driver-upgrade";
/// Start of these labels.
const DEPLOY: &str = "nvidia.com/gpu.deploy.";

/// The label of clients of third parties.
const OPT_IN: &str = "nvidia.com/gpu.deploy.client";

/// Clients that hold GPUs, with the `app` label of their pods where it is known (source: NVIDIA's
/// MIG manager). `client` is for programs of third parties.
const CLIENTS: [(&str, Option<&str>); 6] = [
    ("client", None),
    ("dcgm", Some("nvidia-dcgm")),
    ("dcgm-exporter", Some("nvidia-dcgm-exporter")),
    ("device-plugin", Some("nvidia-device-plugin-daemonset")),
    ("gpu-feature-discovery", Some("gpu-feature-discovery")),
    ("nvsm", None),
];

/// New values of node labels; `None` takes the label away.
pub type LabelChange = BTreeMap<String, Option<String>>;

/// The labels that pause the clients of this node. Only those that run are paused, and those that a
/// crash left paused stay so: the original also creates the labels that are not there, and so starts
/// programs that nobody wanted.
pub fn pause(labels: &BTreeMap<String, String>) -> LabelChange {
    with_value(labels, &["true", PAUSED], PAUSED)
}

/// The labels that let paused clients run again, also those that a crash left paused.
pub fn resume(labels: &BTreeMap<String, String>) -> LabelChange {
    with_value(labels, &[PAUSED], "true")
}

fn with_value(labels: &BTreeMap<String, String>, from: &[&str], to: &str) -> LabelChange {
    let keys = CLIENTS.map(|(client, _)| format!("{DEPLOY}{client}"));
    keys.into_iter()
        .filter(|key| {
            labels
                .get(key)
                .is_some_and(|value| from.contains(&value.as_str()))
        })
        .map(|key| (key, Some(to.to_owned())))
        .collect()
}

/// `app` labels of the pods that end when these labels change.
pub fn apps(paused: &LabelChange) -> Vec<&'static str> {
    let known = CLIENTS.iter();
    known
        .filter(|(client, _)| paused.contains_key(&format!("{DEPLOY}{client}")))
        .filter_map(|(_, app)| *app)
        .collect()
}

/// The label by which DaemonSets of third parties opt in, if it pauses them now: they are known by
/// their node selector (source: NVIDIA's MIG manager).
pub fn opt_in(paused: &LabelChange) -> Option<&str> {
    let mut keys = paused.keys().map(String::as_str);
    keys.find(|key| *key == OPT_IN)
}

/// Whether the driver of the node is being replaced, so that every handle on it must be closed.
pub fn driver_is_replaced(labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .any(|(key, value)| key.starts_with(DEPLOY) && value == DRIVER_UPGRADE)
}

/// NVIDIA's programs that do the agent's work, by the label of their pods that tells what they are
/// (source: GPU Operator, the chart of the device plugin with GPU Feature Discovery in it, and its
/// static manifest).
const RIVALS: [(&str, &str); 5] = [
    ("nvidia-device-plugin-daemonset", "NVIDIA's device plugin"),
    ("nvidia-device-plugin", "NVIDIA's device plugin"),
    ("nvidia-device-plugin-ds", "NVIDIA's device plugin"),
    ("gpu-feature-discovery", "NVIDIA's GPU Feature Discovery"),
    ("nvidia-mig-manager", "NVIDIA's MIG Manager"),
];

/// Labels that tell what a pod is, the first that is there.
const APP: [&str; 3] = ["app", "app.kubernetes.io/name", "name"];

/// A pod on this node, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOnNode {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// What it is.
    pub app: String,
    /// Whether it is one of ours.
    pub is_ours: bool,
}

impl PodOnNode {
    /// A pod with this name, as `NAMESPACE/NAME`, and these labels.
    pub fn new(name: String, labels: &BTreeMap<String, String>) -> Self {
        let app = APP.iter().find_map(|key| labels.get(*key));
        Self {
            name,
            app: app.cloned().unwrap_or_default(),
            is_ours: labels.get("app.kubernetes.io/name").map(String::as_str)
                == Some("slicewright"),
        }
    }
}

/// Which of NVIDIA's programs a pod is, as a phrase with the pod; `None`: none that does the agent's
/// work.
pub fn rival(pod: &PodOnNode) -> Option<String> {
    let known = RIVALS.iter().find(|(app, _)| pod.app == *app);
    let theirs = known.filter(|_| !pod.is_ours);
    theirs.map(|(_, what)| format!("{what} (pod {})", pod.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let own = |(key, value): &(&str, &str)| (format!("{DEPLOY}{key}"), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn only_what_runs_is_paused_and_it_comes_back() {
        let before = labels(&[("dcgm", "true"), ("nvsm", "false"), ("driver", "true")]);
        let change = pause(&before);
        let paused = Some(PAUSED.to_owned());
        assert_eq!(change, [(format!("{DEPLOY}dcgm"), paused)].into());
        assert_eq!(apps(&change), ["nvidia-dcgm"]);
        let mut during = before.clone();
        during.extend(
            change
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        during.extend(
            resume(&during)
                .into_iter()
                .filter_map(|(key, value)| Some((key, value?))),
        );
        assert_eq!(during, before);
    }

    #[test]
    fn what_a_crash_left_paused_is_paused_for_the_next_change_too() {
        let left = labels(&[("dcgm-exporter", PAUSED)]);
        assert_eq!(apps(&pause(&left)), ["nvidia-dcgm-exporter"]);
    }

    fn pod(labels: &[(&str, &str)]) -> Option<String> {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        rival(&PodOnNode::new("ns/pod".to_owned(), &labels.collect()))
    }

    #[test]
    fn our_own_pod_under_their_name_is_no_rival() {
        let app = ("app", "nvidia-mig-manager");
        assert_eq!(pod(&[app, ("app.kubernetes.io/name", "slicewright")]), None);
        assert_eq!(pod(&[app]).unwrap(), "NVIDIA's MIG Manager (pod ns/pod)");
        assert_eq!(pod(&[("app", "web")]), None);
        assert_eq!(pod(&[]), None);
    }

    #[test]
    fn a_device_plugin_that_gpu_operator_did_not_install_is_a_rival() {
        let plugin = Some("NVIDIA's device plugin (pod ns/pod)".to_owned());
        let chart = ("app.kubernetes.io/name", "nvidia-device-plugin");
        assert_eq!(
            pod(&[chart, ("app.kubernetes.io/instance", "nvdp")]),
            plugin
        );
        assert_eq!(pod(&[("name", "nvidia-device-plugin-ds")]), plugin);
    }
}
