// SPDX-License-Identifier: Apache-2.0
//! Stable codes of errors and warnings.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

macro_rules! codes {
    ($($(#[doc = $doc:literal])+ $name:ident = $text:literal, $exit:literal;)+) => {
        /// The stable code of something that a person is told. Codes never change their meaning;
        /// `slicewright explain CODE` says what each means and what to do
        /// (`docs/codes.md` holds the texts).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Code {
            $($(#[doc = $doc])+ $name,)+
        }

        impl Code {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The code as it is printed, in words with dashes.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            /// The exit status of a command that ends with this code: 0 for a warning, 1 a
            /// difference or finding, 2 wrong usage or unreadable input, driver or API server,
            /// 3 refused, 4 failed half way and put back, 5 failed and needs a person.
            pub const fn exit_status(self) -> u8 {
                match self { $(Self::$name => $exit),+ }
            }
        }
    };
}

codes! {
    /// The board is known by name only: its placements are not published, and the driver does not tell.
    BoardUnknown = "board-unknown", 3;
    /// Warning: two CDI specifications name the same device.
    CdiConflict = "cdi-conflict", 0;
    /// Warning: the CDI specification of the devices cannot be written.
    CdiUnwritable = "cdi-unwritable", 0;
    /// The checkpoint is not of this machine's GPUs.
    CheckpointMismatch = "checkpoint-mismatch", 3;
    /// A configuration text has errors.
    ConfigInvalid = "config-invalid", 2;
    /// The file has no configuration of that name.
    ConfigNotFound = "config-not-found", 2;
    /// Warning: part of a file has no effect.
    ContentIgnored = "content-ignored", 0;
    /// Warning: device nodes that containers need are not known.
    DeviceNodeUnknown = "device-node-unknown", 0;
    /// Warning: a fault makes devices unusable.
    DeviceUnhealthy = "device-unhealthy", 0;
    /// The hardware is not as the configuration says (`host assert`).
    Difference = "difference", 1;
    /// The driver answered with an error.
    DriverFailed = "driver-failed", 2;
    /// There is no NVIDIA driver here.
    DriverMissing = "driver-missing", 2;
    /// Warning: facts of this board are estimates.
    EstimatedBoard = "estimated-board", 0;
    /// Warning: a fact about the node has a form that nobody knows.
    FactUnreadable = "fact-unreadable", 0;
    /// Something else changes the same GPUs at the same time.
    ForeignChange = "foreign-change", 5;
    /// Warning: MIG is on and the GPU has no slice.
    GpuEmpty = "gpu-empty", 0;
    /// A GPU fell off the bus: nothing can be read of it or done to it.
    GpuLost = "gpu-lost", 3;
    /// A hook ended with an error.
    HookFailed = "hook-failed", 2;
    /// Warning: an IMEX channel is asked for and has no device node.
    ImexChannelMissing = "imex-channel-missing", 0;
    /// Something uses an instance or GPU that the change would take away.
    InUse = "in-use", 3;
    /// Warning: the configuration names a GPU index that this machine does not have.
    IndexWithoutGpu = "index-without-gpu", 0;
    /// The journal cannot be read.
    JournalDamaged = "journal-damaged", 5;
    /// A change was begun and not ended.
    JournalOpen = "journal-open", 3;
    /// The kubelet does not say which containers have which devices.
    KubeletSilent = "kubelet-silent", 3;
    /// Warning: a label value had to be shortened.
    LabelShortened = "label-shortened", 0;
    /// No placement of the wanted instances exists on this board.
    LayoutDoesNotFit = "layout-does-not-fit", 3;
    /// Another Slicewright is at work on this machine.
    Locked = "locked", 3;
    /// Warning: MIG is on and the strategy is none.
    MigIgnored = "mig-ignored", 0;
    /// The GPU has no MIG.
    MigUnsupported = "mig-unsupported", 3;
    /// The configuration matches no GPU of this machine.
    NoGpuMatches = "no-gpu-matches", 3;
    /// The operation needs rights that this process lacks.
    NoPermission = "no-permission", 2;
    /// There are fewer devices than asked for.
    NotEnoughDevices = "not-enough-devices", 3;
    /// Warning: accepted here, refused by the original programs.
    NotPortable = "not-portable", 0;
    /// Not there yet in this version.
    NotSupportedYet = "not-supported-yet", 3;
    /// There is no earlier layout to go back to.
    NothingToRollBack = "nothing-to-roll-back", 3;
    /// Warning: all GPUs of the node are cut, so that no whole one can be had.
    OnlySlices = "only-slices", 0;
    /// Warning: a GPU instance without a compute instance.
    OrphanInstance = "orphan-instance", 0;
    /// Warning: several entries match one GPU; the last wins.
    OverlappingEntries = "overlapping-entries", 0;
    /// The hardware is not any more as it was when the plan was made.
    PlanOutdated = "plan-outdated", 3;
    /// The linter found a plan that does not hold together; always a fault of ours.
    PlanUnsound = "plan-unsound", 5;
    /// Warning: a pod was refused for its devices, and nobody makes it anew.
    PodNotAdmitted = "pod-not-admitted", 0;
    /// The GPU does not offer the profile.
    ProfileNotOffered = "profile-not-offered", 3;
    /// The change needs a reboot of the machine.
    RebootNeeded = "reboot-needed", 3;
    /// The change needs a GPU reset, which was not allowed or could not be done.
    ResetNeeded = "reset-needed", 3;
    /// The change failed half way and was put back.
    RolledBack = "rolled-back", 4;
    /// A self-test check failed.
    SelftestFailed = "selftest-failed", 1;
    /// Programs of NVIDIA's serve this node.
    ServedByOthers = "served-by-others", 3;
    /// Warning: the GPUs of this node are of several models.
    SeveralModels = "several-models", 0;
    /// The simulated world's file or description cannot be read.
    SimInvalid = "sim-invalid", 2;
    /// The state folder cannot be read or written.
    StateUnwritable = "state-unwritable", 2;
    /// Warning: a device waits until pods that have it under another name end.
    StillAllocated = "still-allocated", 0;
    /// Warning: under the strategy single a name would mean two things.
    StrategyAmbiguous = "strategy-ambiguous", 0;
    /// The change failed, and so did putting it back.
    Stuck = "stuck", 5;
    /// A container asks for several replicas where one is the most.
    TooManyReplicas = "too-many-replicas", 3;
    /// The resource has no such device now.
    UnknownDevice = "unknown-device", 3;
    /// Warning: a key that the original ignores silently.
    UnknownKey = "unknown-key", 0;
    /// Warning: a fault in a configuration that is not selected.
    UnselectedConfigFault = "unselected-config-fault", 0;
    /// The command line is wrong.
    Usage = "usage", 2;
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// There is no such code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no code {0:?}")]
pub struct UnknownCode(pub String);

impl FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|code| code.as_str() == text);
        found.copied().ok_or_else(|| UnknownCode(text.to_owned()))
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}
