// SPDX-License-Identifier: Apache-2.0
//! How the GPUs are linked, in the words of what is published.

use gpu::{CommonAncestor, Connection, Driver, Error, Topology};
use publish::{Ancestor, Link, Links};
use units::GpuUuid;

/// Reads the links of all pairs of these GPUs.
pub fn read(driver: &Driver, gpus: &[GpuUuid]) -> Result<Links, Error> {
    let connections = driver.connections(gpus)?;
    Ok(Links::new(connections.into_iter().map(link)))
}

fn link(connection: Connection) -> Link {
    Link {
        one: connection.one,
        other: connection.other,
        ancestor: match connection.ancestor {
            CommonAncestor::System => Ancestor::System,
            CommonAncestor::Node => Ancestor::Node,
            CommonAncestor::HostBridge => Ancestor::HostBridge,
            CommonAncestor::MultipleSwitches => Ancestor::MultipleSwitches,
            CommonAncestor::SingleSwitch => Ancestor::SingleSwitch,
            CommonAncestor::Board => Ancestor::Board,
        },
        nvlinks: connection.nvlinks,
    }
}
