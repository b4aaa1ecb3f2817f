// SPDX-License-Identifier: Apache-2.0
//! A plan or refusal as a stable, versioned report: what `plan -o json` prints.

use geometry::InstanceSpec;
use serde::Serialize;
use units::{GpuUuid, ProfileName};

use crate::refusal::{Refusal, Warning};
use crate::step::{Action, GpuPlan, Plan};

/// What a plan costs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Impact {
    /// GPU instances that stay.
    pub instances_kept: usize,
    /// GPU instances that go.
    pub instances_destroyed: usize,
    /// GPU instances that come.
    pub instances_created: usize,
    /// Indices of the GPUs that are reset.
    pub gpus_reset: Vec<u32>,
    /// Whether the machine is rebooted. No step does so.
    pub reboot: bool,
    /// Who is hurt.
    pub holders: Vec<Hurt>,
    /// Calls that change something on the driver. A reset is none: NVML has no call for it.
    pub driver_calls: usize,
}

/// A process that loses what it uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hurt {
    /// Index of the GPU.
    pub gpu: u32,
    /// Process id.
    pub pid: u32,
    /// Program name; empty where unknown.
    pub name: String,
}

/// What a plan costs.
pub fn impact(plan: &Plan) -> Impact {
    let mut impact = Impact::default();
    for gpu in &plan.gpus {
        impact.instances_kept += gpu.keep.len();
        impact.instances_destroyed += gpu.destroy.len();
        impact.instances_created += gpu.create.len();
        if gpu.resets() {
            impact.gpus_reset.push(gpu.index);
        }
        impact.holders.extend(gpu.holders.iter().map(|holder| Hurt {
            gpu: gpu.index,
            pid: holder.pid,
            name: holder.name.clone(),
        }));
        let calls = gpu.steps.iter().filter(|step| step.action != Action::Reset);
        impact.driver_calls += calls.count();
    }
    impact
}

/// What comes of a wish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// All is as wanted.
    Nothing,
    /// There are steps to do.
    Change,
    /// Not possible or not safe.
    Refused,
}

/// The report. Keys are stable within a version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `v1`.
    pub version: &'static str,
    /// What comes of the wish.
    pub outcome: Outcome,
    /// GPUs of the wish, by index; none if refused.
    pub gpus: Vec<GpuReport>,
    /// What it costs.
    pub impact: Impact,
    /// Worth knowing.
    pub warnings: Vec<Warning>,
    /// Why not, if refused.
    pub refusal: Option<Refusal>,
}

/// One GPU of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuReport {
    /// NVML index.
    pub index: u32,
    /// UUID.
    pub uuid: GpuUuid,
    /// Mode after: `on` or `off`; `pending on` or `pending off` where a reset was not allowed.
    pub mode: String,
    /// Whether it is reset.
    pub reset: bool,
    /// GPU instances that stay, as they will be.
    pub keep: Vec<InstanceReport>,
    /// GPU instances that go.
    pub destroy: Vec<InstanceReport>,
    /// GPU instances that come.
    pub create: Vec<InstanceReport>,
}

/// One GPU instance of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstanceReport {
    /// Profile.
    pub profile: ProfileName,
    /// First placement unit.
    pub start: u8,
    /// Placement units.
    pub size: u8,
    /// Compute instances, as they will be.
    pub compute: Vec<ComputeReport>,
    /// Compute instances that go from an instance that stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compute_destroyed: Vec<ComputeReport>,
    /// Compute instances that come into an instance that stays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub compute_created: Vec<ComputeReport>,
}

/// One compute instance of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ComputeReport {
    /// Profile.
    pub profile: ProfileName,
}

impl Report {
    /// The report of a plan.
    pub fn planned(plan: &Plan) -> Self {
        Self {
            version: "v1",
            outcome: if plan.is_empty() {
                Outcome::Nothing
            } else {
                Outcome::Change
            },
            gpus: plan.gpus.iter().map(GpuReport::new).collect(),
            impact: impact(plan),
            warnings: plan.warnings.clone(),
            refusal: None,
        }
    }

    /// The report of a refusal.
    pub fn refused(refusal: Refusal) -> Self {
        Self {
            version: "v1",
            outcome: Outcome::Refused,
            gpus: Vec::new(),
            impact: Impact::default(),
            warnings: Vec::new(),
            refusal: Some(refusal),
        }
    }
}

impl GpuReport {
    fn new(gpu: &GpuPlan) -> Self {
        let whole = |specs: &[InstanceSpec]| specs.iter().map(InstanceReport::new).collect();
        Self {
            index: gpu.index,
            uuid: gpu.uuid.clone(),
            mode: gpu.mode_after.to_string(),
            reset: gpu.resets(),
            keep: gpu
                .keep
                .iter()
                .map(|spec| InstanceReport::kept(spec, gpu))
                .collect(),
            destroy: whole(&gpu.destroy),
            create: whole(&gpu.create),
        }
    }
}

impl InstanceReport {
    fn new(spec: &InstanceSpec) -> Self {
        Self {
            profile: spec.profile.clone(),
            start: spec.placement.start,
            size: spec.placement.size,
            compute: spec
                .compute
                .iter()
                .map(|compute| ComputeReport {
                    profile: compute.profile.clone(),
                })
                .collect(),
            compute_destroyed: Vec::new(),
            compute_created: Vec::new(),
        }
    }

    fn kept(spec: &InstanceSpec, gpu: &GpuPlan) -> Self {
        let mut report = Self::new(spec);
        for step in &gpu.steps {
            let (instance, compute, list) = match &step.action {
                Action::DestroyCompute { instance, compute } => {
                    (instance, compute, &mut report.compute_destroyed)
                }
                Action::CreateCompute { instance, compute } => {
                    (instance, compute, &mut report.compute_created)
                }
                _ => continue,
            };
            if *instance == spec.placement {
                list.push(ComputeReport {
                    profile: compute.profile.clone(),
                });
            }
        }
        report
    }
}
