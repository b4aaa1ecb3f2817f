// SPDX-License-Identifier: Apache-2.0
//! From a case to a node with its settings.

use config::deviceplugin::{Config, parse};
use geometry::inventory::{ComputeInstance, Gpu, GpuInstance, Inventory};
use geometry::{Engines, catalogue};
use publish::{Ancestor, Fabric, Link, Links, Node, PciFunction, SliceFacts};
use serde_json::{Map, Value, json};
use units::{GpuUuid, MigUuid, Mode, PciDevice, Placement, ProfileName};

/// The node of a case. `described` holds driver version and GPUs.
pub fn node(described: &Value, config: Config) -> Node {
    let mut node = Node {
        config,
        ..Node::default()
    };
    let mut gpus = Vec::new();
    for value in described["gpus"].as_array().unwrap() {
        let gpu = gpu(value, &mut node);
        node.pci.extend(function(value, &gpu.pci_bus_id));
        if let Some(fabric) = value.get("fabric") {
            let fabric = Fabric {
                cluster_uuid: text(&fabric["cluster_uuid"]),
                clique_id: number(&fabric["clique_id"]),
            };
            node.fabrics.insert(gpu.uuid.clone(), fabric);
        }
        gpus.push(gpu);
    }
    let cuda = pair(&described["cuda_version"]);
    node.inventory = Some(Inventory {
        lost: Vec::new(),
        driver_version: text(&described["driver_version"]),
        cuda_version: (u16::from(cuda.0), u16::from(cuda.1)),
        gpus,
    });
    let channels = described["imex_channels"].as_array();
    node.has_imex_channel_0 = channels.is_some_and(|channels| channels.contains(&json!(0)));
    node
}

fn gpu(value: &Value, node: &mut Node) -> Gpu {
    let index: u32 = number(&value["index"]);
    let uuid = value["uuid"].as_str().map(|uuid| uuid.parse().unwrap());
    let uuid = uuid.unwrap_or_else(|| GpuUuid::from_bits(index.into()));
    let name = text(&value["product"]);
    // What is published depends on no board table.
    let board =
        catalogue::by_product_name(&name).unwrap_or_else(|| catalogue::boards().swap_remove(0));
    let mode = value["mig_capable"].as_bool().unwrap();
    let cut = value["mig_enabled"].as_bool().unwrap();
    let bus_id = value["pci_bus_id"].as_str().map(str::to_owned);
    let instances = value["instances"].as_array().unwrap();
    Gpu {
        index,
        minor: value["minor"]
            .as_u64()
            .map(|minor| minor.try_into().unwrap()),
        uuid,
        name,
        pci_bus_id: bus_id.unwrap_or_else(|| format!("00000000:{index:02x}:00.0")),
        pci_device: PciDevice(0),
        pci_subsystem: PciDevice(0),
        numa_node: value["numa_node"]
            .as_u64()
            .map(|node| node.try_into().unwrap()),
        memory_mib: value["memory_mib"].as_u64().unwrap(),
        compute_capability: pair(&value["compute_capability"]),
        mode: mode.then(|| Mode::from_states(cut, cut)),
        board,
        instances: self::instances(instances, node),
        holders: Vec::new(),
    }
}

/// GPU instances as the driver crate lists them: by their place.
fn instances(values: &[Value], node: &mut Node) -> Vec<GpuInstance> {
    let mut instances: Vec<GpuInstance> = Vec::new();
    for (index, value) in (0..).zip(values) {
        let uuid: MigUuid = text(&value["uuid"]).parse().unwrap();
        let profile: ProfileName = text(&value["profile"]).parse().unwrap();
        node.slices.insert(uuid.clone(), facts(index, value));
        let id = number(&value["gi_id"]);
        let compute = ComputeInstance {
            id: number(&value["ci_id"]),
            driver_id: 0,
            profile: profile.clone(),
            placement: None,
            uuid: Some(uuid),
            mig_index: None,
            holders: Vec::new(),
        };
        match instances.iter_mut().find(|instance| instance.id == id) {
            Some(instance) => instance.compute.push(compute),
            None => instances.push(GpuInstance {
                id,
                driver_id: 0,
                profile: profile.gpu_instance(),
                placement: Placement::new(
                    number(&value["placement"]["start"]) as u8,
                    number(&value["placement"]["size"]) as u8,
                ),
                compute: vec![compute],
            }),
        }
    }
    instances.sort_by_key(|instance| instance.placement);
    instances
}

fn facts(index: u32, value: &Value) -> SliceFacts {
    let attributes = &value["attributes"];
    let engine = |key: &str| number(&attributes[key]) as u8;
    let minors = &value["cap_minors"];
    let minors = minors
        .as_object()
        .map(|_| (number(&minors["gi"]), number(&minors["ci"])));
    SliceFacts {
        index,
        multiprocessors: number(&attributes["multiprocessors"]),
        engines: Engines {
            copy: engine("copy"),
            decoders: engine("decoder"),
            encoders: engine("encoder"),
            jpeg: engine("jpeg"),
            ofa: engine("ofa"),
        },
        gpu_slices: number(&attributes["slices_gi"]),
        compute_slices: number(&attributes["slices_ci"]),
        memory_mib: attributes["memory_mib"].as_u64().unwrap(),
        cap_minors: minors,
    }
}

