// SPDX-License-Identifier: Apache-2.0
//! The status of the node's `GpuNode`, from what was read and decided.

use config::deviceplugin::Sharing;
use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use kubeapi::{
    Condition, Finding, GpuNodeStatus, GpuStatus, MigConfigStatus, ResourceStatus, SliceStatus,
};
use plan::Warning;
use publish::{Allocated, Fault, Resource};
use snapshot::Reading;
use units::Code;

use crate::agent::Layout;
use crate::decide::{Desired, State};

/// The status, without the times of its conditions.
pub fn of(
    reading: &Reading,
    desired: &Desired,
    layout: &Layout,
    resources: &[Resource],
    allocated: &[Allocated],
    findings: &[Warning],
) -> GpuNodeStatus {
    let inventory = reading.node.inventory.as_ref();
    let gpus = inventory.map_or(&[][..], |inventory| &inventory.gpus);
    let faults = &reading.node.faults;
    let shared = !matches!(desired.config.sharing, Sharing::Exclusive);
    let unnamed = if shared { "shared" } else { "exclusive" };
    GpuNodeStatus {
        driver_version: inventory.map_or_else(String::new, |it| it.driver_version.clone()),
        cuda_version: inventory.map_or_else(String::new, cuda_version),
        gpu_count: number(gpus.len()),
        strategy: desired.config.flags.mig_strategy.as_str().to_owned(),
        sharing: desired.kept.sharing.name().unwrap_or(unnamed).to_owned(),
        mig_config: mig_config(layout),
        gpus: gpus
            .iter()
            .map(|gpu| gpu_status(gpu, faults, resources, allocated))
            .collect(),
        resources: resources.iter().map(|it| resource(it, allocated)).collect(),
        findings: findings.iter().map(finding).collect(),
        conditions: conditions(layout, findings),
    }
}

/// The status while nothing is offered to new pods, for this reason: nothing of the hardware, as
/// nobody looks at it; what was decided before stands.
pub fn idle(before: Option<&GpuNodeStatus>, why: &Warning) -> GpuNodeStatus {
    let before = before.cloned().unwrap_or_default();
    let message = format!("{} [{}]", why.message, why.code);
    let unknown = |kind| condition(kind, None, "NotRead", &message);
    let driver = match why.code {
        Code::DriverMissing => condition("DriverReady", false, "Unavailable", &message),
        _ => unknown("DriverReady"),
    };
    let resources = before.resources.into_iter();
    GpuNodeStatus {
        resources: resources
            .map(|resource| ResourceStatus {
                healthy: 0,
                ..resource
            })
            .collect(),
        findings: vec![finding(why)],
        conditions: vec![
            condition("Ready", false, "Idle", &message),
            driver,
            unknown("LayoutApplied"),
            unknown("SharingApplied"),
        ],
        strategy: before.strategy,
        sharing: before.sharing,
        mig_config: before.mig_config,
        ..GpuNodeStatus::default()
    }
}

fn finding(warning: &Warning) -> Finding {
    Finding {
        code: warning.code.to_string(),
        message: warning.message.clone(),
    }
}

