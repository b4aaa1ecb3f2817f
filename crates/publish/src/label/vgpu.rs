// SPDX-License-Identifier: Apache-2.0
//! Labels of a virtual machine whose GPU is a virtual one, read from its PCI capability.

use super::Labels;
use crate::name::label_value;
use crate::node::{Node, PciFunction};

/// Bytes of configuration space that must be readable to look for the capability.
const CONFIG_SPACE: usize = 256;
/// What the capability says after its header of three bytes.
const SIGNATURE: &[u8] = b"VF";
/// Record with the host's driver: two texts of ten bytes behind id and length.
const HOST_DRIVER: u8 = 0;
const TEXT: usize = 10;

pub(super) fn label(labels: &mut Labels, node: &Node) {
    let functions = || node.pci.iter().filter(|function| function.is_nvidia());
    if let Some(short) = functions().find(|function| function.config_bytes < CONFIG_SPACE) {
        return labels.unreadable(format!(
            "PCI function {}: only {} bytes of its configuration can be read; labels of virtual \
             GPUs are left out",
            short.address, short.config_bytes
        ));
    }
    let virtual_gpu = functions().find_map(|function| Some((function, records(function)?)));
    labels.set("vgpu.present", virtual_gpu.is_some());
    let Some((function, records)) = virtual_gpu else {
        return;
    };
    match host_driver(records) {
        Some((version, branch)) => {
            labels.set("vgpu.host-driver-version", label_value(&version, ""));
            labels.set("vgpu.host-driver-branch", label_value(&branch, ""));
        }
        None => labels.unreadable(format!(
            "PCI function {}: its capability does not tell the host's driver",
            function.address
        )),
    }
}

/// The records in the capability of a virtual GPU.
fn records(function: &PciFunction) -> Option<&[u8]> {
    function
        .vendor_capability
        .as_ref()?
        .get(3..)?
        .strip_prefix(SIGNATURE)
}

/// Version and branch of the host's driver. Every record starts with its id and its whole length.
fn host_driver(mut records: &[u8]) -> Option<(String, String)> {
    loop {
        let (id, length) = (*records.first()?, usize::from(*records.get(1)?));
        if id == HOST_DRIVER {
            let text = |from: usize| {
                let bytes = records.get(from..from + TEXT)?;
                let text = String::from_utf8_lossy(bytes);
                Some(text.trim_end_matches('\0').to_owned())
            };
            return Some((text(2)?, text(2 + TEXT)?));
        }
        records = records.get(length.max(2)..)?;
    }
}
