// SPDX-License-Identifier: Apache-2.0
//! How well two GPUs are connected.

use std::collections::BTreeMap;

use units::GpuUuid;

/// The nearest thing on the way between two GPUs that both hang on
/// (`nvmlDeviceGetTopologyCommonAncestor`), farthest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ancestor {
    /// The machine: the way crosses the link between processors.
    System,
    /// A NUMA node.
    Node,
    /// A host bridge.
    HostBridge,
    /// Several PCIe switches.
    MultipleSwitches,
    /// One PCIe switch.
    SingleSwitch,
    /// The board: both are on one card.
    Board,
}

/// The connection of two GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// One of them.
    pub one: GpuUuid,
    /// The other.
    pub other: GpuUuid,
    /// Where their ways meet.
    pub ancestor: Ancestor,
    /// How many NVLinks go directly from one to the other.
    pub nvlinks: u32,
}

/// The connections of all pairs of GPUs as scores, read once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Links(BTreeMap<(GpuUuid, GpuUuid), u32>);

impl Links {
    /// Scores these connections; pairs that are not among them score 0.
    pub fn new(links: impl IntoIterator<Item = Link>) -> Self {
        let entry = |link: Link| {
            let score = score(&link);
            (pair(link.one, link.other), score)
        };
        Self(links.into_iter().map(entry).collect())
    }

    pub(super) fn score(&self, one: &GpuUuid, other: &GpuUuid) -> u32 {
        let scores = &self.0;
        scores
            .get(&pair(one.clone(), other.clone()))
            .copied()
            .unwrap_or(0)
    }
}

fn pair(one: GpuUuid, other: GpuUuid) -> (GpuUuid, GpuUuid) {
    if one <= other {
        (one, other)
    } else {
        (other, one)
    }
}

/// The original's scores (source: go-gpuallocator): an NVLink outweighs any way over PCIe.
fn score(link: &Link) -> u32 {
    let pci = match link.ancestor {
        Ancestor::System => 10,
        Ancestor::Node => 20,
        Ancestor::HostBridge => 30,
        Ancestor::MultipleSwitches => 40,
        Ancestor::SingleSwitch => 50,
        Ancestor::Board => 60,
    };
    pci + link.nvlinks.min(1000) * 100
}
