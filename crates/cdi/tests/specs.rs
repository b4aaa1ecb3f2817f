// SPDX-License-Identifier: Apache-2.0
//! Specifications: as NVIDIA's plugin writes them, and written safely.

#![allow(clippy::panic, clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cdi::{DriverFiles, Folder, Hooks, Input, Spec, gpus};
// What the shared module `node` stands on.
use serde_json::Value;
use {geometry as _, units as _};

#[path = "../../publish/tests/vectors/node.rs"]
#[allow(dead_code)]
mod node;

/// A folder that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("cdi-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A driver root with some libraries of that version.
fn driver(version: &str) -> Scratch {
    let root = Scratch::new(&format!("driver-{version}"));
    let folder = "usr/lib/x86_64-linux-gnu";
    for name in ["libcuda.so", "libnvidia-ml.so"] {
        root.put(&format!("{folder}/{name}.{version}"), "");
        let link = root.0.join(format!("{folder}/{name}.1"));
        symlink(format!("{name}.{version}"), link).unwrap();
    }
    root.put(
        &format!("{folder}/libnvidia-ptxjitcompiler.so.{version}"),
        "",
    );
    // Of another version, and not the driver's.
    root.put(&format!("{folder}/libcuda.so.1.2.3"), "");
    root.put(&format!("{folder}/libc.so.{version}"), "");
    root
}

fn recorded(case: &str) -> (Value, Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/deviceplugin");
    let text = fs::read_to_string(path.join(format!("{case}.json"))).unwrap();
    let case: Value = serde_json::from_str(&text).unwrap();
    let steps = case["steps"].as_array().unwrap();
    let written = |step: &&Value| {
        step["request"]["event"] == "cdi_file_written"
            && step["response"]["path"]
                .as_str()
                .unwrap()
                .ends_with("-gpu.json")
    };
    let spec = steps.iter().find(written).unwrap()["response"]["spec"].clone();
    (case, spec)
}

/// What a specification gives by device name, without numbers of devices.
fn given(spec: &Value) -> BTreeMap<String, BTreeSet<(String, String)>> {
    let nodes = |edits: &Value| {
        let nodes = edits["deviceNodes"].as_array().cloned().unwrap_or_default();
        let pair = |node: Value| {
            assert_eq!(node["permissions"], "rwm");
            let text = |key: &str| node[key].as_str().unwrap().to_owned();
            // The original names the path on the node only where it is another.
            let host = node["hostPath"].as_str().map(str::to_owned);
            (text("path"), host.unwrap_or_else(|| text("path")))
        };
        nodes.into_iter().map(pair).collect()
    };
    let devices = spec["devices"].as_array().unwrap().iter();
    let device = |device: &Value| {
        let name = device["name"].as_str().unwrap().to_owned();
        (name, nodes(&device["containerEdits"]))
    };
    let common = ("(all)".to_owned(), nodes(&spec["containerEdits"]));
    devices.map(device).chain([common]).collect()
}

#[test]
fn devices_and_nodes_are_those_of_the_original() {
    for case in ["alloc.cdi-mig", "alloc.cdi-annotations"] {
        let (case, spec) = recorded(case);
        let config = node::settings(&case, &case["config"]).unwrap();
        let reading = node::node(&case["node"], config);
        // Control nodes are looked for below the driver root there.
        let control = case["node"]["driver_root_device_nodes"].as_array().unwrap();
        let control: Vec<String> = control
            .iter()
            .map(|it| it.as_str().unwrap().to_owned())
            .collect();
        let root = case["flags"]["driver-root"].as_str().unwrap_or("/");
        let ours = gpus(&Input {
            hardware: &publish::hardware(&reading),
            by_index: false,
            control_nodes: &control,
            dev_root: root,
            driver_root: root,
            files: &DriverFiles::default(),
            driver_version: "",
            hooks: &Hooks::default(),
        });
        let mut ours = given(&serde_json::to_value(&ours).unwrap());
        let recorded = given(&spec);
        // GPUs that are cut have an entry here too.
        ours.retain(|name, _| recorded.contains_key(name));
        assert_eq!(ours, recorded);
    }
}

