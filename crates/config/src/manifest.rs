// SPDX-License-Identifier: Apache-2.0
//! Files told apart by content: bare, or as keys of a ConfigMap manifest.

use std::fmt;

use serde::Serialize;

use crate::sink::Sink;
use crate::tree::{Mapping, Node, Position, Value, quoted};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// MIG config: has `mig-configs`.
    MigConfig,
    /// Device-plugin config: has `flags`, `resources`, `sharing` or `imex`.
    DevicePlugin,
    /// Hooks of `nvidia-mig-parted`: has `hooks`.
    Hooks,
    /// Clients of the GPU to stop: has `systemd-services`.
    GpuClients,
    /// A checkpoint of `nvidia-mig-parted`: has `MigState`.
    Checkpoint,
    /// Only a version, or nothing: valid as several kinds.
    Blank,
    /// None of these.
    Unknown,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MigConfig => "a MIG config",
            Self::DevicePlugin => "a device-plugin config",
            Self::Hooks => "a hooks file",
            Self::GpuClients => "a list of GPU clients",
            Self::Checkpoint => "a checkpoint",
            Self::Blank => "a file with nothing but a version",
            Self::Unknown => "no configuration",
        })
    }
}

/// One configuration text: a bare file, or the value of one key of a ConfigMap.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The key below `data`; `None` for a bare file.
    pub key: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// Its content, with positions in the whole file; `None` if it is empty.
    pub root: Option<Node>,
}

impl Part {
    /// Decodes the content with paths below `data[KEY]`; an empty part is `None`.
    pub fn read<T>(
        &self,
        sink: &mut Sink,
        decode: impl FnOnce(&mut Sink, &Node) -> Option<T>,
    ) -> Option<T> {
        let root = self.root.as_ref()?;
        match &self.key {
            None => decode(sink, root),
            Some(key) => sink.key(&format!("data[{key}]"), |sink| decode(sink, root)),
        }
    }

    /// The same part, where something without a clear kind takes that of its neighbours.
    fn or_kind(self, kind: Kind) -> Self {
        let kind = if self.kind == Kind::Blank {
            kind
        } else {
            self.kind
        };
        Self { kind, ..self }
    }
}

/// All configuration texts of a file. What cannot be read is noted.
pub fn parts(sink: &mut Sink, text: &str) -> Vec<Part> {
    let root = document(sink, text);
    let Some(mapping) = config_map(root.as_ref()) else {
        return vec![Part {
            key: None,
            kind: kind(root.as_ref()),
            root,
        }];
    };
    let Some(data) = mapping
        .get("data")
        .filter(|data| data.value.value != Value::Null)
    else {
        return Vec::new();
    };
    let data = sink.key("data", |sink| {
        sink.mapping(&data.value, "a mapping from keys to texts")
    });
    let lines: Vec<&str> = text.lines().collect();
    let mut parts = Vec::new();
    for member in data.iter().flat_map(|data| &data.members) {
        let name = format!("data[{}]", member.key);
        let read = |sink: &mut Sink| embedded(sink, &member.value, &lines);
        if let Some(root) = sink.key(&name, read) {
            parts.push(Part {
                key: Some(member.key.clone()),
                kind: kind(root.as_ref()),
                root,
            });
        }
    }
    let known = parts
        .iter()
        .map(|part| part.kind)
        .find(|kind| *kind < Kind::Blank);
    let kind = known.unwrap_or(Kind::Blank);
    parts.into_iter().map(|part| part.or_kind(kind)).collect()
}

/// The only configuration text of that kind in a file. A bare file without a clear kind counts.
/// Anything else is noted.
pub fn only(sink: &mut Sink, text: &str, wanted: Kind) -> Option<Part> {
    let mut parts = parts(sink, text);
    if let [part] = parts.as_slice()
        && part.key.is_none()
    {
        let fits = part.kind == wanted || matches!(part.kind, Kind::Blank | Kind::Unknown);
        if !fits {
            sink.error(
                Position::START,
                part.kind.to_string(),
                format!("expected {wanted}"),
            );
        }
        return parts.pop().filter(|_| fits);
    }
    let listed: Vec<String> = parts.iter().filter_map(|part| part.key.clone()).collect();
    parts.retain(|part| part.kind == wanted);
    if parts.len() == 1 {
        return parts.pop();
    }
    if sink.has_errors() {
        return None;
    }
    let found = match parts.len() {
        0 => format!("a ConfigMap with the keys {}", quoted(&listed.join(", "))),
        count => format!("a ConfigMap with {count} keys that hold {wanted}"),
    };
    let allowed = format!("expected exactly one key that holds {wanted}");
    sink.error(Position::START, found, allowed);
    None
}

