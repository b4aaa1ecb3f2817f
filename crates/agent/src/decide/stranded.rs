// SPDX-License-Identifier: Apache-2.0
//! Pods that the kubelet refused for their devices and that nobody makes anew. After a boot it
//! admits its pods earlier than any device plugin in a pod can register (kubernetes#125579 and
//! others), so they end, and only those with a controller come back.

use plan::Warning;
use units::Code;

/// A pod on this node, as far as its devices matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodSeen {
    /// `NAMESPACE/NAME`.
    pub name: String,
    /// Why the kubelet ended it, in a word; empty if it did not.
    pub reason: String,
    /// The same in a sentence.
    pub message: String,
    /// Whether something makes it anew.
    pub has_controller: bool,
    /// Names of the resources that it asks for.
    pub resources: Vec<String>,
}

/// What to tell of pods that are gone for good, by name.
pub fn stranded(pods: &[PodSeen]) -> Vec<Warning> {
    let is_ours = |name: &String| name.starts_with(kubeapi::names::RESOURCE_PREFIX);
    let mut findings: Vec<Warning> = pods
        .iter()
        .filter(|pod| pod.reason == "UnexpectedAdmissionError" && !pod.has_controller)
        .filter(|pod| pod.resources.iter().any(is_ours))
        .map(|pod| Warning {
            code: Code::PodNotAdmitted,
            message: format!(
                "pod {} was refused by the kubelet ({}) and has no controller that makes it anew; \
                 delete it and create it again",
                pod.name, pod.message
            ),
        })
        .collect();
    findings.sort();
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pods_that_nobody_makes_anew_are_told() {
        let pod = PodSeen {
            name: "team-a/alone".to_owned(),
            reason: "UnexpectedAdmissionError".to_owned(),
            message: "no healthy devices".to_owned(),
            has_controller: false,
            resources: vec!["cpu".to_owned(), "nvidia.com/gpu".to_owned()],
        };
        let controlled = PodSeen {
            has_controller: true,
            ..pod.clone()
        };
        let evicted = PodSeen {
            reason: "Evicted".to_owned(),
            ..pod.clone()
        };
        let other = PodSeen {
            resources: vec!["example.com/fpga".to_owned()],
            ..pod.clone()
        };
        let findings = stranded(&[controlled, evicted, other, pod]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].message.contains("team-a/alone"), "{findings:?}");
    }
}
