// SPDX-License-Identifier: Apache-2.0
//! Who is hurt by a plan as things are now, which may not be as they were when it was made.

use std::collections::BTreeSet;

use geometry::inventory::{ComputeInstance, Gpu, Holder};
use plan::{Action, Condition, GpuPlan};
use units::Code;

use crate::error::{Cause, Error};

/// Everybody who uses the GPU or one of its instances.
fn all(gpu: &Gpu) -> impl Iterator<Item = &Holder> {
    let compute = gpu.instances.iter().flat_map(|instance| &instance.compute);
    let inside = compute.flat_map(|compute| &compute.holders);
    gpu.holders.iter().chain(inside)
}

/// Who uses what the plan takes away.
fn hurt<'a>(plan: &GpuPlan, gpu: &'a Gpu) -> BTreeSet<&'a Holder> {
    let mut steps = plan.steps.iter();
    if steps.any(|step| step.requires.contains(&Condition::Idle)) {
        return all(gpu).collect();
    }
    let goes = |place, found: &ComputeInstance| {
        plan.steps.iter().any(|step| match &step.action {
            Action::DestroyCompute { instance, compute } => {
                *instance == place && found.spec().is_like(compute)
            }
            _ => false,
        })
    };
    let mut holders = BTreeSet::new();
    for instance in &gpu.instances {
        for compute in &instance.compute {
            if goes(instance.placement, compute) {
                holders.extend(&compute.holders);
            }
        }
    }
    holders
}

/// Whether exactly those are hurt whom the plan names.
///
/// # Errors
/// [`Error::InUse`] if somebody came since it was made, [`Error::Outdated`] if somebody left.
pub(crate) fn as_planned(plan: &GpuPlan, gpu: &Gpu) -> Result<(), Error> {
    let hurt = hurt(plan, gpu);
    let named: BTreeSet<&Holder> = plan.holders.iter().collect();
    let came: Vec<&Holder> = hurt.difference(&named).copied().collect();
    if !came.is_empty() {
        return Err(Error::InUse {
            index: plan.index,
            holders: text(&came),
        });
    }
    let left: Vec<&Holder> = named.difference(&hurt).copied().collect();
    if !left.is_empty() {
        return Err(Error::Outdated {
            index: plan.index,
            found: format!("not used any more by {}", text(&left)),
            planned: "used by it".into(),
        });
    }
    Ok(())
}

/// Whether nobody uses the GPU but those whom the plan names.
///
/// # Errors
/// As the cause to stop a change that was begun.
pub(crate) fn idle(plan: &GpuPlan, gpu: &Gpu) -> Result<(), Cause> {
    let strangers: Vec<&Holder> = all(gpu)
        .filter(|holder| !plan.holders.contains(holder))
        .collect();
    if strangers.is_empty() {
        return Ok(());
    }
    let (index, who) = (plan.index, text(&strangers));
    let message = format!("GPU {index} must be idle for this and is used by {who}");
    Err(Cause::new(Code::InUse, message))
}

/// Everybody who uses the GPU or one of its instances, as text; empty if nobody does.
pub(crate) fn named(gpu: &Gpu) -> String {
    let holders: BTreeSet<&Holder> = all(gpu).collect();
    text(&holders.into_iter().collect::<Vec<_>>())
}

fn text(holders: &[&Holder]) -> String {
    let texts: Vec<String> = holders.iter().map(ToString::to_string).collect();
    texts.join(", ")
}
