// SPDX-License-Identifier: Apache-2.0
//! Plans one GPU after the other; the first that is refused refuses all.

use geometry::inventory::{Gpu, Inventory};
use geometry::place::{PlaceError, Present, Wanted, place};
use geometry::{Confidence, Layout};
use units::{Code, Mode};

use crate::change::Change;
use crate::mode::ModeWay;
use crate::refusal::{Notes, Refusal, Warning, gpu_name, lost};
use crate::step::{GpuPlan, Plan};
use crate::text::{count, layout_text, list};
use crate::wish::{GpuWish, Policy, Wish};

/// Plans the way from `inventory` to `wish`. GPUs that are not in the wish stay as they are.
///
/// # Errors
/// A [`Refusal`] if the wish cannot be fulfilled, or not without hurting a holder. It is that of
/// the first GPU refused, and says how many more are.
pub fn plan(inventory: &Inventory, wish: &Wish, policy: &Policy) -> Result<Plan, Refusal> {
    let mut notes = Notes::default();
    let mut gpus = Vec::new();
    let mut refusals = Vec::new();
    for (index, wanted) in &wish.gpus {
        let gpu = inventory.gpus.iter().find(|gpu| gpu.index == *index);
        let planned = match gpu {
            Some(gpu) => plan_gpu(gpu, wanted, policy, &mut notes),
            None => Err(Refusal::unknown_gpu(inventory, *index)),
        };
        match planned {
            Ok(gpu) => gpus.push(gpu),
            Err(refusal) => refusals.push(refusal),
        }
    }
    let others = refusals.len().saturating_sub(1);
    if let Some(mut refusal) = refusals.into_iter().next() {
        if others > 0 {
            let others = count(others, "more GPU is", "more GPUs are");
            refusal
                .message
                .push_str(&format!(" ({others} refused too)"));
        }
        return Err(refusal);
    }
    let mut warnings = wish.warnings.clone();
    if !inventory.lost.is_empty() {
        warnings.push(Warning {
            code: Code::GpuLost,
            message: lost(&inventory.lost),
        });
    }
    warnings.extend(notes.into_warnings());
    Ok(Plan { gpus, warnings })
}

fn plan_gpu(
    gpu: &Gpu,
    wanted: &GpuWish,
    policy: &Policy,
    notes: &mut Notes,
) -> Result<GpuPlan, Refusal> {
    let Some(before) = gpu.mode else {
        return without_mig(gpu, wanted);
    };
    let on = *wanted != GpuWish::Off;
    let way = ModeWay::new(gpu.board.mode_change, before, on, policy.reset);
    let change = change(gpu, wanted, way.after)?;
    let holders = change.holders(way.needs_idle());
    if !holders.is_empty() && !policy.ignore_holders {
        return Err(in_use(gpu, &change, &way));
    }
    if let Some(slice) = change.of_unknown_place() {
        return Err(Refusal::new(
            Code::NotSupportedYet,
            format!(
                "{}: the driver does not tell where slice {} sits in its GPU instance, so it could \
                 not be put back; destroy it by hand, or update the driver",
                gpu_name(gpu),
                slice.profile
            ),
        ));
    }
    note(gpu, &change, &way, notes);
    let (mut steps, layout_steps) = (way.steps(), change.steps());
    if on {
        steps.extend(layout_steps);
    } else {
        steps.splice(0..0, layout_steps);
    }
    Ok(GpuPlan {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        mode_before: before,
        mode_after: way.after,
        before: gpu.layout(),
        after: change.after(),
        keep: change.kept(),
        destroy: change.destroyed(),
        create: change.created().to_vec(),
        holders,
        steps,
    })
}

/// A GPU without MIG is as if its mode were off, and can be nothing else.
fn without_mig(gpu: &Gpu, wanted: &GpuWish) -> Result<GpuPlan, Refusal> {
    if *wanted != GpuWish::Off {
        return Err(Refusal::new(
            Code::MigUnsupported,
            format!(
                "{} has no MIG; leave it out, or ask for MIG off",
                gpu_name(gpu)
            ),
        ));
    }
    Ok(GpuPlan {
        index: gpu.index,
        uuid: gpu.uuid.clone(),
        mode_before: Mode::Off,
        mode_after: Mode::Off,
        before: Layout::default(),
        after: Layout::default(),
        keep: Vec::new(),
        destroy: Vec::new(),
        create: Vec::new(),
        holders: Vec::new(),
        steps: Vec::new(),
    })
}