fn function(value: &Value, bus_id: &str) -> Option<PciFunction> {
    let id = |key: &str| {
        let digits = value.get(key)?.as_str()?.strip_prefix("0x")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let capability = value
        .get("vgpu_capability_hex")
        .map(|hex| bytes(&text(hex)));
    Some(PciFunction {
        address: bus_id.strip_prefix("0000").unwrap_or(bus_id).to_owned(),
        vendor: id("pci_vendor")?.try_into().unwrap(),
        class: id("pci_class")?,
        config_bytes: number(&value["pci_config_bytes"]) as usize,
        vendor_capability: capability,
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    let byte = |place: usize| u8::from_str_radix(&hex[place..place + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// How the GPUs of a case are connected.
pub fn links(described: &Value) -> Links {
    let gpus = described["gpus"].as_array().unwrap();
    let topology = &described["topology"];
    let ancestor = |word: &Value| match word.as_str() {
        Some("multiple_pcie_switches") => Ancestor::MultipleSwitches,
        Some("system") => Ancestor::System,
        word => panic!("no such ancestor: {word:?}"),
    };
    let Some(groups) = topology["switch_groups"].as_array() else {
        return Links::default();
    };
    let group = |index: usize| {
        let of = |group: &&Value| group.as_array().unwrap().contains(&json!(index));
        groups.iter().find(of)
    };
    let mut links = Vec::new();
    for one in 0..gpus.len() {
        for other in one + 1..gpus.len() {
            let within = group(one) == group(other);
            let word = if within {
                "within_group"
            } else {
                "across_groups"
            };
            links.push(Link {
                one: text(&gpus[one]["uuid"]).parse().unwrap(),
                other: text(&gpus[other]["uuid"]).parse().unwrap(),
                ancestor: ancestor(&topology[word]),
                nvlinks: number(&topology["nvlinks"]),
            });
        }
    }
    Links::new(links)
}

/// Configuration keys of command line options, as the vectors' README lists them.
const FLAGS: &[(&str, &str)] = &[
    ("mig-strategy", "flags.migStrategy"),
    ("mps-root", "flags.mpsRoot"),
    ("fail-on-init-error", "flags.failOnInitError"),
    ("device-discovery-strategy", "flags.deviceDiscoveryStrategy"),
    ("use-node-feature-api", "flags.useNodeFeatureAPI"),
    ("driver-root", "flags.nvidiaDriverRoot"),
    ("gdrcopy-enabled", "flags.gdrcopyEnabled"),
    ("gds-enabled", "flags.gdsEnabled"),
    ("mofed-enabled", "flags.mofedEnabled"),
    ("pass-device-specs", "flags.plugin.passDeviceSpecs"),
    ("device-list-strategy", "flags.plugin.deviceListStrategy"),
    ("device-id-strategy", "flags.plugin.deviceIDStrategy"),
    ("cdi-annotation-prefix", "flags.plugin.cdiAnnotationPrefix"),
    ("driver-root-ctr-path", "flags.plugin.containerDriverRoot"),
    (
        "shared-devices-allocation-policy",
        "flags.plugin.sharedDevicesAllocationPolicy",
    ),
    ("imex-channel-ids", "imex.channelIDs"),
    ("imex-required", "imex.required"),
];

/// The settings of a case: its file, the flags over it, and the strategy in force.
pub fn settings(case: &Value, file: &Value) -> Result<Config, String> {
    let mut document = without_additions(file);
    let mut flags = case["flags"].as_object().unwrap().clone();
    flags.insert("mig-strategy".to_owned(), case["mig_strategy"].clone());
    for (flag, value) in flags {
        let known = FLAGS.iter().find(|(name, _)| *name == flag);
        let (_, path) = known.ok_or_else(|| format!("there is no flag {flag}"))?;
        // Only for feature discovery: the driver is not asked.
        if value != "vfio" {
            let place = path
                .split('.')
                .fold(&mut document, |value, key| &mut value[key]);
            *place = value;
        }
    }
    let parsed = parse("case", &document.to_string()).into_config();
    parsed.map_err(|problems| problems.to_string())
}

/// A configuration file without `rename` and `devices`, which the recorded programs drop.
fn without_additions(file: &Value) -> Value {
    let mut document = match file {
        Value::Null => Value::Object(Map::new()),
        file => file.clone(),
    };
    let entries = document.pointer_mut("/sharing/timeSlicing/resources");
    for entry in entries.and_then(Value::as_array_mut).into_iter().flatten() {
        for key in ["rename", "devices"] {
            entry.as_object_mut().unwrap().remove(key);
        }
    }
    document
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub fn number(value: &Value) -> u32 {
    value.as_u64().unwrap().try_into().unwrap()
}

fn pair(value: &Value) -> (u8, u8) {
    let (major, minor) = value.as_str().unwrap().split_once('.').unwrap();
    (major.parse().unwrap(), minor.parse().unwrap())
}
