// SPDX-License-Identifier: Apache-2.0
//! A simulated machine, read into a node, and what is published of it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::deviceplugin::MigStrategy;
use gpu::{Driver, Instances, MigMode, ReadGpus};
use nvmlsim::{Handle, Options, Simulated, World, device_files};
use publish::PreferenceRequest;
use snapshot::{Reader, Reading, Roots, remove_features, write_features};

/// A simulated machine with its files in a folder, which is gone afterwards.
struct Machine {
    folder: PathBuf,
    driver: Driver,
    reader: Reader,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Machine {
    /// Eight H100 with all that Linux shows of them.
    fn new(name: &str) -> Self {
        let spec = "8xH100-80GB-SXM".parse().unwrap();
        Self::of(name, World::create(&spec, &Options::default()))
    }

    /// That machine with all that Linux shows of it.
    fn of(name: &str, world: World) -> Self {
        let mut machine = Self::bare(name, world.clone());
        machine.put(
            "proc/nvidia-caps/mig-minors",
            &device_files::mig_minors(&world),
        );
        let is_control = |path: &String| !path.contains("nvidia-caps");
        for path in device_files::paths(&world)
            .iter()
            .filter(|path| is_control(path))
        {
            machine.put(path, "");
        }
        for gpu in &world.gpus {
            let function = format!("sys/bus/pci/devices/0000:{:02x}:00.0", gpu.bus);
            machine.put(&format!("{function}/vendor"), "0x10de\n");
            machine.put(&format!("{function}/class"), "0x030200\n");
            machine.put(&format!("{function}/numa_node"), "1\n");
            machine.put(&format!("{function}/config"), &"\0".repeat(4096));
        }
        machine.put("sys/bus/pci/devices/0000:00:1f.0/vendor", "0x8086\n");
        machine.put("sys/bus/pci/devices/0000:00:1f.0/class", "0x060100\n");
        machine.put("product", "DGXH100\n");
        // What was read while the files came is not kept.
        machine.reader = Reader::new(machine.roots());
        machine
    }

    fn bare(name: &str, world: World) -> Self {
        let folder = format!("snapshot-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        fs::create_dir_all(&folder).unwrap();
        let simulated = Arc::new(Simulated::new(Handle::in_memory(world)));
        let mut machine = Self {
            folder,
            driver: Driver::new(simulated).unwrap(),
            reader: Reader::new(Roots {
                sys: PathBuf::new(),
                proc_driver: PathBuf::new(),
                dev: PathBuf::new(),
            }),
        };
        machine.reader = Reader::new(machine.roots());
        machine
    }

    fn roots(&self) -> Roots {
        Roots {
            sys: self.folder.join("sys"),
            proc_driver: self.folder.join("proc"),
            dev: self.folder.clone(),
        }
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Cuts every GPU into as many of the smallest profile as there are.
    fn cut(&self) {
        for gpu in self.driver.inventory().unwrap().gpus {
            self.driver.set_mode(&gpu.uuid, true).unwrap();
            let profile = &gpu.board.profiles[0];
            let whole = profile.full_compute().unwrap().driver_id;
            for place in &profile.placements {
                let instances: &dyn Instances = &self.driver;
                let id = instances
                    .create_gpu_instance(&gpu.uuid, profile.driver_id, *place)
                    .unwrap();
                instances
                    .create_compute_instance(&gpu.uuid, id, whole, None)
                    .unwrap();
            }
        }
    }

    fn read(&mut self, strategy: MigStrategy) -> Reading {
        let product = self.folder.join("product");
        let mut reading = self.reader.read(&self.driver, &product).unwrap();
        reading.node.config.flags.mig_strategy = strategy;
        reading
    }

    /// Calls of the driver that a reading takes.
    fn calls_of_a_reading(&mut self) -> BTreeMap<&'static str, u64> {
        let before = self.driver.calls_by_name();
        self.read(MigStrategy::Mixed);
        let mut calls = self.driver.calls_by_name();
        for (name, count) in before {
            *calls.get_mut(name).unwrap() -= count;
        }
        calls.retain(|_, count| *count > 0);
        calls
    }
}

#[test]
fn a_cut_machine_is_published_from_one_reading() {
    let mut machine = Machine::new("cut");
    machine.cut();
    let reading = machine.read(MigStrategy::Mixed);
    assert_eq!(reading.findings, []);
    assert_eq!(reading.control_nodes.len(), 4);
    assert!(!reading.node.has_imex_channel_0);
    assert_eq!(reading.node.pci.len(), 8);

    let (resources, findings) = publish::resources(&reading.node);
    assert_eq!(findings, []);
    let counts: Vec<_> = resources
        .iter()
        .map(|it| (it.name.as_str(), it.devices.len()))
        .collect();
    assert_eq!(counts, [("nvidia.com/mig-1g.10gb", 56)]);
    for (place, hardware) in publish::hardware(&reading.node).iter().enumerate() {
        let (gpu, slice) = (place / 8, place % 8);
        let index = match slice {
            0 => gpu.to_string(),
            _ => format!("{gpu}:{}", slice - 1),
        };
        assert_eq!(hardware.index(), index);
        assert_eq!(hardware.nodes.len(), if slice == 0 { 1 } else { 3 });
        // The driver's word counts, not that of Linux.
        assert_eq!(hardware.numa_node, Some(gpu as u32 / 4));
    }

    let (labels, findings) = publish::labels(&reading.node);
    assert_eq!(findings, []);
    let expected = [
        ("gpu.machine", "DGXH100"),
        ("gpu.mode", "compute"),
        ("gpu.count", "8"),
        ("gpu.replicas", "0"),
        ("gpu.family", "hopper"),
        ("mig.capable", "true"),
        ("mig.strategy", "mixed"),
        ("mig-1g.10gb.count", "56"),
        ("mig-1g.10gb.slices.gi", "1"),
        ("mig-1g.10gb.multiprocessors", "16"),
        ("mig-1g.10gb.product", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"),
        ("vgpu.present", "false"),
    ];
    for (key, value) in expected {
        let label = labels.get(&format!("nvidia.com/{key}"));
        assert_eq!(label.map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn what_cannot_change_is_asked_once() {
    let mut machine = Machine::new("calls");
    machine.cut();
    let first = machine.calls_of_a_reading();
    assert_eq!(first.get("nvmlDeviceGetTopologyCommonAncestor"), Some(&28));
    assert_eq!(first.get("nvmlDeviceGetAttributes_v2"), Some(&56));
    let again = machine.calls_of_a_reading();
    assert_eq!(again.get("nvmlDeviceGetTopologyCommonAncestor"), None);
    assert_eq!(again.get("nvmlDeviceGetAttributes_v2"), None);

    // A slice that goes lets the index of others move, which costs no call.
    let gpu = machine.driver.inventory().unwrap().gpus.remove(3);
    let gone = &gpu.instances[0];
    let instances: &dyn Instances = &machine.driver;
    instances
        .destroy_compute_instance(&gpu.uuid, gone.id, gone.compute[0].id)
        .unwrap();
    instances.destroy_gpu_instance(&gpu.uuid, gone.id).unwrap();
    let after = machine.calls_of_a_reading();
    let lookups = |calls: &BTreeMap<&str, u64>| calls["nvmlDeviceGetHandleByUUID"];
    assert_eq!(lookups(&after), lookups(&again));
    assert_eq!(after.get("nvmlDeviceGetAttributes_v2"), None);
    let reading = machine.read(MigStrategy::Mixed);
    let slices = publish::hardware(&reading.node)
        .into_iter()
        .filter(|it| it.gpu == gpu.uuid);
    let names: Vec<String> = slices.map(|it| it.index()).collect();
    assert_eq!(names, ["3", "3:0", "3:1", "3:2", "3:3", "3:4", "3:5"]);
}

#[test]
fn gpus_that_share_a_switch_are_preferred() {
    let mut machine = Machine::new("links");
    let reading = machine.read(MigStrategy::None);
    let (resources, _) = publish::resources(&reading.node);
    assert_eq!(resources[0].devices.len(), 8);
    let hardware = publish::hardware(&reading.node);
    let uuid = |index: usize| hardware[index].uuid().to_owned();
    let available: Vec<String> = [1, 3, 5, 6, 7].map(uuid).into();
    let preferred = publish::preferred(
        &resources[0],
        &reading.links,
        reading
            .node
            .config
            .flags
            .plugin
            .shared_devices_allocation_policy,
        &PreferenceRequest {
            available: &available,
            required: &[],
            size: 2,
        },
    );
    assert_eq!(preferred.unwrap(), [uuid(6), uuid(7)]);
}

#[test]
fn what_linux_does_not_show_is_unknown() {
    let world = World::create(&"2xH100-80GB-SXM".parse().unwrap(), &Options::default());
    let mut machine = Machine::bare("bare", world);
    machine.cut();
    let reading = machine.read(MigStrategy::Single);
    assert_eq!(reading.findings, []);
    assert_eq!(reading.control_nodes, [""; 0]);
    assert_eq!(reading.node.pci, []);
    assert_eq!(reading.node.machine_type, None);
    // Slices are there; which device nodes they have is not known.
    let hardware = publish::hardware(&reading.node);
    assert_eq!(hardware.len(), 16);
    let without = hardware.iter().filter(|it| it.nodes.is_empty());
    assert_eq!(without.count(), 14);
    let (labels, _) = publish::labels(&reading.node);
    assert_eq!(labels["nvidia.com/gpu.machine"], "unknown");
    assert_eq!(labels["nvidia.com/gpu.mode"], "unknown");
}

#[test]
fn labels_go_into_a_file_whole() {
    let machine = Machine::new("file");
    let path = machine.folder.join("features");
    let labels = BTreeMap::from([("b", "2"), ("a", "1")]);
    let labels = labels
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.to_owned()));
    let labels: BTreeMap<String, String> = labels.collect();
    write_features(&path, &labels).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "a=1\nb=2\n");
    let about = || fs::metadata(&path).unwrap();
    assert_eq!(about().mode() & 0o7777, 0o644);
    // A file that says the same already is left alone, another one replaced.
    let inode = about().ino();
    write_features(&path, &labels).unwrap();
    assert_eq!(about().ino(), inode);
    write_features(&path, &BTreeMap::new()).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    let names = |folder: &Path| fs::read_dir(folder).unwrap().count();
    let before = names(&machine.folder);
    write_features(&path, &labels).unwrap();
    assert_eq!(names(&machine.folder), before);
    for _ in 0..2 {
        remove_features(&path).unwrap();
        assert!(!path.exists());
    }
    let nowhere = machine.folder.join("nowhere/features");
    assert!(write_features(&nowhere, &labels).is_err());
}

/// Labels that the program of NVIDIA's set on a node, as recorded.
fn recorded(case: &str) -> (serde_json::Value, BTreeMap<String, String>) {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/labels");
    let text = fs::read_to_string(vectors.join(format!("{case}.json"))).unwrap();
    let case: serde_json::Value = serde_json::from_str(&text).unwrap();
    let labels = case["expected"]["labels"].as_object().unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let labels = labels.iter().map(|(key, value)| (key.clone(), text(value)));
    let labels = labels.collect();
    (case, labels)
}

#[test]
fn labels_are_those_that_the_original_set_on_a_like_node() {
    let all_cut = [
        ("a100x2-all1g.none", "2xA100-80GB", MigStrategy::None),
        ("a100x2-all1g.single", "2xA100-80GB", MigStrategy::Single),
        ("a100x2-all1g.mixed", "2xA100-80GB", MigStrategy::Mixed),
    ];
    let whole = [
        ("a100x2-off.none", "2xA100-80GB", MigStrategy::None),
        ("a100x2-off.mixed", "2xA100-80GB", MigStrategy::Mixed),
        ("t4.none", "1xT4", MigStrategy::None),
    ];
    let cases = all_cut.map(|case| (case, true)).into_iter();
    for ((case, spec, strategy), is_cut) in cases.chain(whole.map(|case| (case, false))) {
        let (told, expected) = recorded(case);
        let options = Options {
            driver_version: told["driver_version"].as_str().unwrap().to_owned(),
            ..Options::default()
        };
        let mut world = World::create(&spec.parse().unwrap(), &options);
        if is_cut {
            for gpu in &mut world.gpus {
                (gpu.mig_current, gpu.mig_pending) = (true, true);
            }
        }
        let mut machine = Machine::of(case, world);
        machine.put("product", told["machine_type"].as_str().unwrap());
        if is_cut {
            machine.cut();
        }
        let reading = machine.read(strategy);
        let (labels, findings) = publish::labels(&reading.node);
        assert_eq!(findings, [], "{case}");
        assert_eq!(labels, expected, "{case}");
    }
}

#[test]
fn odd_files_are_facts_that_are_not_known() {
    let mut machine = Machine::new("odd");
    let functions = machine.folder.join("sys/bus/pci/devices");
    let mut folders: Vec<PathBuf> = fs::read_dir(&functions)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| fs::read_to_string(path.join("vendor")).unwrap() == "0x10de\n")
        .collect();
    folders.sort();
    // A list of capabilities in a circle, one that leads outside, one whose length does; no
    // configuration space, a short one; a class that is no number.
    let with = |at: &[(usize, u8)]| {
        let mut config = vec![0; 256];
        at.iter().for_each(|(place, byte)| config[*place] = *byte);
        config
    };
    let circle = with(&[(0x34, 0x40), (0x40, 1), (0x41, 0x40)]);
    let outside = with(&[(0x34, 0xff), (0xff, 9)]);
    let long = with(&[(0x34, 0xf0), (0xf0, 9), (0xf2, 0xff)]);
    for (folder, config) in folders.iter().zip([circle, outside, long, vec![0xff; 256]]) {
        fs::write(folder.join("config"), config).unwrap();
    }
    fs::remove_file(folders[4].join("config")).unwrap();
    fs::write(folders[5].join("config"), [0xff; 16]).unwrap();
    fs::write(folders[6].join("class"), "graphics\n").unwrap();
    fs::write(folders[7].join("vendor"), [0xff; 4]).unwrap();
    machine.put(
        "proc/nvidia-caps/mig-minors",
        "gpu0/gi99999999999/access 1\n",
    );
    let reading = machine.read(MigStrategy::None);
    assert_eq!(reading.findings, []);
    let found = reading.node.pci.iter();
    assert!(found.clone().all(|it| it.vendor_capability.is_none()));
    assert_eq!(found.count(), 6);
    // A space without capabilities may not be all: nothing is said of vGPU.
    let (labels, _) = publish::labels(&reading.node);
    assert_eq!(labels.get("nvidia.com/vgpu.present"), None);
    assert_eq!(labels["nvidia.com/gpu.mode"], "unknown");
}
