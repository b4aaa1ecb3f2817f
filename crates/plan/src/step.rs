// SPDX-License-Identifier: Apache-2.0
//! Plans and their steps, as immutable data.

use geometry::inventory::Holder;
use geometry::{ComputeSpec, InstanceSpec, Layout};
use serde::{Deserialize, Serialize};
use units::{GpuUuid, Mode, Placement, ProfileName};

use crate::refusal::Warning;

/// One thing to do to one GPU. Instances are named by place and profile, never by the driver's ids,
/// which are known only at run time.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Action {
    /// Ask for MIG mode on or off.
    SetMode {
        /// On or off.
        on: bool,
    },
    /// Reset the GPU if its mode is pending.
    Reset,
    /// Destroy a compute instance.
    DestroyCompute {
        /// Place of its GPU instance.
        instance: Placement,
        /// The compute instance.
        compute: ComputeSpec,
    },
    /// Destroy a GPU instance that has no compute instances any more.
    DestroyGpuInstance {
        /// Its place.
        placement: Placement,
        /// Its profile.
        profile: ProfileName,
        /// Driver id of the profile.
        driver_id: u32,
    },
    /// Create a GPU instance at this very place.
    CreateGpuInstance {
        /// Its place.
        placement: Placement,
        /// Its profile.
        profile: ProfileName,
        /// Driver id of the profile.
        driver_id: u32,
    },
    /// Create a compute instance.
    CreateCompute {
        /// Place of its GPU instance.
        instance: Placement,
        /// The compute instance.
        compute: ComputeSpec,
    },
}

impl Action {
    /// Whether it makes a GPU instance or a compute instance, and nothing else.
    pub fn creates(&self) -> bool {
        matches!(
            self,
            Self::CreateGpuInstance { .. } | Self::CreateCompute { .. }
        )
    }
}

/// Something that can be read from the hardware and holds or not.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is")]
pub enum Condition {
    /// The mode after the next reset is on or off.
    ModeRequested {
        /// On or off.
        on: bool,
    },
    /// The mode in force now is on or off, whatever is pending.
    ModeInForce {
        /// On or off.
        on: bool,
    },
    /// No mode is pending.
    NothingPending,
    /// Nothing uses the GPU or its instances.
    Idle,
    /// There is no GPU instance on the GPU.
    NoInstances,
    /// A GPU instance of this profile is at this very place.
    InstancePresent {
        /// Its place.
        placement: Placement,
        /// Driver id of its profile.
        driver_id: u32,
    },
    /// No GPU instance of this profile is at this very place.
    InstanceAbsent {
        /// Its place.
        placement: Placement,
        /// Driver id of its profile.
        driver_id: u32,
    },
    /// No GPU instance takes any of these units.
    UnitsFree {
        /// The units.
        placement: Placement,
    },
    /// The GPU instance at this place has no compute instances.
    InstanceEmpty {
        /// Its place.
        placement: Placement,
    },
    /// This compute instance is in the GPU instance at this place.
    ComputePresent {
        /// Place of the GPU instance.
        instance: Placement,
        /// The compute instance.
        compute: ComputeSpec,
    },
    /// This compute instance is not in the GPU instance at this place.
    ComputeAbsent {
        /// Place of the GPU instance.
        instance: Placement,
        /// The compute instance.
        compute: ComputeSpec,
    },
}

/// One step: what to do, what must hold before, how to see that it is done, how to take it back.
///
/// In the state after the first `k` steps of a plan, exactly their checks hold. So a plan that was
/// cut off anywhere is resumed by doing the steps whose check does not hold, and undone by taking
/// back, last first, those whose check holds. The undo of one step may be several actions; cut off
/// in their middle they are begun anew from the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// What to do.
    pub action: Action,
    /// What must hold before it.
    pub requires: Vec<Condition>,
    /// What holds after it and not before: whether the step is done can be read from the hardware.
    pub check: Condition,
    /// What takes it back, in order.
    pub undo: Vec<Action>,
}

/// The plan of one GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuPlan {
    /// NVML index.
    pub index: u32,
    /// UUID.
    pub uuid: GpuUuid,
    /// Mode before.
    pub mode_before: Mode,
    /// Mode after all steps; pending only if resets are not allowed.
    pub mode_after: Mode,
    /// Layout before.
    pub before: Layout,
    /// Layout after.
    pub after: Layout,
    /// GPU instances that stay, as they will be. Their compute instances may change.
    pub keep: Vec<InstanceSpec>,
    /// GPU instances that go.
    pub destroy: Vec<InstanceSpec>,
    /// GPU instances that come.
    pub create: Vec<InstanceSpec>,
    /// Who is hurt: holders of what goes. Empty unless the policy ignores them.
    pub holders: Vec<Holder>,
    /// The steps, in order. Empty: nothing to do.
    pub steps: Vec<Step>,
}

impl GpuPlan {
    /// Whether the GPU is reset.
    pub fn resets(&self) -> bool {
        self.steps.iter().any(|step| step.action == Action::Reset)
    }
}

/// The way from an inventory to a wish. One [`GpuPlan`] for each GPU of the wish, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// By rising index. GPUs may proceed side by side.
    pub gpus: Vec<GpuPlan>,
    /// Worth knowing.
    pub warnings: Vec<Warning>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.gpus.iter().all(|gpu| gpu.steps.is_empty())
    }
}
