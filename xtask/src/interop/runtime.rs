// SPDX-License-Identifier: Apache-2.0
//! Our CDI specifications under the CDI project's own code, by which container runtimes read them.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;

use cdi::{DriverFiles, Folder, Hooks, Input, Library, Spec};
use serde::Deserialize;

use super::Findings;
use super::clients::Client;
use super::machine::Machine;
use crate::error::Error;

/// What their code says of a folder.
#[derive(Deserialize)]
struct Said {
    /// Devices that containers can have, by full name.
    devices: BTreeSet<String>,
    errors: Vec<String>,
    /// Oldest version of the format that has all that a specification uses.
    needs: BTreeSet<String>,
}

/// Writes the specifications of all GPUs and slices of the machine, and compares what they are
/// taken for.
///
/// # Errors
/// If the machine cannot be read, nothing can be written, or their program fails.
pub fn check(client: &Client, machine: &Machine, work: &Path) -> Result<Findings, Error> {
    let specs = [gpus(machine, work)?, cdi::imex_channel("/")];
    let said = client.run(&[write(&specs, work)?], &[])?;
    let said: Said = serde_json::from_str(&said).map_err(|error| failed(&error))?;
    Ok(differences(&specs, &said))
}

/// Holds the same specifications against the schema of the format.
///
/// # Errors
/// As [`check`].
pub fn check_schema(client: &Client, machine: &Machine, work: &Path) -> Result<Findings, Error> {
    let specs = [gpus(machine, work)?, cdi::imex_channel("/")];
    let said = client.run(&[write(&specs, work)?], &[])?;
    serde_json::from_str(&said).map_err(|error| failed(&error))
}

/// Writes specifications into a folder; its path.
fn write(specs: &[Spec], work: &Path) -> Result<String, Error> {
    let path = work.join("cdi");
    let folder = Folder::at(&path);
    for spec in specs {
        let written = folder.write(spec, &BTreeSet::new());
        written.map_err(|error| failed(&error))?;
    }
    Ok(path.to_string_lossy().into_owned())
}

fn failed(error: &dyn Display) -> Error {
    Error::interop("give a runtime our CDI specifications", error)
}

/// As full a specification as there can be.
fn gpus(machine: &Machine, work: &Path) -> Result<Spec, Error> {
    let node = machine.node(work)?;
    let library = Library {
        path: "usr/lib64/libcuda.so.580.95.05".to_owned(),
        links: vec!["usr/lib64/libcuda.so.1".to_owned()],
    };
    Ok(cdi::gpus(&Input {
        hardware: &publish::hardware(&node),
        by_index: true,
        control_nodes: &["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()],
        dev_root: "/",
        driver_root: "/run/nvidia/driver",
        files: &DriverFiles {
            libraries: vec![library],
            programs: vec!["usr/bin/nvidia-smi".to_owned()],
            sockets: vec!["run/nvidia-persistenced/socket".to_owned()],
            firmware: vec!["lib/firmware/nvidia/580.95.05/gsp_ga10x.bin".to_owned()],
        },
        driver_version: "580.95.05",
        hooks: &Hooks {
            program: "/usr/bin/nvidia-cdi-hook".to_owned(),
            off: BTreeSet::new(),
        },
    }))
}

fn differences(specs: &[Spec], said: &Said) -> Findings {
    let devices = |spec: &Spec| -> Vec<String> {
        let devices = spec.devices.iter();
        devices
            .map(|device| format!("{}={}", spec.kind, device.name))
            .collect()
    };
    let ours: BTreeSet<String> = specs.iter().flat_map(devices).collect();
    let mut findings = said.errors.clone();
    let odd = ours.symmetric_difference(&said.devices);
    findings.extend(odd.map(|name| format!("{name} is in one of the two, ours and theirs")));
    let written = specs.iter().map(|spec| spec.cdi_version.as_str());
    let newest = written.min().unwrap_or_default();
    let too_new = said.needs.iter().filter(|needed| needed.as_str() > newest);
    findings.extend(too_new.map(|needed| format!("{newest} is written, {needed} is needed")));
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_found() {
        let spec = cdi::imex_channel("/");
        let said = |device: &str, needs: &str, errors: &[&str]| Said {
            devices: BTreeSet::from([device.to_owned()]),
            errors: errors.iter().map(|error| (*error).to_owned()).collect(),
            needs: BTreeSet::from([needs.to_owned()]),
        };
        let specs = [spec];
        let name = "k8s.device-plugin.nvidia.com/imex-channel=0";
        assert_eq!(differences(&specs, &said(name, "0.3.0", &[])), [""; 0]);
        assert_eq!(differences(&specs, &said(name, "0.3.0", &["x"])), ["x"]);
        assert_eq!(differences(&specs, &said("a/b=c", "0.5.0", &[])).len(), 2);
        assert_eq!(differences(&specs, &said(name, "0.7.0", &[])).len(), 1);
    }
}
