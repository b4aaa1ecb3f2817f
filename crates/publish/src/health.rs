// SPDX-License-Identifier: Apache-2.0
//! Which faults count, and which devices they concern.

use std::collections::BTreeSet;

use plan::Warning;
use units::{Code, GpuUuid};

use crate::hardware::Hardware;

/// A fault of a GPU that has not been lifted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// Which GPU.
    pub gpu: GpuUuid,
    /// In which GPU instance, by the driver's id; `None`: the whole GPU.
    pub gpu_instance: Option<u32>,
    /// In which compute instance of it; `None`: all of them.
    pub compute_instance: Option<u32>,
    /// What is wrong, as a phrase such as `XID 79`.
    pub what: String,
}

impl Fault {
    /// Whether this is a GPU or slice that the fault makes unusable.
    pub fn concerns(&self, hardware: &Hardware) -> bool {
        let within = |named: Option<u32>, id: u32| named.is_none_or(|named| named == id);
        self.gpu == hardware.gpu
            && hardware.slice.as_ref().is_none_or(|slice| {
                within(self.gpu_instance, slice.gpu_instance)
                    && within(self.compute_instance, slice.compute_instance)
            })
    }
}

/// XIDs that programs cause, not the hardware (source: the device plugin's built-in list).
pub const APPLICATION_XIDS: [u64; 6] = [13, 31, 43, 45, 68, 109];

/// Which XIDs make a device unhealthy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XidPolicy {
    /// What holds for XIDs that are no exceptions.
    acts: bool,
    exceptions: BTreeSet<u64>,
}

impl Default for XidPolicy {
    /// All but [`APPLICATION_XIDS`].
    fn default() -> Self {
        Self {
            acts: true,
            exceptions: APPLICATION_XIDS.into(),
        }
    }
}

/// A list of XIDs as the variables write it.
struct XidList {
    all: bool,
    xids: BTreeSet<u64>,
}

impl XidPolicy {
    /// The policy that `DP_DISABLE_HEALTHCHECKS` and `DP_ENABLE_HEALTHCHECKS` ask for, each a
    /// comma-separated list of XIDs, or `all` (`xids` means the same in the first).
    ///
    /// What is enabled beats what is disabled. In the original `all` disabled is final; here
    /// `all` with `79` enabled watches for 79 alone.
    pub fn from_variables(disable: Option<&str>, enable: Option<&str>) -> (Self, Vec<Warning>) {
        let mut warnings = Vec::new();
        let disabled = list("DP_DISABLE_HEALTHCHECKS", disable, &mut warnings);
        let enabled = list("DP_ENABLE_HEALTHCHECKS", enable, &mut warnings);
        let mut policy = Self::default();
        policy.set(false, disabled);
        policy.set(true, enabled);
        (policy, warnings)
    }

    /// Whether this XID makes a device unhealthy.
    pub fn acts_on(&self, xid: u64) -> bool {
        self.acts != self.exceptions.contains(&xid)
    }

    fn set(&mut self, acts: bool, list: XidList) {
        if list.all {
            self.acts = acts;
            self.exceptions.clear();
        }
        for xid in list.xids {
            if self.acts == acts {
                self.exceptions.remove(&xid);
            } else {
                self.exceptions.insert(xid);
            }
        }
    }
}

fn list(variable: &str, text: Option<&str>, warnings: &mut Vec<Warning>) -> XidList {
    let mut list = XidList {
        all: false,
        xids: BTreeSet::new(),
    };
    let words = text.unwrap_or_default().split(',').map(str::trim);
    for word in words.filter(|word| !word.is_empty()) {
        match (word.to_ascii_lowercase().as_str(), word.parse()) {
            ("all" | "xids", _) => list.all = true,
            (_, Ok(xid)) => {
                list.xids.insert(xid);
            }
            _ => warnings.push(Warning {
                code: Code::ContentIgnored,
                message: format!("{variable}: {word:?} is neither an XID nor all; it is ignored"),
            }),
        }
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acting(disable: Option<&str>, enable: Option<&str>) -> Vec<u64> {
        let (policy, warnings) = XidPolicy::from_variables(disable, enable);
        assert_eq!(warnings, []);
        let xids = [13, 31, 43, 45, 48, 68, 79, 109];
        xids.into_iter()
            .filter(|xid| policy.acts_on(*xid))
            .collect()
    }

    #[test]
    fn variables_choose_what_counts() {
        assert_eq!(acting(None, None), [48, 79]);
        assert_eq!(acting(Some(""), Some("")), [48, 79]);
        assert_eq!(acting(Some("79"), None), [48]);
        assert_eq!(acting(Some("all"), None), [0; 0]);
        assert_eq!(acting(Some("XIDS"), None), [0; 0]);
        assert_eq!(acting(None, Some("31, 43")), [31, 43, 48, 79]);
        assert_eq!(acting(Some("48,79"), Some("79")), [79]);
        assert_eq!(acting(Some("all"), Some("79")), [79]);
        assert_eq!(acting(Some("all"), Some("79,13")), [13, 79]);
        assert_eq!(acting(Some("79"), Some("all")).len(), 8);
    }

    #[test]
    fn what_is_no_xid_is_told_and_skipped() {
        let (policy, warnings) = XidPolicy::from_variables(Some("79,fatal,-1"), None);
        assert!(!policy.acts_on(79));
        assert!(policy.acts_on(48));
        assert_eq!(warnings.len(), 2);
        assert!(warnings[0].message.contains("\"fatal\""), "{warnings:?}");
    }
}
