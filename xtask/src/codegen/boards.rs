// SPDX-License-Identifier: Apache-2.0
//! `data/mig-catalogue.json` to the board tables of crate `geometry`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use serde::Deserialize;

use super::path;

/// Engine counts that nobody has published are taken from the board in the second column, from the
/// profile of the same kind. Each of these boards is marked as an estimate.
const ENGINE_SIBLINGS: [(&str, &str); 5] = [
    ("GH200-144GB", "GH200-96GB"),
    ("B200", "H100-80GB-SXM"),
    ("GB200", "B200"),
    ("B300", "B200"),
    ("GB300", "B200"),
];

/// The compute profile of the double-memory 1g on Blackwell is unpublished; Hopper has this one.
const DOUBLE_MEMORY_COMPUTE: u32 = 7;

#[derive(Deserialize)]
struct Catalogue {
    gpus: Vec<BoardFacts>,
}

#[derive(Deserialize)]
struct BoardFacts {
    key: String,
    product_names: Vec<String>,
    pci_device_ids: Vec<PciFacts>,
    architecture: String,
    compute_capability: Option<String>,
    memory_total_mib: Option<u64>,
    compute_slices: u8,
    memory_slices: Option<u8>,
    mig_mode_change_needs_gpu_reset: bool,
    sourcing_status: String,
    gpu_instance_profiles: Option<Vec<ProfileFacts>>,
}

#[derive(Deserialize)]
struct PciFacts {
    #[serde(rename = "nvml_pciDeviceId")]
    packed: String,
}

#[derive(Deserialize)]
struct ProfileFacts {
    name: String,
    kind: String,
    nvml_profile_enum: u32,
    driver_profile_id: Option<u32>,
    slice_count: u8,
    memory_mib: Option<u64>,
    sm_count: Option<u16>,
    max_instances: u8,
    copy_engines: Option<u8>,
    decoders: Option<u8>,
    encoders: Option<u8>,
    jpeg: Option<u8>,
    ofa: Option<u8>,
    placements: Option<Vec<PlacementFacts>>,
    compute_instance_profiles: Option<Vec<ComputeFacts>>,
    prov: BTreeMap<String, (String, String)>,
}

#[derive(Deserialize)]
struct PlacementFacts {
    start: u8,
    size: u8,
}

#[derive(Deserialize)]
struct ComputeFacts {
    nvml_ci_enum: Option<u32>,
    driver_ci_profile_id: Option<u32>,
    slice_count: u8,
    max_instances: Option<u8>,
    sm_count: Option<u16>,
    placements: Option<Vec<PlacementFacts>>,
}

/// The tables and their source.
///
/// # Errors
/// A sentence if the facts cannot be read or do not have the expected form.
pub fn generated() -> Result<Vec<(PathBuf, String)>, String> {
    let from = path("data/mig-catalogue.json");
    let facts = std::fs::read_to_string(&from).map_err(|e| format!("{}: {e}", from.display()))?;
    let tables = PathBuf::from("crates/geometry/src/catalogue/generated.rs");
    Ok(vec![(tables, render(&facts)?)])
}

/// The Rust source of the tables for these facts.
fn render(facts: &str) -> Result<String, String> {
    let catalogue: Catalogue =
        serde_json::from_str(facts).map_err(|e| format!("mig-catalogue.json: {e}"))?;
    let mut compute_tables = BTreeMap::new();
    let mut boards = String::new();
    for board in &catalogue.gpus {
        boards += &render_board(&catalogue, board, &mut compute_tables)?;
    }
    let mut tables: Vec<(String, usize)> = compute_tables.into_iter().collect();
    tables.sort_by_key(|(_, number)| *number);
    let mut text = String::from(
        "// SPDX-License-Identifier: Apache-2.0\n\
         //! Written by `cargo xtask codegen` from `data/mig-catalogue.json`; do not edit.\n\n\
         use super::rows::{BoardRow, ComputeRow, ProfileRow};\n\
         use crate::board::Confidence::{Captured, Derived, Documented};\n\n",
    );
    for (rows, number) in tables {
        let _ = writeln!(text, "const C{number}: &[ComputeRow] = &[{rows}];");
    }
    let _ = write!(
        text,
        "\npub(super) const BOARDS: &[BoardRow] = &[\n{boards}];\n"
    );
    Ok(text)
}

