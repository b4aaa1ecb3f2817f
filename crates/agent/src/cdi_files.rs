// SPDX-License-Identifier: Apache-2.0
//! The CDI specifications of the node's devices, written before they are offered.

use std::collections::BTreeSet;

use cdi::{DriverFiles, Folder, Input, Spec};
use config::deviceplugin::{Config, IdStrategy, ListStrategy};
use plan::Warning;
use snapshot::Reading;
use units::Code;

use crate::settings::Paths;

/// Writes what changed, if containers are told by CDI at all. Devices in `held` stay in the file
/// even if they are gone: a container may restart with them.
///
/// # Errors
/// `cdi-unwritable`: devices that are not in the old file cannot be had.
pub fn write(
    paths: &Paths,
    reading: &Reading,
    config: &Config,
    held: &BTreeSet<String>,
) -> Result<Vec<Warning>, Warning> {
    let strategies = &config.flags.plugin.device_list_strategy;
    let by_cdi = [ListStrategy::CdiAnnotations, ListStrategy::CdiCri];
    if !by_cdi.iter().any(|way| strategies.contains(way)) {
        return Ok(Vec::new());
    }
    let inventory = reading.node.inventory.as_ref();
    let version = inventory.map_or("", |inventory| inventory.driver_version.as_str());
    let files = DriverFiles::find(&paths.driver_root_here, version);
    let dev_root = paths.dev_root.to_string_lossy();
    let spec = cdi::gpus(&Input {
        hardware: &publish::hardware(&reading.node),
        by_index: config.flags.plugin.device_id_strategy == IdStrategy::Index,
        control_nodes: &reading.control_nodes,
        dev_root: &dev_root,
        driver_root: &paths.driver_root.to_string_lossy(),
        files: &files,
        driver_version: version,
        hooks: &paths.cdi_hooks,
    });
    let folder = Folder::at(&paths.cdi);
    let mut findings = written(&folder, &spec, held)?;
    if config.imex.channel_0 && reading.node.has_imex_channel_0 {
        let channel = cdi::imex_channel(&dev_root);
        findings.extend(written(&folder, &channel, &BTreeSet::new())?);
    }
    Ok(findings)
}

fn written(folder: &Folder, spec: &Spec, keep: &BTreeSet<String>) -> Result<Vec<Warning>, Warning> {
    let finding = |code, message| Warning { code, message };
    folder
        .write(spec, keep)
        .map_err(|error| finding(Code::CdiUnwritable, error.to_string()))?;
    let conflicts = folder.conflicts(spec).into_iter().map(|(path, device)| {
        let message = format!(
            "{} names the device {device} too, so that containers cannot have it; remove that file",
            path.display()
        );
        finding(Code::CdiConflict, message)
    });
    Ok(conflicts.collect())
}
