// SPDX-License-Identifier: Apache-2.0
//! Tests through the public interface.

mod modes;
mod planned;
mod refused;
mod selected;

use geometry::catalogue;
use geometry::inventory::{Gpu, Holder, Inventory};
use units::{Mode, ProfileName};

use crate::testing::{gpu, machine, put};
use crate::{Action, GpuPlan, Plan, Policy, Refusal, Wish, parse_layout, plan};

fn name(text: &str) -> ProfileName {
    text.parse().unwrap()
}

/// A GPU with MIG on and these instances, each with a full slice.
fn a_gpu(index: u32, board: &str, instances: &[(&str, u8)]) -> Gpu {
    let mut gpu = gpu(catalogue::by_key(board).unwrap(), index, Mode::On);
    for (profile, start) in instances {
        put(&mut gpu, &name(profile), *start, &[(name(profile), 0)]);
    }
    gpu
}

fn holder(pid: u32, name: &str) -> Holder {
    Holder {
        pid,
        name: name.into(),
    }
}

/// A wish for layouts as typed.
fn wish(layouts: &[(u32, &str)]) -> Wish {
    let wished = layouts
        .iter()
        .map(|(gpu, layout)| (*gpu, parse_layout(layout).unwrap()));
    Wish {
        gpus: wished.collect(),
        warnings: Vec::new(),
    }
}

fn planned(gpus: Vec<Gpu>, layouts: &[(u32, &str)]) -> Result<Plan, Refusal> {
    plan(&machine(gpus), &wish(layouts), &Policy::default())
}

/// The steps in short: `-ci 1g.10gb@4`, `+gi 3g.40gb@4`, `mode on`, `reset`.
fn steps(plan: &GpuPlan) -> Vec<String> {
    plan.steps.iter().map(|step| short(&step.action)).collect()
}

fn short(action: &Action) -> String {
    match action {
        Action::SetMode { on } => format!("mode {}", if *on { "on" } else { "off" }),
        Action::Reset => "reset".into(),
        Action::DestroyCompute { instance, compute } => {
            format!("-ci {}@{}", compute.profile, instance.start)
        }
        Action::CreateCompute { instance, compute } => {
            format!("+ci {}@{}", compute.profile, instance.start)
        }
        Action::DestroyGpuInstance {
            placement, profile, ..
        } => format!("-gi {profile}@{}", placement.start),
        Action::CreateGpuInstance {
            placement, profile, ..
        } => format!("+gi {profile}@{}", placement.start),
    }
}

fn inventory_of(boards: &[&str]) -> Inventory {
    let gpus = (0..)
        .zip(boards)
        .map(|(index, board)| a_gpu(index, board, &[]));
    machine(gpus.collect())
}
