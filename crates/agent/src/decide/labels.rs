// SPDX-License-Identifier: Apache-2.0
//! Labels of the node: what is to be set and what is to be taken away.

use std::collections::BTreeMap;
use std::fmt;

use kubeapi::ClusterPolicySpec;
use kubeapi::names;
use publish::Node;

use super::clients::LabelChange;

/// Value of `nvidia.com/mig.config.state` (source: NVIDIA's MIG manager).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A change is under way.
    Pending,
    /// The node is rebooted for it.
    Rebooting,
    /// The layout is as the label says, read back.
    Success,
    /// It is not; the annotation says why.
    Failed,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pending => "pending",
            Self::Rebooting => "rebooting",
            Self::Success => "success",
            Self::Failed => "failed",
        })
    }
}

/// The labels that the node should have: those that describe it, and those that GPU Operator would
/// give it. `has` are those that it has.
///
/// A default MIG config is only for a node without one; afterwards the label is the user's.
pub fn node_labels(
    described: BTreeMap<String, String>,
    node: &Node,
    has: &BTreeMap<String, String>,
    policy: Option<&ClusterPolicySpec>,
    mig_default: Option<&str>,
) -> BTreeMap<String, String> {
    let mut labels = described;
    let gpus = node.inventory.iter().flat_map(|inventory| &inventory.gpus);
    let (mut any, mut capable) = (false, false);
    for gpu in gpus {
        any = true;
        capable |= gpu.mode.is_some();
    }
    if any && !has.contains_key(names::GPU_PRESENT) {
        labels.insert(names::GPU_PRESENT.to_owned(), "true".to_owned());
    }
    let default = policy.and_then(|policy| policy.mig_default.as_deref());
    let default = default.or(mig_default).filter(|_| capable);
    if let Some(default) = default.filter(|_| !has.contains_key(names::MIG_CONFIG)) {
        labels.insert(names::MIG_CONFIG.to_owned(), default.to_owned());
    }
    labels
}

/// What to write so that of the keys that are `ours` exactly the wanted ones are there.
pub fn change(
    has: &BTreeMap<String, String>,
    wanted: &BTreeMap<String, String>,
    ours: impl Fn(&str) -> bool,
) -> LabelChange {
    let new = wanted
        .iter()
        .filter(|(key, value)| has.get(*key) != Some(value));
    let new = new.map(|(key, value)| (key.clone(), Some(value.clone())));
    let gone = has
        .keys()
        .filter(|key| !wanted.contains_key(*key) && ours(key));
    new.chain(gone.map(|key| (key.clone(), None))).collect()
}
