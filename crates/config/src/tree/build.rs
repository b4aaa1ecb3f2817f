// SPDX-License-Identifier: Apache-2.0
//! From parser events to the tree, within a budget.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use granit_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, Tag};

use super::{Duplicate, Mapping, Member, Node, Position, Value, scalar};

/// Longest text that is read, in bytes. A ConfigMap holds at most a quarter of it.
pub const MAX_BYTES: usize = 4 << 20;
/// Deepest nesting that is read.
pub const MAX_DEPTH: usize = 64;
const NODE_COST: usize = 128;

/// How much may still be read: what a file's trees weigh together, aliases expanded.
#[derive(Clone, Copy, Debug)]
pub struct Budget(usize);

impl Default for Budget {
    /// 32 MiB: 128 bytes a value, and the bytes of its text.
    fn default() -> Self {
        Self(32 << 20)
    }
}

/// A text as a tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Tree {
    /// The first document; `None` if the text has no content.
    pub root: Option<Node>,
    /// Where a second document begins. The original programs read only the first, silently.
    pub second_document: Option<Position>,
}

/// The text is not YAML or JSON, or more than is read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {message}")]
pub struct TreeError {
    /// Where.
    pub at: Position,
    /// What is wrong.
    pub message: String,
}

/// Reads the first document of a text.
///
/// # Errors
/// The text is no YAML or JSON, has a key that is no scalar, or exceeds a limit.
pub fn parse(text: &str) -> Result<Tree, TreeError> {
    parse_within(text, &mut Budget::default())
}

/// Reads the first document of a text and takes what it weighs from the budget.
///
/// # Errors
/// As [`parse`].
pub fn parse_within(text: &str, budget: &mut Budget) -> Result<Tree, TreeError> {
    if text.len() > MAX_BYTES {
        return Err(error(
            Position::START,
            format!(
                "the text has {} bytes, at most {MAX_BYTES} are read",
                text.len()
            ),
        ));
    }
    let mut options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    options.set_emit_comments(false);
    let mut builder = Builder {
        stack: Vec::new(),
        anchors: BTreeMap::new(),
        budget,
        root: None,
    };
    let mut documents = 0;
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|e| scan_error(&e))?;
        if matches!(event, Event::DocumentStart(..)) {
            documents += 1;
        }
        if documents > 1 {
            return Ok(Tree {
                root: builder.root,
                second_document: Some(position(span.start)),
            });
        }
        builder.event(event, &span)?;
    }
    Ok(Tree {
        root: builder.root,
        second_document: None,
    })
}

fn error(at: Position, message: impl Into<String>) -> TreeError {
    TreeError {
        at,
        message: message.into(),
    }
}

fn scan_error(error: &ScanError) -> TreeError {
    TreeError {
        at: position(*error.marker()),
        message: error.info(),
    }
}

fn position(marker: Marker) -> Position {
    Position {
        line: marker.line().max(1),
        column: marker.col() + 1,
    }
}

/// A collection that is not closed yet.
struct Frame {
    anchor: usize,
    at: Position,
    kind: FrameKind,
}

enum FrameKind {
    Sequence(Vec<Node>),
    Mapping(MappingFrame),
}

#[derive(Default)]
struct MappingFrame {
    mapping: Mapping,
    /// Key to place in `mapping.members`.
    places: BTreeMap<String, usize>,
    /// The key that waits for its value, and whether it is a merge key.
    key: Option<(String, Position, bool)>,
    merges: Vec<Node>,
}

struct Builder<'a> {
    stack: Vec<Frame>,
    /// Anchored nodes with their depth and cost.
    anchors: BTreeMap<usize, (Node, Size)>,
    budget: &'a mut Budget,
    root: Option<Node>,
}

#[derive(Clone, Copy)]
struct Size {
    cost: usize,
    depth: usize,
}

