// SPDX-License-Identifier: Apache-2.0
//! Plans and the state of GPUs as text for people. GPUs that are alike share their lines.

use std::fmt::Write;

use geometry::inventory::Inventory;
use geometry::{InstanceSpec, Layout};
use plan::{Action, GpuPlan, Impact, Plan};
use units::Mode;

use super::profiles::ranges;
use crate::picture::{label, picture};

/// GPUs with the same text get one block: `  GPU 0-7   first line`, then the others below it.
pub fn grouped(blocks: impl IntoIterator<Item = (u32, String)>) -> String {
    let mut groups: Vec<(Vec<u32>, String)> = Vec::new();
    for (gpu, block) in blocks {
        match groups.iter_mut().find(|(_, known)| *known == block) {
            Some((gpus, _)) => gpus.push(gpu),
            None => groups.push((vec![gpu], block)),
        }
    }
    let named = groups
        .into_iter()
        .map(|(gpus, block)| (format!("GPU {}", ranges(&gpus)), block));
    let named: Vec<(String, String)> = named.collect();
    let width = named.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (name, block) in &named {
        for (at, line) in block.lines().enumerate() {
            let name = if at == 0 { name } else { "" };
            let _ = writeln!(text, "  {name:width$}   {line}");
        }
    }
    text
}

/// Mode and instances in one line.
fn state(mode: Mode, layout: &Layout, placement_units: u8) -> String {
    match mode {
        Mode::On => picture(layout, placement_units),
        Mode::PendingOff => format!("{} (MIG pending off)", picture(layout, placement_units)),
        Mode::Off | Mode::PendingOn => format!("MIG {mode}"),
    }
}

/// What is on the GPUs of a plan, as `inventory` has it.
pub fn states(plan: &Plan, inventory: &Inventory) -> String {
    let gpus = inventory
        .gpus
        .iter()
        .filter(|gpu| plan.gpus.iter().any(|p| p.uuid == gpu.uuid));
    let line = |gpu: &geometry::inventory::Gpu| {
        let mode = gpu.mode.unwrap_or(Mode::Off);
        (
            gpu.index,
            state(mode, &gpu.layout(), gpu.board.placement_units),
        )
    };
    grouped(gpus.map(line))
}

/// What will be on the GPUs of a plan.
pub fn planned_states(plan: &Plan, inventory: &Inventory) -> String {
    let units = |gpu: &GpuPlan| {
        let board = inventory.gpus.iter().find(|known| known.uuid == gpu.uuid);
        board.map_or(0, |known| known.board.placement_units)
    };
    grouped(
        plan.gpus
            .iter()
            .map(|gpu| (gpu.index, state(gpu.mode_after, &gpu.after, units(gpu)))),
    )
}

/// What a plan does, GPU by GPU.
pub fn changes(plan: &Plan) -> String {
    grouped(plan.gpus.iter().map(|gpu| (gpu.index, gpu_changes(gpu))))
}

fn gpu_changes(gpu: &GpuPlan) -> String {
    if gpu.steps.is_empty() {
        return "no change".to_owned();
    }
    let mut lines = Vec::new();
    if gpu.mode_before != gpu.mode_after {
        lines.push(format!("MIG {} -> {}", gpu.mode_before, gpu.mode_after));
    }
    if gpu.resets() {
        lines.push("reset".to_owned());
    }
    let kept = gpu
        .keep
        .iter()
        .map(|instance| (instance, kept(instance, gpu)));
    let gone = gpu
        .destroy
        .iter()
        .map(|instance| (instance, line('-', instance)));
    let come = gpu
        .create
        .iter()
        .map(|instance| (instance, line('+', instance)));
    let mut instances: Vec<(&InstanceSpec, String)> = gone.chain(kept).chain(come).collect();
    instances.sort_by_key(|(instance, _)| instance.placement);
    lines.extend(instances.into_iter().map(|(_, line)| line));
    lines.join("\n")
}

fn line(sign: char, instance: &InstanceSpec) -> String {
    format!("{sign} {} at {}", label(instance), instance.placement)
}

/// An instance that stays, with what changes inside it.
fn kept(instance: &InstanceSpec, gpu: &GpuPlan) -> String {
    let inside = gpu.steps.iter().filter_map(|step| match &step.action {
        Action::DestroyCompute {
            instance: at,
            compute,
        } if *at == instance.placement => Some(format!("- {}", compute.profile)),
        Action::CreateCompute {
            instance: at,
            compute,
        } if *at == instance.placement => Some(format!("+ {}", compute.profile)),
        _ => None,
    });
    let inside: Vec<String> = inside.collect();
    let kept = line('=', instance);
    if inside.is_empty() {
        kept
    } else {
        format!("{kept} (inside: {})", inside.join(", "))
    }
}

/// What a plan costs, in a line.
pub fn cost(impact: &Impact) -> String {
    let resets = match impact.gpus_reset.as_slice() {
        [] => "no reset".to_owned(),
        gpus => format!("reset of GPU {}", ranges(gpus)),
    };
    format!(
        "{} created, {} kept, {} destroyed; {resets}; {}",
        counted(impact.instances_created, "instance"),
        impact.instances_kept,
        impact.instances_destroyed,
        counted(impact.driver_calls, "driver call"),
    )
}

/// `1 driver call`, `2 driver calls`.
pub fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
