// SPDX-License-Identifier: Apache-2.0
//! Whether what a plan says agrees with the inventory, with itself and with its steps.

use std::collections::BTreeSet;

use geometry::inventory::{Gpu, Holder};
use geometry::{InstanceSpec, Layout, ModeChange};
use plan::{Action, GpuPlan};
use units::{Mode, Placement};

/// Who is a GPU instance: place and profile.
type Key = (Placement, u32);

fn keys(specs: &[InstanceSpec]) -> BTreeSet<Key> {
    let keys = specs.iter().map(|spec| (spec.placement, spec.driver_id));
    keys.collect()
}

/// Tells every disagreement.
pub(crate) fn check(gpu: &Gpu, plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    if plan.uuid != gpu.uuid {
        add(None, format!("its UUID is {}, not {}", gpu.uuid, plan.uuid));
    }
    let mode = gpu.mode.unwrap_or(Mode::Off);
    if plan.mode_before != mode {
        add(
            None,
            format!("its mode is {mode}, not {}", plan.mode_before),
        );
    }
    if plan.before != gpu.layout() {
        add(None, "the layout before is not that of the GPU".into());
    }
    if gpu.mode.is_none() && !plan.steps.is_empty() {
        add(None, "it has no MIG, but there are steps".into());
    }
    lists(plan, add);
    steps(plan, add);
    mode_steps(gpu, plan, add);
    holders(gpu, plan, add);
}

/// What stays, goes and comes is before and after.
fn lists(plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    let mut after = [plan.keep.as_slice(), plan.create.as_slice()].concat();
    after.sort();
    if (Layout { instances: after }) != plan.after {
        add(None, "what stays and comes is not the layout after".into());
    }
    let mut goes = plan.before.instances.clone();
    goes.retain(|spec| !keys(&plan.keep).contains(&(spec.placement, spec.driver_id)));
    if goes != plan.destroy {
        add(None, "what goes is not all that does not stay".into());
    }
    let before = keys(&plan.before.instances);
    for (placement, _) in keys(&plan.keep).difference(&before) {
        add(
            None,
            format!("the instance at {placement} stays, but is not there"),
        );
    }
    for (placement, _) in keys(&plan.create).intersection(&before) {
        add(
            None,
            format!("the instance at {placement} comes, but is there already"),
        );
    }
}

/// The steps destroy and create what the lists say.
fn steps(plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    let (goes, comes) = (keys(&plan.destroy), keys(&plan.create));
    let mut destroyed = BTreeSet::new();
    let mut created = BTreeSet::new();
    for (number, step) in plan.steps.iter().enumerate() {
        let (key, allowed, done, what) = match &step.action {
            Action::DestroyGpuInstance {
                placement,
                driver_id,
                ..
            } => ((*placement, *driver_id), &goes, &mut destroyed, "destroys"),
            Action::CreateGpuInstance {
                placement,
                driver_id,
                ..
            } => ((*placement, *driver_id), &comes, &mut created, "creates"),
            _ => continue,
        };
        if !allowed.contains(&key) {
            let message = format!(
                "it {what} the instance at {}, which the plan does not say",
                key.0
            );
            add(Some(number), message);
        }
        if !done.insert(key) {
            add(
                Some(number),
                format!("it {what} the instance at {} again", key.0),
            );
        }
    }
    for (placement, _) in goes.difference(&destroyed) {
        add(
            None,
            format!("no step destroys the instance at {placement}"),
        );
    }
    for (placement, _) in comes.difference(&created) {
        add(None, format!("no step creates the instance at {placement}"));
    }
}

/// The mode is set and the GPU reset at most once, and only if it has to be.
fn mode_steps(gpu: &Gpu, plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    let before = gpu.mode.unwrap_or(Mode::Off);
    let set_needed = before.will_be_on() != plan.mode_after.will_be_on();
    let at_once = gpu.board.mode_change == ModeChange::Immediate && !before.is_pending();
    let reset_needed = before.is_on() != plan.mode_after.is_on() && !at_once;
    let mut sets = usize::from(set_needed);
    let mut resets = usize::from(reset_needed);
    for (number, step) in plan.steps.iter().enumerate() {
        let (left, what) = match step.action {
            Action::SetMode { .. } => (&mut sets, "set mode"),
            Action::Reset => (&mut resets, "reset"),
            _ => continue,
        };
        match left.checked_sub(1) {
            Some(rest) => *left = rest,
            None => add(Some(number), format!("this {what} is not needed")),
        }
    }
    if sets + resets > 0 {
        add(
            None,
            format!(
                "the mode cannot become {}: a step is missing",
                plan.mode_after
            ),
        );
    }
}

/// Exactly those who are hurt are named.
fn holders(gpu: &Gpu, plan: &GpuPlan, add: &mut impl FnMut(Option<usize>, String)) {
    let mut hurt: BTreeSet<&Holder> = BTreeSet::new();
    let slices = || {
        let instances = gpu.instances.iter();
        instances.flat_map(|i| i.compute.iter().map(move |c| (i, c)))
    };
    for step in &plan.steps {
        if let Action::DestroyCompute { instance, compute } = &step.action {
            let of = slices().filter(|(i, c)| {
                i.placement == *instance
                    && c.driver_id == compute.driver_id
                    && c.placement == compute.placement
            });
            hurt.extend(of.flat_map(|(_, c)| &c.holders));
        }
    }
    if plan.mode_before.is_on() != plan.mode_after.is_on() {
        hurt.extend(&gpu.holders);
        hurt.extend(slices().flat_map(|(_, c)| &c.holders));
    }
    let named: BTreeSet<&Holder> = plan.holders.iter().collect();
    for holder in hurt.difference(&named) {
        add(
            None,
            format!("process {} is hurt and not named", holder.pid),
        );
    }
    for holder in named.difference(&hurt) {
        add(
            None,
            format!("process {} is named and not hurt", holder.pid),
        );
    }
}