fn render_board(
    catalogue: &Catalogue,
    board: &BoardFacts,
    compute_tables: &mut BTreeMap<String, usize>,
) -> Result<String, String> {
    let unknown = why_unknown(board);
    let facts = match (&board.gpu_instance_profiles, unknown) {
        (Some(profiles), None) => profiles.as_slice(),
        _ => &[],
    };
    let mut profiles = String::new();
    let mut budget = [0; 5];
    for profile in facts {
        let engines = engines(catalogue, board, &profile.kind)?;
        // One instance may have all that there is, so the most that any profile takes is the
        // whole: the 7g or 4g row.
        budget = std::array::from_fn(|at| budget[at].max(engines[at]));
        profiles += &render_profile(board, profile, engines, compute_tables)?;
    }
    let names: Vec<&String> = board
        .product_names
        .iter()
        .filter(|name| name.starts_with("NVIDIA"))
        .collect();
    let pci: Vec<&str> = board
        .pci_device_ids
        .iter()
        .map(|pci| pci.packed.as_str())
        .collect();
    let capability = match &board.compute_capability {
        None => "None".to_owned(),
        Some(text) => format!("Some(({}))", text.replace('.', ", ")),
    };
    let units = if facts.is_empty() {
        0
    } else {
        board.memory_slices.unwrap_or(0)
    };
    Ok(format!(
        "    BoardRow {{ key: {:?}, product_names: &{names:?}, pci_devices: &[{}], architecture: {:?}, \
         compute_capability: {capability}, memory_mib: {:?}, compute_slices: {}, placement_units: {units}, \
         needs_reset: {}, engines: {budget:?}, unknown: {unknown:?}, profiles: &[\n{profiles}    ] }},\n",
        board.key,
        pci.join(", "),
        board.architecture,
        board.memory_total_mib.filter(|mib| *mib > 0),
        board.compute_slices,
        board.mig_mode_change_needs_gpu_reset,
    ))
}

/// Why layouts of the board cannot be planned, if so.
fn why_unknown(board: &BoardFacts) -> Option<&'static str> {
    let profiles = board.gpu_instance_profiles.as_deref().unwrap_or_default();
    if profiles.is_empty() {
        return Some("its profiles are not published");
    }
    profiles
        .iter()
        .any(|profile| profile.driver_profile_id.is_none() || profile.placements.is_none())
        .then_some("its placements and driver ids are not published")
}

fn render_profile(
    board: &BoardFacts,
    profile: &ProfileFacts,
    engines: [u8; 5],
    compute_tables: &mut BTreeMap<String, usize>,
) -> Result<String, String> {
    let of = format!("{} {}", board.key, profile.name);
    let (sizes, attribute) = match profile.name.find(['+', '-']) {
        Some(at) => profile.name.split_at(at),
        None => (profile.name.as_str(), ""),
    };
    let memory_gb = sizes
        .split_once("g.")
        .and_then(|(_, gb)| gb.strip_suffix("gb"))
        .ok_or_else(|| format!("{of}: a name without memory"))?;
    let driver_id = profile
        .driver_profile_id
        .ok_or_else(|| format!("{of}: no driver id"))?;
    let placements = profile.placements.as_deref().unwrap_or_default();
    let size = placements.first().map_or(0, |placement| placement.size);
    let starts: Vec<u8> = placements.iter().map(|placement| placement.start).collect();
    let number = compute_tables.len();
    let number = *compute_tables
        .entry(render_compute(&of, profile)?)
        .or_insert(number);
    Ok(format!(
        "        ProfileRow {{ slices: {}, memory_gb: {memory_gb}, attribute: {attribute:?}, driver_id: {driver_id}, \
         nvml_enum: {}, memory_mib: {:?}, sm_count: {:?}, max_instances: {}, engines: {engines:?}, \
         size: {size}, starts: &{starts:?}, compute: C{number}, confidence: {} }},\n",
        profile.slice_count,
        profile.nvml_profile_enum,
        profile.memory_mib,
        profile.sm_count,
        profile.max_instances,
        confidence(board, profile),
    ))
}