fn cuda_version(inventory: &Inventory) -> String {
    let (major, minor) = inventory.cuda_version;
    format!("{major}.{minor}")
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn mig_config(layout: &Layout) -> MigConfigStatus {
    let (code, reason) = layout.reason.clone().unzip();
    MigConfigStatus {
        wanted: layout.wanted.clone().unwrap_or_default(),
        state: layout
            .state
            .map(|state| state.to_string())
            .unwrap_or_default(),
        reason: reason.unwrap_or_default(),
        code: code.map(|code| code.to_string()).unwrap_or_default(),
    }
}

fn gpu_status(
    gpu: &Gpu,
    faults: &[Fault],
    resources: &[Resource],
    allocated: &[Allocated],
) -> GpuStatus {
    let slices = gpu.instances.iter().flat_map(|instance| {
        let of = |compute| slice(instance, compute, resources, allocated);
        instance.compute.iter().map(of)
    });
    let faults = faults.iter().filter(|fault| fault.gpu == gpu.uuid);
    GpuStatus {
        index: gpu.index,
        uuid: gpu.uuid.to_string(),
        product: gpu.name.clone(),
        memory_mib: gpu.memory_mib,
        mode: gpu.mode.map(|mode| mode.to_string()).unwrap_or_default(),
        slices: slices.collect(),
        faults: faults.map(|fault| fault.what.clone()).collect(),
    }
}

fn slice(
    instance: &GpuInstance,
    compute: &ComputeInstance,
    resources: &[Resource],
    allocated: &[Allocated],
) -> SliceStatus {
    let uuid = compute
        .uuid
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    let has = |id: &String| publish::device_uuid(id) == uuid;
    let held = allocated.iter().any(|it| it.ids.iter().any(has));
    let offered = resources.iter().find(|it| {
        let mut devices = it.devices.iter();
        devices.any(|device| device.hardware.uuid() == uuid)
    });
    SliceStatus {
        resource: offered.map(|it| it.name.clone()).unwrap_or_default(),
        profile: compute.profile.to_string(),
        start: instance.placement.start,
        size: instance.placement.size,
        in_use: held || !compute.holders.is_empty(),
        uuid,
    }
}

fn resource(resource: &Resource, allocated: &[Allocated]) -> ResourceStatus {
    let healthy = resource.devices.iter().filter(|it| it.is_healthy()).count();
    let held = allocated.iter().filter(|it| it.resource == resource.name);
    ResourceStatus {
        name: resource.name.clone(),
        count: number(resource.devices.len()),
        healthy: number(healthy),
        allocated: number(held.map(|it| it.ids.len()).sum()),
    }
}

/// Findings that mean that the wanted sharing is not in force, or not wholly.
const SHARING: [Code; 3] = [
    Code::ConfigInvalid,
    Code::ConfigNotFound,
    Code::StillAllocated,
];

fn conditions(layout: &Layout, findings: &[Warning]) -> Vec<Condition> {
    let applied = match (&layout.wanted, layout.state) {
        (None, _) => condition(
            "LayoutApplied",
            true,
            "NothingWanted",
            "no layout is wanted",
        ),
        (Some(name), Some(State::Success)) => {
            let message = format!("the layout is as {name} wants it, read back");
            condition("LayoutApplied", true, "Applied", &message)
        }
        (Some(name), _) => {
            let reason = layout.reason.as_ref();
            let message = reason.map_or_else(
                || format!("{name} is being applied"),
                |(code, reason)| format!("{reason} [{code}]"),
            );
            condition("LayoutApplied", false, "NotApplied", &message)
        }
    };
    let unmet = findings
        .iter()
        .find(|finding| SHARING.contains(&finding.code));
    let sharing = match unmet {
        None => condition(
            "SharingApplied",
            true,
            "Applied",
            "sharing is as it is wanted",
        ),
        Some(finding) => {
            let message = format!("{} [{}]", finding.message, finding.code);
            condition("SharingApplied", false, "NotApplied", &message)
        }
    };
    let ready = applied.status == "True" && sharing.status == "True";
    let message = if ready {
        "the node is as it is wanted"
    } else {
        "see the other conditions"
    };
    let reason = if ready { "AsWanted" } else { "NotAsWanted" };
    let driver = condition("DriverReady", true, "Answers", "the driver answers");
    vec![
        condition("Ready", ready, reason, message),
        driver,
        applied,
        sharing,
    ]
}

/// A condition; `None`: nobody knows.
fn condition(kind: &str, holds: impl Into<Option<bool>>, reason: &str, message: &str) -> Condition {
    let status = match holds.into() {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    Condition {
        kind: kind.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        last_transition_time: String::new(),
    }
}

/// Sets the time of each condition: that of before where its status is the same, else `now`.
pub fn set_times(status: &mut GpuNodeStatus, before: Option<&GpuNodeStatus>, now: &str) {
    let before = before.map_or(&[][..], |before| &before.conditions);
    for condition in &mut status.conditions {
        let same = before
            .iter()
            .find(|it| it.kind == condition.kind && it.status == condition.status);
        condition.last_transition_time = match same {
            Some(same) => same.last_transition_time.clone(),
            None => now.to_owned(),
        };
    }
}