/// What changes on the GPU's instances. A layout that has to wait for a reset is only checked.
fn change<'a>(gpu: &'a Gpu, wanted: &GpuWish, after: Mode) -> Result<Change<'a>, Refusal> {
    let wanted = match wanted {
        GpuWish::Off => return Ok(Change::clear(gpu)),
        GpuWish::On => return Ok(Change::none(gpu)),
        GpuWish::Slices(counts) => Wanted::Slices(counts.clone()),
        GpuWish::Exact(layout) => Wanted::Exact(layout.clone()),
    };
    let present: Vec<Present> = gpu.instances.iter().map(Present::from).collect();
    let placed =
        place(&gpu.board, &present, &wanted).map_err(|error| impossible(gpu, &wanted, error))?;
    Ok(if after.is_on() {
        Change::placed(gpu, placed)
    } else {
        Change::none(gpu)
    })
}

/// What is worth knowing of a GPU that is planned.
fn note(gpu: &Gpu, change: &Change<'_>, way: &ModeWay, notes: &mut Notes) {
    if way.after.is_pending() {
        let state = if way.after.will_be_on() { "on" } else { "off" };
        let text = format!(
            "MIG will be {state} only after a reset, which was not allowed; reset the GPU or reboot, \
             then run this again"
        );
        notes.add(Code::ResetNeeded, gpu, text);
    }
    for instance in gpu
        .instances
        .iter()
        .filter(|instance| instance.compute.is_empty())
    {
        let text = format!(
            "GPU instance {} at {} has no compute instance, so nothing can use it",
            instance.profile, instance.placement
        );
        notes.add(Code::OrphanInstance, gpu, text);
    }
    let estimated = change.created().iter().any(|instance| {
        let profile = gpu.board.profile(instance.driver_id);
        profile.is_some_and(|profile| profile.confidence == Confidence::Derived)
    });
    if estimated {
        let text = format!(
            "the placements of {} are estimates; the driver may refuse them, and then all is put back",
            gpu.board.key
        );
        notes.add(Code::EstimatedBoard, gpu, text);
    }
}

/// What goes is in use.
fn in_use(gpu: &Gpu, change: &Change<'_>, way: &ModeWay) -> Refusal {
    let mut causes: Vec<String> = change
        .hurt()
        .iter()
        .map(|hurt| {
            let (profile, by) = (&hurt.slice.profile, list(&hurt.slice.holders));
            format!(
                "slice {profile} of the GPU instance at {} is used by {by}",
                hurt.place
            )
        })
        .collect();
    let whole = change.holders(way.needs_idle());
    if causes.is_empty() {
        causes.push(format!("it is used by {}", list(&whole)));
    }
    let (what, instead) = if way.needs_idle() {
        ("a change of the MIG mode needs the whole GPU idle", "")
    } else {
        (
            "the change would destroy it",
            ", or ask for a layout that keeps it",
        )
    };
    Refusal::new(
        Code::InUse,
        format!(
            "{}: {}, and {what}; end these processes or wait for them{instead}",
            gpu_name(gpu),
            causes.join("; ")
        ),
    )
}

/// What the board cannot do, and what it can instead.
fn impossible(gpu: &Gpu, wanted: &Wanted, error: PlaceError) -> Refusal {
    let name = gpu_name(gpu);
    match error {
        PlaceError::BoardUnknown { reason, .. } => Refusal::new(
            Code::BoardUnknown,
            format!("{name}: layouts of this board cannot be planned: {reason}"),
        ),
        PlaceError::NotOffered {
            profile,
            nearest,
            offered,
            ..
        } => {
            let nearest =
                nearest.map_or_else(String::new, |nearest| format!("; the nearest is {nearest}"));
            let message = format!("{name} does not offer {profile}{nearest}");
            let choices = offered.iter().map(ToString::to_string).collect();
            Refusal {
                choices,
                ..Refusal::new(Code::ProfileNotOffered, message)
            }
        }
        PlaceError::Illegal {
            profile,
            placement,
            reason,
            ..
        } => Refusal::new(
            Code::LayoutDoesNotFit,
            format!(
                "{name}: the recorded layout has {profile} at {placement}, where it cannot be: {reason}"
            ),
        ),
        PlaceError::DoesNotFit { largest, .. } => {
            let wanted = match wanted {
                Wanted::Slices(counts) => layout_text(counts),
                Wanted::Exact(layout) => format!("the recorded layout {layout}"),
            };
            let choices: Vec<String> = largest.iter().map(layout_text).collect();
            let most = choices.first().map_or_else(String::new, |most| {
                format!("; the most of it that fits is {most}")
            });
            Refusal {
                choices,
                ..Refusal::new(
                    Code::LayoutDoesNotFit,
                    format!("{name} cannot hold {wanted}: no placement exists{most}"),
                )
            }
        }
    }
}