#[test]
fn libraries_come_with_the_names_that_programs_ask_for() {
    let root = driver("550.163.01");
    let files = DriverFiles::find(&root.0, "550.163.01");
    let made = |program: &str, off: &[&str]| {
        gpus(&Input {
            hardware: &[],
            by_index: false,
            control_nodes: &[],
            dev_root: "/",
            driver_root: "/run/nvidia/driver",
            files: &files,
            driver_version: "550.163.01",
            hooks: &Hooks {
                program: program.to_owned(),
                off: off.iter().map(|name| (*name).to_owned()).collect(),
            },
        })
    };
    let folder = "/usr/lib/x86_64-linux-gnu";
    let to = |spec: &Spec| -> Vec<String> {
        let mounts = spec.container_edits.mounts.iter();
        mounts
            .map(|it| it.container_path.replace(folder, ""))
            .collect()
    };
    let plain = made("", &[]);
    assert_eq!(
        to(&plain),
        [
            "/libcuda.so.550.163.01",
            "/libcuda.so.1",
            "/libcuda.so",
            "/libnvidia-ml.so.550.163.01",
            "/libnvidia-ml.so.1",
            "/libnvidia-ptxjitcompiler.so.550.163.01",
        ]
    );
    assert_eq!(plain.container_edits.hooks, []);
    let from = &plain.container_edits.mounts[1].host_path;
    assert_eq!(
        *from,
        format!("/run/nvidia/driver{folder}/libcuda.so.550.163.01")
    );
    let hooked = made("/usr/bin/nvidia-ctk", &[]);
    assert_eq!(to(&hooked).len(), 3);
    assert_eq!(
        hooks(&hooked),
        [
            format!(
                "nvidia-ctk hook create-symlinks --link libcuda.so.550.163.01::{folder}/libcuda.so.1 \
                 --link libcuda.so.1::{folder}/libcuda.so \
                 --link libnvidia-ml.so.550.163.01::{folder}/libnvidia-ml.so.1"
            ),
            "nvidia-ctk hook enable-cuda-compat --host-driver-version=550.163.01".to_owned(),
            format!("nvidia-ctk hook update-ldcache --folder {folder}"),
            "nvidia-ctk hook disable-device-node-modification".to_owned(),
            "nvidia-ctk hook update-application-profile".to_owned(),
        ]
    );
    // Links that no hook makes are mounts.
    let off = ["create-symlinks", "enable-cuda-compat"];
    let fewer = made("/usr/bin/nvidia-cdi-hook", &off);
    assert_eq!(to(&fewer).len(), 6);
    let ldcache = format!("nvidia-cdi-hook update-ldcache --folder {folder}");
    assert_eq!(hooks(&fewer)[0], ldcache);
    assert_eq!(hooks(&fewer).len(), 3);
    assert_eq!(hooks(&made("/usr/bin/nvidia-ctk", &["all"])), [""; 0]);
}

fn hooks(spec: &Spec) -> Vec<String> {
    let hooks = spec.container_edits.hooks.iter();
    hooks.map(|hook| hook.args.join(" ")).collect()
}

#[test]
fn libraries_are_found_where_distributions_put_them() {
    let root = Scratch::new("folders");
    let lib = "usr/lib/x86_64-linux-gnu";
    for path in [
        "nvidia/current/libcuda.so.1.2",
        "nvidia/current/libGLX_nvidia.so.1.2",
        "vdpau/libvdpau_nvidia.so.1.2",
    ] {
        root.put(&format!("{lib}/{path}"), "");
    }
    // All the same file: the installer made the second.
    for link in ["libGLX_nvidia.so.0", "libGLX_indirect.so.0"] {
        let link = root.0.join(lib).join("nvidia/current").join(link);
        symlink("libGLX_nvidia.so.1.2", link).unwrap();
    }
    // The same folder once more.
    symlink(lib, root.0.join("lib64")).unwrap();
    let files = DriverFiles::find(&root.0, "1.2");
    let spec = gpus(&Input {
        hardware: &[],
        by_index: false,
        control_nodes: &[],
        dev_root: "/",
        driver_root: "/",
        files: &files,
        driver_version: "1.2",
        hooks: &Hooks::default(),
    });
    let mounts = spec.container_edits.mounts.iter();
    let mounts: BTreeSet<&str> = mounts
        .map(|it| it.container_path.rsplit('/').next().unwrap())
        .collect();
    let expected = BTreeSet::from([
        "libcuda.so.1.2",
        "libGLX_nvidia.so.1.2",
        "libGLX_nvidia.so.0",
        "libGLX_indirect.so.0",
        "libvdpau_nvidia.so.1.2",
    ]);
    assert_eq!(mounts, expected);
    assert_eq!(spec.container_edits.mounts.len(), expected.len());
    let folder = format!("NVIDIA_CTK_LIBCUDA_DIR=/{lib}/nvidia/current");
    assert!(spec.container_edits.env.contains(&folder));
}