fn render_compute(of: &str, profile: &ProfileFacts) -> Result<String, String> {
    let facts = profile
        .compute_instance_profiles
        .as_deref()
        .unwrap_or_default();
    let mut rows = Vec::new();
    for compute in facts {
        // A row without a known maximum is the plain 1c of Hopper's double-memory 1g: nobody has
        // seen it, so it is left out.
        let Some(max_instances) = compute.max_instances else {
            continue;
        };
        let placements = compute
            .placements
            .as_deref()
            .ok_or_else(|| format!("{of}: a compute profile without placements"))?;
        if placements
            .iter()
            .any(|placement| placement.size != compute.slice_count)
        {
            return Err(format!(
                "{of}: a compute placement of another size than its slices"
            ));
        }
        let starts: Vec<u8> = placements.iter().map(|placement| placement.start).collect();
        rows.push(format!(
            "ComputeRow {{ driver_id: {}, nvml_enum: {}, slices: {}, max_instances: {max_instances}, \
             sm_count: {:?}, starts: &{starts:?} }}",
            compute.driver_ci_profile_id.unwrap_or(DOUBLE_MEMORY_COMPUTE),
            compute.nvml_ci_enum.unwrap_or(DOUBLE_MEMORY_COMPUTE),
            compute.slice_count,
            compute.sm_count,
        ));
    }
    Ok(rows.join(", "))
}

/// Copy engines, decoders, encoders, JPEG, OFA of the profile of that kind.
fn engines(catalogue: &Catalogue, board: &BoardFacts, kind: &str) -> Result<[u8; 5], String> {
    let profiles = board.gpu_instance_profiles.as_deref().unwrap_or_default();
    let profile = profiles
        .iter()
        .find(|profile| profile.kind == kind)
        .ok_or_else(|| format!("{} has no profile of kind {kind}", board.key))?;
    let own = [
        profile.copy_engines,
        profile.decoders,
        profile.encoders,
        profile.jpeg,
        profile.ofa,
    ];
    if let [Some(copy), Some(dec), Some(enc), Some(jpeg), Some(ofa)] = own {
        return Ok([copy, dec, enc, jpeg, ofa]);
    }
    let sibling = ENGINE_SIBLINGS
        .iter()
        .find(|(key, _)| *key == board.key)
        .and_then(|(_, sibling)| catalogue.gpus.iter().find(|other| other.key == *sibling))
        .ok_or_else(|| format!("{}: engines of {} are unknown", board.key, profile.name))?;
    let others = engines(catalogue, sibling, kind)?;
    Ok(std::array::from_fn(|at| own[at].unwrap_or(others[at])))
}

/// How placements and maximum are known.
///
/// On a board with status `full` every row of the profile table was seen in a real answer. Where
/// its placements are marked as derived, they come from a capture of the same chip with the same
/// profile table and driver ids (A100-80GB from A100-40GB, H100 PCIe, GH200 and H200 from H100
/// SXM) and from NVIDIA's guide, and every user relies on them: documented, no estimate.
fn confidence(board: &BoardFacts, profile: &ProfileFacts) -> &'static str {
    let grade = |field: &str| profile.prov.get(field).map_or("unknown", |(_, how)| how);
    let full = board.sourcing_status == "full";
    match (grade("placements"), grade("max_instances")) {
        ("verified_nvml_output", "verified_nvml_output") => "Captured",
        ("derived", "verified_nvml_output") if full => "Documented",
        ("derived" | "unknown", _) | (_, "derived" | "unknown") => "Derived",
        _ => "Documented",
    }
}
