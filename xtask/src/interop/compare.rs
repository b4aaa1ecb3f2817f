// SPDX-License-Identifier: Apache-2.0
//! What a client says against what is there.

use std::collections::BTreeSet;
use std::fmt::Debug;

use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use geometry::{Board, Profile, catalogue};
use serde::Deserialize;

use super::Findings;

#[derive(Deserialize)]
struct MachineSaid {
    driver: String,
    gpus: Vec<GpuSaid>,
}

#[derive(Deserialize)]
struct GpuSaid {
    uuid: String,
    name: String,
    memory_mib: u64,
    pci: String,
    /// 1 with MIG on, 0 with MIG off, nothing without MIG.
    mig: Option<u32>,
    profiles: BTreeSet<ProfileSaid>,
    /// Names that the client computed itself, if it does.
    names: Option<BTreeSet<String>>,
    slices: BTreeSet<SliceSaid>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct ProfileSaid {
    name: String,
    id: u32,
    instances: u8,
    memory_mib: Option<u64>,
    placements: Vec<(u8, u8)>,
}

#[derive(Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct SliceSaid {
    uuid: String,
    name: String,
    gpu_instance: u32,
    compute_instance: u32,
    memory_mib: Option<u64>,
    /// The name that the client computed itself, if it does.
    profile: Option<String>,
}

/// Compares the JSON of a `read` with what is there.
pub fn inventory(said: &str, there: &Inventory) -> Findings {
    let said: MachineSaid = match serde_json::from_str(said) {
        Ok(said) => said,
        Err(error) => return vec![format!("it printed no inventory: {error}")],
    };
    let mut findings = Findings::new();
    findings.extend(differ("driver", &said.driver, &there.driver_version));
    findings.extend(differ(
        "number of GPUs",
        &said.gpus.len(),
        &there.gpus.len(),
    ));
    for (said, there) in said.gpus.iter().zip(&there.gpus) {
        let about = gpu(said, there).into_iter().flatten();
        findings.extend(about.map(|finding| format!("GPU {}: {finding}", there.index)));
    }
    findings
}

fn differ<T: PartialEq + Debug>(what: &str, said: &T, there: &T) -> Option<String> {
    (said != there).then(|| format!("{what}: it says {said:?}, there is {there:?}"))
}

fn gpu(said: &GpuSaid, there: &Gpu) -> [Option<String>; 8] {
    // The tables of the catalogue, not those that our driver read through the same library.
    let board = catalogue::by_pci(there.pci_device, there.memory_mib);
    let board = board.filter(|_| there.mode.is_some());
    let profiles = board
        .iter()
        .flat_map(|board| &board.profiles)
        .map(profile)
        .collect();
    let names = said
        .names
        .as_ref()
        .map(|_| board.iter().flat_map(names).collect());
    // go-nvlib drops half of the zeros of the PCI domain.
    let address = there.pci_bus_id.to_ascii_lowercase();
    let is_address = address.ends_with(&said.pci.to_ascii_lowercase());
    [
        differ("UUID", &said.uuid.as_str(), &there.uuid.as_str()),
        differ("name", &said.name, &there.name),
        differ("memory", &said.memory_mib, &there.memory_mib),
        (!is_address).then(|| format!("it is at {address}, not at {}", said.pci)),
        differ(
            "MIG",
            &said.mig,
            &there.mode.map(|mode| u32::from(mode.is_on())),
        ),
        differ("profiles", &said.profiles, &profiles),
        differ("computed names", &said.names, &names),
        differ(
            "slices",
            &said.slices,
            &slices(there, board.as_ref(), said.names.is_some()),
        ),
    ]
}

fn profile(profile: &Profile) -> ProfileSaid {
    ProfileSaid {
        name: format!("MIG {}", profile.name),
        id: profile.driver_id,
        instances: profile.max_instances,
        memory_mib: profile.memory_mib,
        placements: profile
            .placements
            .iter()
            .map(|at| (at.start, at.size))
            .collect(),
    }
}

/// Names of all slices that a board can be cut into.
fn names(board: &Board) -> impl Iterator<Item = String> {
    board.profiles.iter().flat_map(|profile| {
        let names = profile
            .compute
            .iter()
            .map(|c| profile.name.with_compute(c.slices));
        names.flatten().map(|name| name.to_string())
    })
}