#[test]
fn programs_firmware_and_sockets_go_along() {
    let root = Scratch::new("files");
    for path in [
        "usr/bin/nvidia-smi",
        "lib/firmware/nvidia/550.163.01/gsp_tu10x.bin",
        "lib/firmware/nvidia/550.163.01/gsp_ga10x.bin",
        "lib/firmware/nvidia/550.163.01/notes.txt",
        "lib/firmware/nvidia/535.1/gsp_ga10x.bin",
        "run/nvidia-persistenced/socket",
    ] {
        root.put(path, "");
    }
    let files = DriverFiles::find(&root.0, "550.163.01");
    let spec = gpus(&Input {
        hardware: &[],
        by_index: false,
        control_nodes: &[],
        dev_root: "/",
        driver_root: "/run/nvidia/driver",
        files: &files,
        driver_version: "550.163.01",
        hooks: &Hooks::default(),
    });
    let mounts = spec.container_edits.mounts.iter();
    let mounts: Vec<(&str, bool)> = mounts
        .map(|it| (&*it.container_path, it.options.iter().any(|it| it == "ro")))
        .collect();
    assert_eq!(
        mounts,
        [
            ("/usr/bin/nvidia-smi", true),
            ("/lib/firmware/nvidia/550.163.01/gsp_ga10x.bin", true),
            ("/lib/firmware/nvidia/550.163.01/gsp_tu10x.bin", true),
            ("/run/nvidia-persistenced/socket", false),
        ]
    );
}

#[test]
fn a_driver_that_is_not_there_gives_nothing() {
    let root = Scratch::new("empty");
    assert_eq!(DriverFiles::find(&root.0, "550.1"), DriverFiles::default());
}

/// Devices of these names, each with a device node of its own.
fn spec(names: &[&str]) -> Spec {
    let device = |name: &&str| {
        let node = cdi::DeviceNode {
            path: format!("/dev/{name}"),
            ..cdi::DeviceNode::default()
        };
        cdi::Device {
            name: (*name).to_owned(),
            container_edits: cdi::Edits {
                device_nodes: vec![node],
                ..cdi::Edits::default()
            },
        }
    };
    Spec {
        cdi_version: "0.5.0".to_owned(),
        kind: "k8s.device-plugin.nvidia.com/gpu".to_owned(),
        devices: names.iter().map(device).collect(),
        ..Spec::default()
    }
}

const FILE: &str = "k8s.device-plugin.nvidia.com-gpu.json";

fn names(folder: &Path) -> Vec<String> {
    let text = fs::read(folder.join(FILE)).unwrap();
    let spec: Spec = serde_json::from_slice(&text).unwrap();
    spec.devices.into_iter().map(|device| device.name).collect()
}