impl Builder<'_> {
    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), TreeError> {
        let at = position(span.start);
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.charge(at, NODE_COST + text.len())?;
                let is_merge = style == ScalarStyle::Plain && text == "<<";
                let node = scalar_node(&text, style, tag.as_deref(), at);
                self.remember(anchor, &node)?;
                if !self.takes_key(&text, at, is_merge) {
                    self.add(node);
                }
                Ok(())
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open(anchor, at, FrameKind::Sequence(Vec::new()))
            }
            Event::MappingStart(_, anchor, _) => {
                self.open(anchor, at, FrameKind::Mapping(MappingFrame::default()))
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(id) => self.alias(id, at),
            _ => Ok(()),
        }
    }

    fn charge(&mut self, at: Position, cost: usize) -> Result<(), TreeError> {
        let message = "the text has too many values (aliases are counted as often as used)";
        let left = self.budget.0.checked_sub(cost);
        self.budget.0 = left.ok_or_else(|| error(at, message))?;
        Ok(())
    }

    /// Takes the scalar as a key if one is due.
    fn takes_key(&mut self, text: &str, at: Position, is_merge: bool) -> bool {
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            Some(FrameKind::Mapping(mapping)) if mapping.key.is_none() => {
                mapping.key = Some((text.to_owned(), at, is_merge));
                true
            }
            _ => false,
        }
    }

    fn open(&mut self, anchor: usize, at: Position, kind: FrameKind) -> Result<(), TreeError> {
        self.charge(at, NODE_COST)?;
        self.refuse_key(at)?;
        if self.stack.len() >= MAX_DEPTH {
            return Err(too_deep(at));
        }
        self.stack.push(Frame { anchor, at, kind });
        Ok(())
    }

    fn refuse_key(&self, at: Position) -> Result<(), TreeError> {
        match self.stack.last().map(|frame| &frame.kind) {
            Some(FrameKind::Mapping(mapping)) if mapping.key.is_none() => {
                Err(error(at, "a key must be text, found a list or mapping"))
            }
            _ => Ok(()),
        }
    }

    fn close(&mut self) -> Result<(), TreeError> {
        let Some(Frame { anchor, at, kind }) = self.stack.pop() else {
            return Ok(());
        };
        let value = match kind {
            FrameKind::Sequence(items) => Value::Sequence(items),
            FrameKind::Mapping(frame) => Value::Mapping(self.merged(frame)?),
        };
        let node = Node {
            value,
            at,
            is_literal: false,
        };
        self.remember(anchor, &node)?;
        self.add(node);
        Ok(())
    }

    fn remember(&mut self, anchor: usize, node: &Node) -> Result<(), TreeError> {
        if anchor != 0 {
            let size = size(node);
            self.charge(node.at, size.cost)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(())
    }

    fn alias(&mut self, id: usize, at: Position) -> Result<(), TreeError> {
        let Some((node, size)) = self.anchors.get(&id) else {
            return Err(error(at, "an alias to a value that contains the alias"));
        };
        if self.stack.len() + size.depth > MAX_DEPTH {
            return Err(too_deep(at));
        }
        let cost = size.cost;
        let node = node.clone();
        self.charge(at, cost)?;
        let key = node.as_str().unwrap_or_default();
        if node.as_str().is_some() && self.takes_key(key, at, false) {
            return Ok(());
        }
        self.refuse_key(at)?;
        self.add(node);
        Ok(())
    }

    /// Puts a finished node where it belongs.
    fn add(&mut self, node: Node) {
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(FrameKind::Sequence(items)) => items.push(node),
            Some(FrameKind::Mapping(frame)) => frame.add(node),
        }
    }

    /// The mapping with what its merge keys bring; explicit keys win, then the earlier source.
    fn merged(&mut self, frame: MappingFrame) -> Result<Mapping, TreeError> {
        let MappingFrame {
            mut mapping,
            mut places,
            merges,
            ..
        } = frame;
        for node in merges {
            let at = node.at;
            let sources = match node.value {
                Value::Sequence(items) => items,
                value => vec![Node { value, ..node }],
            };
            for source in sources {
                let Value::Mapping(source) = source.value else {
                    return Err(error(
                        at,
                        "a merge key << takes a mapping or a list of mappings",
                    ));
                };
                for member in source.members {
                    if let Entry::Vacant(place) = places.entry(member.key.clone()) {
                        place.insert(mapping.members.len());
                        mapping.members.push(member);
                    }
                }
            }
        }
        Ok(mapping)
    }
}

impl MappingFrame {
    fn add(&mut self, value: Node) {
        let Some((key, at, is_merge)) = self.key.take() else {
            return;
        };
        if is_merge {
            self.merges.push(value);
            return;
        }
        let members = &mut self.mapping.members;
        match self.places.entry(key.clone()) {
            Entry::Vacant(place) => {
                place.insert(members.len());
                members.push(Member { key, at, value });
            }
            Entry::Occupied(place) => {
                let member = &mut members[*place.get()];
                self.mapping.duplicates.push(Duplicate {
                    key,
                    first: member.at,
                    again: at,
                });
                member.value = value;
            }
        }
    }
}

fn too_deep(at: Position) -> TreeError {
    error(at, format!("values are nested more than {MAX_DEPTH} deep"))
}

fn scalar_node(text: &str, style: ScalarStyle, tag: Option<&Tag>, at: Position) -> Node {
    let value = match (tag.and_then(Tag::core_suffix), style) {
        (Some("int" | "float" | "bool" | "null"), _) | (None, ScalarStyle::Plain) => {
            scalar::resolve(text)
        }
        _ => Value::String(text.to_owned()),
    };
    Node {
        value,
        at,
        is_literal: style == ScalarStyle::Literal,
    }
}

/// What a copy of a finished node weighs and how deep it is. Depth is bounded, so recursion is.
fn size(node: &Node) -> Size {
    let children: Vec<Size> = match &node.value {
        Value::Sequence(items) => items.iter().map(size).collect(),
        Value::Mapping(mapping) => mapping.members.iter().map(member_size).collect(),
        Value::String(text) => vec![Size {
            cost: text.len(),
            depth: 0,
        }],
        _ => Vec::new(),
    };
    Size {
        cost: NODE_COST + children.iter().map(|child| child.cost).sum::<usize>(),
        depth: 1 + children.iter().map(|child| child.depth).max().unwrap_or(0),
    }
}

fn member_size(member: &Member) -> Size {
    let value = size(&member.value);
    Size {
        cost: NODE_COST + member.key.len() + value.cost,
        depth: value.depth,
    }
}
