// SPDX-License-Identifier: Apache-2.0
//! Writes tar archives (POSIX ustar) that depend on nothing but their content: no owner, no time,
//! entries in the order of their paths.

use std::collections::BTreeMap;

/// What an archive has at a path.
#[derive(Clone)]
pub enum Entry {
    /// A file: its mode and content.
    File(u32, Vec<u8>),
    /// A symbolic link: its target.
    Link(String),
    /// A folder: its mode. Folders above an entry need not be named.
    Folder(u32),
}

/// Entries by path, without a `/` in front.
pub type Tree = BTreeMap<String, Entry>;

const BLOCK: usize = 512;

/// The archive. `None` if a path or a link's target is longer than the format allows.
pub fn archive(tree: &Tree) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut folders: Vec<&str> = Vec::new();
    for (path, entry) in tree {
        for (at, _) in path.match_indices('/') {
            let folder = &path[..at];
            if !tree.contains_key(folder) && !folders.contains(&folder) {
                folders.push(folder);
                append(&mut bytes, folder, &Entry::Folder(0o755))?;
            }
        }
        append(&mut bytes, path, entry)?;
    }
    bytes.resize(bytes.len() + 2 * BLOCK, 0);
    Some(bytes)
}

fn append(bytes: &mut Vec<u8>, path: &str, entry: &Entry) -> Option<()> {
    let (mode, kind, target, content): (u32, u8, &str, &[u8]) = match entry {
        Entry::File(mode, content) => (*mode, b'0', "", content),
        Entry::Link(target) => (0o777, b'2', target, &[]),
        Entry::Folder(mode) => (*mode, b'5', "", &[]),
    };
    let folder = format!("{path}/");
    let path = if kind == b'5' { &folder } else { path };
    let (prefix, name) = split(path)?;
    let mut header = [0_u8; BLOCK];
    let mut put = |at: usize, text: &[u8]| header[at..at + text.len()].copy_from_slice(text);
    put(0, name.as_bytes());
    put(100, format!("{mode:07o}").as_bytes());
    put(108, b"0000000"); // uid
    put(116, b"0000000"); // gid
    put(124, format!("{:011o}", content.len()).as_bytes());
    put(136, b"00000000000"); // time
    put(148, b"        "); // the sum, as it counts itself
    put(156, &[kind]);
    put(157, (target.len() <= 100).then_some(target)?.as_bytes());
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    bytes.extend_from_slice(&header);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(BLOCK), 0);
    Some(())
}

/// A path as the format's prefix and name.
fn split(path: &str) -> Option<(&str, &str)> {
    if path.len() <= 100 {
        return Some(("", path));
    }
    let mut cuts = path.match_indices('/').map(|(at, _)| at);
    let at = cuts.find(|at| *at <= 155 && (1..=100).contains(&(path.len() - at - 1)))?;
    Some((&path[..at], &path[at + 1..]))
}