fn slices(there: &Gpu, board: Option<&Board>, computed: bool) -> BTreeSet<SliceSaid> {
    let slice = |instance: &GpuInstance, compute: &ComputeInstance| SliceSaid {
        uuid: compute.uuid.iter().map(ToString::to_string).collect(),
        name: format!("{} MIG {}", there.name, compute.profile),
        gpu_instance: instance.id,
        compute_instance: compute.id,
        memory_mib: board.and_then(|board| board.profile(instance.driver_id)?.memory_mib),
        profile: computed.then(|| compute.profile.to_string()),
    };
    let instances = there.instances.iter();
    let pairs = instances.flat_map(|instance| instance.compute.iter().map(move |c| (instance, c)));
    pairs
        .map(|(instance, compute)| slice(instance, compute))
        .collect()
}

/// Compares the table that `nvitop` draws with what is there: addresses and MIG modes of GPUs, and
/// slices with their ids.
pub fn table(said: &str, there: &Inventory) -> Findings {
    let mode = |gpu: &Gpu| match gpu.mode {
        Some(mode) if mode.is_on() => "Enabled",
        Some(_) => "Disabled",
        None => "N/A",
    };
    let gpus = there.gpus.iter();
    let modes = gpus
        .clone()
        .map(|gpu| format!("{} {}", gpu.pci_bus_id, mode(gpu)))
        .collect();
    let slices = gpus.flat_map(|gpu| {
        let ids = |instance: &GpuInstance, compute: &ComputeInstance| {
            let (profile, gi, ci) = (&compute.profile, instance.id, compute.id);
            format!("GPU {}: {profile} @ GI/CI: {gi}/{ci}", gpu.index)
        };
        let of = |instance: &GpuInstance| -> Vec<String> {
            let compute = instance.compute.iter();
            compute.map(|compute| ids(instance, compute)).collect()
        };
        gpu.instances.iter().flat_map(of).collect::<Vec<_>>()
    });
    let (mut modes_said, mut slices_said) = (BTreeSet::new(), BTreeSet::new());
    for line in said.lines() {
        let cells: Vec<Vec<&str>> = line
            .split('│')
            .map(|cell| cell.split_whitespace().collect())
            .collect();
        match cells.as_slice() {
            [_, first, ..] if first.contains(&"GI/CI:") => {
                let gpu = first[0].split(':').next().unwrap_or_default();
                slices_said.insert(format!("GPU {gpu}: {}", first[1..].join(" ")));
            }
            [_, _, at, mode, ..] if at.first().is_some_and(|at| at.starts_with("0000")) => {
                modes_said.insert(format!("{} {}", at[0], mode.first().unwrap_or(&"?")));
            }
            _ => {}
        }
    }
    [
        differ("MIG modes", &modes_said, &modes),
        differ("slices", &slices_said, &slices.collect()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use gpu::{Driver, ReadGpus};
    use nvmlsim::{Handle, Options, Simulated, Spec, World};

    use super::*;

    fn tesla() -> Inventory {
        let spec: Spec = "1xT4".parse().unwrap();
        let world = World::create(&spec, &Options::default());
        let simulated = Simulated::new(Handle::in_memory(world));
        Driver::new(Arc::new(simulated))
            .unwrap()
            .inventory()
            .unwrap()
    }

    fn said(there: &Inventory, memory_mib: u64, slices: &str) -> String {
        let gpu = &there.gpus[0];
        format!(
            r#"{{"driver": "{}", "gpus": [{{"uuid": "{}", "name": "{}", "memory_mib": {memory_mib},
                "pci": "{}", "mig": null, "profiles": [], "slices": {slices}}}]}}"#,
            there.driver_version, gpu.uuid, gpu.name, gpu.pci_bus_id
        )
    }

    #[test]
    fn what_a_client_says_rightly_is_no_finding() {
        let there = tesla();
        let right = said(&there, there.gpus[0].memory_mib, "[]");
        assert_eq!(inventory(&right, &there), Findings::new());
    }

    #[test]
    fn what_a_client_says_wrongly_is_found() {
        let there = tesla();
        let slice = r#"[{"uuid": "MIG-1", "name": "x", "gpu_instance": 1, "compute_instance": 0,
            "memory_mib": 1, "profile": null}]"#;
        let findings = inventory(&said(&there, 1, slice), &there);
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0].starts_with("GPU 0: memory: it says 1, "),
            "{findings:?}"
        );
        assert!(findings[1].starts_with("GPU 0: slices: "), "{findings:?}");
        assert_eq!(inventory("Segmentation fault", &there).len(), 1);
    }

    #[test]
    fn what_a_table_lacks_is_found() {
        let there = tesla();
        let row = format!("│ 0 T4 On │ {} Off │ N/A 0 │", there.gpus[0].pci_bus_id);
        assert_eq!(table(&row, &there), Findings::new());
        assert_eq!(table("", &there).len(), 1);
        let slice = format!("{row}\n│ 0:0 1g.5gb @ GI/CI: 1/0 │ 0B │");
        assert_eq!(table(&slice, &there).len(), 1);
    }
}