/// The first document of a text; `None` if it is empty or cannot be read, which is noted.
fn document(sink: &mut Sink, text: &str) -> Option<Node> {
    let tree = sink
        .tree(text)
        .map_err(|error| sink.error(error.at, error.message, ""));
    let tree = tree.ok()?;
    if let Some(at) = tree.second_document {
        sink.second_document(at);
    }
    tree.root
}

/// The ConfigMap manifest that this is.
fn config_map(root: Option<&Node>) -> Option<&Mapping> {
    let mapping = root?.as_mapping()?;
    let kind = mapping.get("kind")?.value.as_str();
    (kind == Some("ConfigMap")).then_some(mapping)
}

fn kind(root: Option<&Node>) -> Kind {
    let Some(root) = root else {
        return Kind::Blank;
    };
    let Some(mapping) = root.as_mapping() else {
        return if root.value == Value::Null {
            Kind::Blank
        } else {
            Kind::Unknown
        };
    };
    let has = |wanted: &str| {
        let same = |key: &str| key.eq_ignore_ascii_case(wanted);
        mapping.members.iter().any(|member| same(&member.key))
    };
    if has("mig-configs") {
        Kind::MigConfig
    } else if ["flags", "resources", "sharing", "imex"]
        .iter()
        .any(|key| has(key))
    {
        Kind::DevicePlugin
    } else if has("hooks") {
        Kind::Hooks
    } else if has("systemd-services") {
        Kind::GpuClients
    } else if has("MigState") {
        Kind::Checkpoint
    } else if mapping.members.iter().all(|member| member.key == "version") {
        Kind::Blank
    } else {
        Kind::Unknown
    }
}

/// The tree of a text within the manifest's text, `None` if it cannot be read.
#[allow(clippy::option_option)]
fn embedded(sink: &mut Sink, node: &Node, manifest: &[&str]) -> Option<Option<Node>> {
    let text = sink.string(node, "text (a block after |)")?;
    let place = Place::of(node, text, manifest);
    match sink.tree(text) {
        Ok(tree) => {
            if let Some(at) = tree.second_document {
                sink.second_document(place.of_inner(at));
            }
            Some(tree.root.map(|mut root| {
                shift(&mut root, &place);
                root
            }))
        }
        Err(error) => {
            let at = place.of_inner(error.at);
            let exact = if place.block.is_some() {
                error.message
            } else {
                format!("{} (line {} of this text)", error.message, error.at.line)
            };
            sink.error(at, exact, "");
            None
        }
    }
}

/// Where the lines of an embedded text are in the manifest.
struct Place {
    /// Where the value begins.
    at: Position,
    /// If the text is a block whose lines are those of the manifest: the lines before it, and by
    /// how much each is indented. Else every position is that of the value.
    block: Option<(usize, usize)>,
}

impl Place {
    fn of(node: &Node, text: &str, manifest: &[&str]) -> Self {
        let block = node.is_literal.then(|| block(node.at, text, manifest));
        Self {
            at: node.at,
            block: block.flatten(),
        }
    }

    fn of_inner(&self, inner: Position) -> Position {
        match self.block {
            None => self.at,
            Some((lines, columns)) => Position {
                line: lines + inner.line,
                column: inner.column + columns,
            },
        }
    }
}

/// Finds the lines of a literal block in the manifest. The value's position is in the first line of
/// the block that is not blank.
fn block(at: Position, text: &str, manifest: &[&str]) -> Option<(usize, usize)> {
    let blank = text
        .lines()
        .take_while(|line| line.trim().is_empty())
        .count();
    let first = text.lines().nth(blank)?;
    let (line, outer) = manifest
        .iter()
        .enumerate()
        .skip(at.line - 1)
        .find(|(_, line)| !line.trim().is_empty())?;
    let columns = outer.strip_suffix(first)?.len();
    let lines = line.checked_sub(blank)?;
    let same = text
        .lines()
        .zip(manifest.iter().skip(lines))
        .all(|(inner, outer)| inner.trim().is_empty() || outer.get(columns..) == Some(inner));
    same.then_some((lines, columns))
}

fn shift(node: &mut Node, place: &Place) {
    node.at = place.of_inner(node.at);
    match &mut node.value {
        Value::Sequence(items) => items.iter_mut().for_each(|item| shift(item, place)),
        Value::Mapping(mapping) => {
            for member in &mut mapping.members {
                member.at = place.of_inner(member.at);
                shift(&mut member.value, place);
            }
            for duplicate in &mut mapping.duplicates {
                duplicate.first = place.of_inner(duplicate.first);
                duplicate.again = place.of_inner(duplicate.again);
            }
        }
        _ => {}
    }
}
