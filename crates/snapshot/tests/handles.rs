// SPDX-License-Identifier: Apache-2.0
//! Who has capability devices open, on a folder that looks as `/proc` does.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use snapshot::{CapHandle, cap_handles};

/// A folder that is gone afterwards.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// A process as `/proc` shows it.
    fn process(&self, pid: &str, name: &str, opened: &[&str]) {
        let folder = self.0.join(pid);
        fs::create_dir_all(folder.join("fd")).unwrap();
        fs::write(folder.join("comm"), format!("{name}\n")).unwrap();
        for (number, path) in opened.iter().enumerate() {
            symlink(path, folder.join("fd").join(number.to_string())).unwrap();
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn programs_that_have_a_slice_open_are_found_in_any_root() {
    let proc = Scratch::new("handles-proc");
    let cap = "/dev/nvidia-caps/nvidia-cap12";
    proc.process("7", "python3", &["/dev/null", cap, cap]);
    proc.process(
        "8",
        "exporter",
        &["/run/nvidia/driver/dev/nvidia-caps/nvidia-cap13"],
    );
    let others = [
        "/dev/nvidia-caps/nvidia-cap30",
        "/dev/nvidia-cap12",
        "/dev/nvidia-caps/nvidia-capX",
        "socket:[12]",
    ];
    proc.process("9", "other", &others);
    proc.process("self", "not a process", &[cap]);
    let handle = |minor, pid, name: &str| CapHandle {
        minor,
        pid,
        name: name.to_owned(),
    };
    assert_eq!(
        cap_handles(&proc.0, &BTreeSet::from([12, 13])).unwrap(),
        BTreeSet::from([handle(12, 7, "python3"), handle(13, 8, "exporter")])
    );
    // Where nobody can be looked up, nobody is not the answer.
    cap_handles(&proc.0.join("nowhere"), &BTreeSet::from([12])).unwrap_err();
}

#[test]
fn the_kernel_shows_what_a_process_has_open() {
    // A file in place of the device: both are shown by their paths.
    let folder = Scratch::new("handles-device");
    let caps = folder.0.join("nvidia-caps");
    fs::create_dir(&caps).unwrap();
    let file = fs::File::create(caps.join("nvidia-cap4711")).unwrap();
    let find = || cap_handles(Path::new("/proc"), &BTreeSet::from([4711])).unwrap();
    let pids: Vec<u32> = find().iter().map(|handle| handle.pid).collect();
    assert_eq!(pids, [std::process::id()]);
    drop(file);
    assert_eq!(find(), BTreeSet::new());
}