#[test]
fn a_file_is_replaced_whole_and_only_if_it_changed() {
    let scratch = Scratch::new("replace");
    let at = scratch.0.join("cdi");
    let folder = Folder::at(&at);
    let none = BTreeSet::new();
    // Left by somebody who was killed.
    scratch.put(&format!("cdi/{FILE}.new"), "half");
    let left = at.join(format!("{FILE}.new"));
    fs::set_permissions(&left, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(folder.write(&spec(&["a", "b"]), &none).unwrap());
    assert!(!folder.write(&spec(&["a", "b"]), &none).unwrap());
    assert_eq!(names(&at), ["a", "b"]);
    let mode = fs::metadata(at.join(FILE)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o644);
    // What a container has stays until it is gone.
    let keep = BTreeSet::from(["b".to_owned(), "x".to_owned()]);
    assert!(folder.write(&spec(&["c"]), &keep).unwrap());
    assert_eq!(names(&at), ["c", "b"]);
    assert!(folder.write(&spec(&["c"]), &none).unwrap());
    assert_eq!(names(&at), ["c"]);
    assert_eq!(fs::read_dir(&at).unwrap().count(), 1);
    // Runtimes take a file without devices as broken.
    assert!(folder.write(&spec(&[]), &none).unwrap());
    assert!(!folder.write(&spec(&[]), &none).unwrap());
    assert_eq!(fs::read_dir(&at).unwrap().count(), 0);
}

#[test]
fn a_slice_that_is_gone_does_not_lead_to_the_one_in_its_place() {
    let scratch = Scratch::new("place");
    let folder = Folder::at(&scratch.0);
    let keep = BTreeSet::from(["old".to_owned(), "b".to_owned()]);
    folder.write(&spec(&["old", "b"]), &keep).unwrap();
    let mut next = spec(&["old"]);
    next.devices[0].name = "new".to_owned();
    assert!(folder.write(&next, &keep).unwrap());
    assert_eq!(names(&scratch.0), ["new", "b"]);
}

#[test]
fn what_the_original_left_is_taken_over() {
    let scratch = Scratch::new("leftover");
    let none = BTreeSet::new();
    let folder = Folder::at(&scratch.0);
    scratch.put(FILE, "{\"kind\": 7, half a file");
    assert!(folder.write(&spec(&["a"]), &none).unwrap());
    assert_eq!(names(&scratch.0), ["a"]);
    // As old releases wrote it: only what must be there.
    let node = r#"{"path":"/dev/nvidia3","major":195,"fileMode":420}"#;
    let mount = r#"{"hostPath":"/lib/x","containerPath":"/lib/x"}"#;
    let hook = r#"{"hookName":"createContainer","path":"/usr/bin/nvidia-ctk","timeout":1}"#;
    let edits = format!(r#"{{"deviceNodes":[{node}],"mounts":[{mount}],"hooks":[{hook}]}}"#);
    scratch.put(
        FILE,
        &format!(
            r#"{{"cdiVersion":"0.5.0","kind":"k8s.device-plugin.nvidia.com/gpu",
              "devices":[{{"name":"held","containerEdits":{edits}}}],"annotations":{{}}}}"#
        ),
    );
    let held = BTreeSet::from(["held".to_owned()]);
    assert!(folder.write(&spec(&["a"]), &held).unwrap());
    assert_eq!(names(&scratch.0), ["a", "held"]);
    let text = fs::read(scratch.0.join(FILE)).unwrap();
    let text: Value = serde_json::from_slice(&text).unwrap();
    let kept = &text["devices"][1]["containerEdits"];
    assert_eq!(
        kept["deviceNodes"][0],
        serde_json::json!({"path": "/dev/nvidia3"})
    );
    assert_eq!(kept["mounts"][0]["hostPath"], "/lib/x");
}

#[test]
fn other_files_with_the_same_device_are_told() {
    let scratch = Scratch::new("conflicts");
    let folder = Folder::at(&scratch.0);
    let ours = spec(&["a", "b"]);
    folder.write(&ours, &BTreeSet::new()).unwrap();
    let other = serde_json::to_string(&spec(&["z", "b"])).unwrap();
    scratch.put("somebody.json", &other);
    scratch.put(
        "somebody.yaml",
        "cdiVersion: 0.5.0\nkind: k8s.device-plugin.nvidia.com/gpu\ndevices:\n- name: a\n",
    );
    // Runtimes pass over these: another kind, another ending, no specification.
    let kind = other.replace("k8s.device-plugin.", "");
    scratch.put("kind.json", &kind);
    scratch.put("somebody.json.bak", &other);
    scratch.put("no-spec.yaml", "a: [");
    let conflict = |file: &str, device: &str| (scratch.0.join(file), device.to_owned());
    assert_eq!(
        folder.conflicts(&ours),
        [
            conflict("somebody.json", "b"),
            conflict("somebody.yaml", "a")
        ]
    );
}

#[test]
fn a_folder_that_cannot_be_written_is_named_and_nothing_is_lost() {
    let scratch = Scratch::new("blocked");
    scratch.put("file", "");
    let folder = Folder::at(scratch.0.join("file/cdi"));
    let error = folder.write(&spec(&["a"]), &BTreeSet::new()).unwrap_err();
    assert!(error.to_string().contains("file/cdi"), "{error}");
}
