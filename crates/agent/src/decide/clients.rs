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

/// The labels that pause the clients of this node. Only those that run are paused: the original
/// also creates the labels that are not there, and so starts programs that nobody wanted.
pub fn pause(labels: &BTreeMap<String, String>) -> LabelChange {
    with_value(labels, "true", PAUSED)
}

/// The labels that let paused clients run again, also those that a crash left paused.
pub fn resume(labels: &BTreeMap<String, String>) -> LabelChange {
    with_value(labels, PAUSED, "true")
}

fn with_value(labels: &BTreeMap<String, String>, from: &str, to: &str) -> LabelChange {
    let keys = CLIENTS.map(|(client, _)| format!("{DEPLOY}{client}"));
    keys.into_iter()
        .filter(|key| labels.get(key).is_some_and(|value| value == from))
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

/// Whether the driver of the node is being replaced, so that every handle on it must be closed.
pub fn driver_is_replaced(labels: &BTreeMap<String, String>) -> bool {
    labels
        .iter()
        .any(|(key, value)| key.starts_with(DEPLOY) && value == DRIVER_UPGRADE)
}

/// The labels by which programs are put on the node or kept away.
pub fn deploy_labels(labels: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let deploy = labels.iter().filter(|(key, _)| key.starts_with(DEPLOY));
    deploy
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// NVIDIA's programs that do the agent's work, by the `app` label of their pods.
const RIVALS: [(&str, &str); 3] = [
    ("nvidia-device-plugin-daemonset", "NVIDIA's device plugin"),
    ("gpu-feature-discovery", "NVIDIA's GPU Feature Discovery"),
    ("nvidia-mig-manager", "NVIDIA's MIG Manager"),
];

/// A pod on this node, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodOnNode {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Its `app` label, or its `app.kubernetes.io/name`.
    pub app: String,
    /// Whether it is one of ours.
    pub is_ours: bool,
}

/// Which of NVIDIA's programs serve this node, each as a phrase with the pod.
pub fn rivals(pods: &[PodOnNode]) -> Vec<String> {
    let mut found = Vec::new();
    for pod in pods.iter().filter(|pod| !pod.is_ours) {
        let rival = RIVALS.iter().find(|(app, _)| pod.app == *app);
        found.extend(rival.map(|(_, what)| format!("{what} (pod {})", pod.name)));
    }
    found
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
    fn our_own_pod_under_their_name_is_no_rival() {
        let pod = |name: &str, app: &str, is_ours| PodOnNode {
            name: name.to_owned(),
            app: app.to_owned(),
            is_ours,
        };
        let pods = [
            pod("gpu-operator/ours", "nvidia-mig-manager", true),
            pod(
                "gpu-operator/theirs",
                "nvidia-device-plugin-daemonset",
                false,
            ),
            pod("team-a/web", "web", false),
        ];
        assert_eq!(
            rivals(&pods),
            ["NVIDIA's device plugin (pod gpu-operator/theirs)"]
        );
    }
}
