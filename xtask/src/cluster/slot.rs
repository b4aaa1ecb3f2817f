// SPDX-License-Identifier: Apache-2.0
//! Names and addresses of a cluster on its machine. Several clusters can be up at once: each takes
//! a slot, and everything that the machine could see twice has the slot's number in it.
//!
//! A slot is taken by making its bridge, which fails where there is one. The bridge's alias is the
//! folder of the cluster it belongs to, so no file has to remember it.

use std::path::Path;

use super::shell::{run, run_with};
use crate::error::Error;

/// How many clusters there can be at once.
const SLOTS: u8 = 8;

/// The longest alias that Linux keeps (IFALIASZ, with its end).
const ALIAS: usize = 255;

/// The place of a cluster on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot(u8);

impl Slot {
    /// Takes a free slot for the cluster in `folder`.
    ///
    /// # Errors
    /// If there is none, or no bridge can be made.
    pub fn take(folder: &Path) -> Result<Self, Error> {
        let folder = folder.to_string_lossy();
        if folder.len() > ALIAS || folder.contains(char::is_whitespace) {
            let message = format!("{folder}: too long, or with a space, for a cluster's folder");
            return Err(Error::Cluster(message));
        }
        let taken = links()?;
        let free = |slot: &Self| taken.iter().all(|(name, _)| *name != slot.bridge());
        let mut last = Error::Cluster(format!("{SLOTS} clusters are up on this machine already"));
        for slot in (0..SLOTS).map(Self).filter(free) {
            let (bridge, address) = (slot.bridge(), slot.address());
            // One run of `ip`, so that there is no moment for a kill between bridge and alias.
            let batch = format!(
                "link add {bridge} type bridge\nlink set {bridge} alias {folder}\n\
                 addr add {address}/24 dev {bridge}\nlink set {bridge} up\n"
            );
            match run_with(10, &["ip", "-batch", "-"], &batch) {
                Ok(_) => return Ok(slot),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The slots that the cluster in `folder` has: one, or none; more only if something went wrong.
    ///
    /// # Errors
    /// If the links of the machine cannot be listed.
    pub fn of(folder: &Path) -> Result<Vec<Self>, Error> {
        let links = links()?;
        let ours = |slot: &Self| {
            let mut links = links.iter();
            links.any(|(name, alias)| *name == slot.bridge() && Path::new(alias) == folder)
        };
        Ok((0..SLOTS).map(Self).filter(ours).collect())
    }

    /// Gives the slot free: its cables go, then its bridge. A node's end of the cable would stay
    /// for minutes, as the kernel keeps a network namespace for TCP connections that nobody closed.
    ///
    /// # Errors
    /// If one of them cannot be removed.
    pub fn give(self) -> Result<(), Error> {
        let (bridge, cables) = (self.bridge(), format!("{}n", self.bridge()));
        let links = links()?.into_iter().map(|(name, _)| name);
        for cable in links.filter(|name| name.starts_with(&cables)) {
            remove(&cable)?;
        }
        remove(&bridge)
    }

    /// The bridge between the machine and the nodes.
    pub fn bridge(self) -> String {
        format!("sw{}", self.0)
    }

    /// What belongs to a node (1 to 3) on the machine: its end of the cable, and its cgroup.
    pub fn node(self, node: u8) -> String {
        format!("sw{}n{node}", self.0)
    }

    /// What tells a node from all others: 32 hexadecimal digits, as systemd's machine-id.
    pub fn machine_id(self, node: u8) -> String {
        format!(
            "{:032x}",
            0x51ce_0000 + u32::from(self.0) * 256 + u32::from(node)
        )
    }

    /// The machine's address on the bridge: the control plane listens there, and nowhere else.
    pub fn address(self) -> String {
        format!("10.99.{}.1", self.0)
    }

    /// A loopback address for the store, which only the control plane may reach.
    pub fn store(self) -> String {
        format!("127.99.{}.1", self.0)
    }

    /// A node's address.
    pub fn node_address(self, node: u8) -> String {
        format!("10.99.{}.{}", self.0, 10 + node)
    }

    /// The addresses of a node's pods.
    pub fn pods(self, node: u8) -> String {
        format!("10.{}.{node}.0/24", 100 + self.0)
    }
}

/// Removes a link. That it has gone by itself in this moment is as well.
fn remove(link: &str) -> Result<(), Error> {
    let removed = run(10, &["ip", "link", "delete", link]);
    match links()?.iter().any(|(name, _)| name == link) {
        true => removed.map(|_| ()),
        false => Ok(()),
    }
}

/// Name and alias of each network link of the machine.
fn links() -> Result<Vec<(String, String)>, Error> {
    let text = run(10, &["ip", "-json", "link", "show"])?;
    let links: Vec<serde_json::Value> = serde_json::from_str(&text)
        .map_err(|error| Error::Cluster(format!("ip -json: {error}")))?;
    let word = |link: &serde_json::Value, key: &str| {
        let word = link[key].as_str();
        word.unwrap_or_default().to_owned()
    };
    let pair = |link: &serde_json::Value| (word(link, "ifname"), word(link, "ifalias"));
    Ok(links.iter().map(pair).collect())
}
