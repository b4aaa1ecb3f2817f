// SPDX-License-Identifier: Apache-2.0
//! Decoding with a path: reads typed values out of a tree and collects what is wrong.

use units::Code;

use crate::diagnostic::{Diagnostic, Severity};
use crate::tree::{
    Budget, Duplicate, Mapping, Member, Node, Position, Tree, TreeError, Value, quoted, shown,
};

/// More faults than this are not collected: nobody reads them, and input must not eat memory.
const MOST: usize = 200;
/// Nor more than so many bytes of names and messages.
const MOST_BYTES: usize = 1 << 20;
/// Longest path that is shown, in bytes.
const LONGEST_PATH: usize = 200;

/// Collects the faults of one text.
#[derive(Debug)]
pub struct Sink {
    file: String,
    path: String,
    config: Option<String>,
    diagnostics: Vec<Diagnostic>,
    budget: Budget,
    bytes: usize,
    is_full: bool,
}

impl Sink {
    /// For the text of a file of that name.
    pub fn new(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            path: String::new(),
            config: None,
            diagnostics: Vec::new(),
            budget: Budget::default(),
            bytes: 0,
            is_full: false,
        }
    }

    /// What was collected, in the order of the text.
    pub fn finish(mut self) -> Vec<Diagnostic> {
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.at);
        self.diagnostics
    }

    /// Whether so much was noted that nothing more is.
    pub fn is_full(&self) -> bool {
        self.is_full
    }

    /// Whether an error was noted.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }

    /// The tree of one of the file's texts, within the budget that all of them share.
    ///
    /// # Errors
    /// As [`tree::parse`](crate::tree::parse).
    pub fn tree(&mut self, text: &str) -> Result<Tree, TreeError> {
        crate::tree::parse_within(text, &mut self.budget)
    }

    /// Notes that a second document at that place is ignored.
    pub fn second_document(&mut self, at: Position) {
        let found = "a second document, which is ignored: only the first is read";
        self.warn(Code::ContentIgnored, at, found, "");
    }

    /// Notes an error: `found` something, and what is `allowed` as a phrase such as
    /// `expected a list`.
    pub fn error(&mut self, at: Position, found: impl Into<String>, allowed: impl Into<String>) {
        self.note(Severity::Error, Code::ConfigInvalid, at, found, allowed);
    }

    /// Notes a warning.
    pub fn warn(
        &mut self,
        code: Code,
        at: Position,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        self.note(Severity::Warning, code, at, found, allowed);
    }

    fn note(
        &mut self,
        severity: Severity,
        code: Code,
        at: Position,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) {
        if self.is_full {
            return;
        }
        let mut diagnostic = Diagnostic {
            file: self.file.clone(),
            at,
            severity,
            code,
            path: self.path.clone(),
            found: found.into(),
            allowed: allowed.into(),
            config: self.config.clone(),
        };
        let name = diagnostic.config.as_ref().map_or(0, String::len);
        self.bytes += name + diagnostic.found.len() + diagnostic.allowed.len();
        self.is_full = self.diagnostics.len() >= MOST || self.bytes > MOST_BYTES;
        if self.is_full {
            let shown = self.diagnostics.len();
            diagnostic.severity = Severity::Error;
            diagnostic.code = Code::ConfigInvalid;
            diagnostic.path = String::new();
            diagnostic.found = format!("more than {shown} faults; the rest is not shown");
            diagnostic.allowed = String::new();
            diagnostic.config = None;
        }
        self.diagnostics.push(diagnostic);
    }

    /// What `read` notes belongs to the value of `key` below the present path.
    pub fn key<R>(&mut self, key: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.path.len();
        if length < LONGEST_PATH {
            let dot = if length == 0 { "" } else { "." };
            self.path.push_str(&format!("{dot}{}", shown(key)));
        }
        let result = read(self);
        self.path.truncate(length);
        result
    }

    /// What `read` notes belongs to the item at `index` of the list at the present path.
    pub fn item<R>(&mut self, index: usize, read: impl FnOnce(&mut Self) -> R) -> R {
        let length = self.path.len();
        if length < LONGEST_PATH {
            self.path.push_str(&format!("[{index}]"));
        }
        let result = read(self);
        self.path.truncate(length);
        result
    }

    /// Reads each item of the list at the present path, also after one that cannot be read.
    pub fn each<T>(
        &mut self,
        items: &[Node],
        mut read: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<Option<T>> {
        let items = items.iter().enumerate();
        items
            .map(|(index, item)| self.item(index, |sink| read(sink, item)))
            .collect()
    }

    /// Reads the items of a list that may be null.
    pub fn items<T>(
        &mut self,
        node: &Node,
        expected: &str,
        read: impl FnMut(&mut Self, &Node) -> Option<T>,
    ) -> Vec<T> {
        if node.value == Value::Null {
            return Vec::new();
        }
        let list = self.sequence(node, expected).unwrap_or_default();
        self.each(list, read).into_iter().flatten().collect()
    }

    /// What `read` notes belongs to the named configuration.
    pub fn in_config<R>(&mut self, name: &str, read: impl FnOnce(&mut Self) -> R) -> R {
        let before = self.config.replace(name.to_owned());
        let result = read(self);
        self.config = before;
        result
    }

    /// Notes that a node is not what is `expected`.
    pub fn wrong(&mut self, node: &Node, expected: &str) {
        self.error(node.at, node.describe(), format!("expected {expected}"));
    }

    /// The node as a mapping; its duplicate keys are noted.
    pub fn mapping<'a>(&mut self, node: &'a Node, expected: &str) -> Option<&'a Mapping> {
        let Some(mapping) = node.as_mapping() else {
            self.wrong(node, expected);
            return None;
        };
        for duplicate in &mapping.duplicates {
            self.duplicate(duplicate);
        }
        Some(mapping)
    }

    /// Notes a duplicate key.
    pub fn duplicate(&mut self, duplicate: &Duplicate) {
        let found = format!("the key {} again", quoted(&duplicate.key));
        let allowed = format!("it stands at {} already; keep one of them", duplicate.first);
        self.error(duplicate.again, found, allowed);
    }

    /// The node as a list.
    pub fn sequence<'a>(&mut self, node: &'a Node, expected: &str) -> Option<&'a [Node]> {
        if let Value::Sequence(items) = &node.value {
            return Some(items);
        }
        self.wrong(node, expected);
        None
    }

    /// The node as text.
    pub fn string<'a>(&mut self, node: &'a Node, expected: &str) -> Option<&'a str> {
        let text = node.as_str();
        if text.is_none() {
            let hint = match node.value {
                Value::Int(_) | Value::Float(_) | Value::Bool(_) => " in quotes",
                _ => "",
            };
            self.wrong(node, &format!("{expected}{hint}"));
        }
        text
    }

    /// The node as true or false.
    pub fn bool(&mut self, node: &Node) -> Option<bool> {
        match (&node.value, node.as_str()) {
            (Value::Bool(value), _) => Some(*value),
            (_, Some("true" | "false" | "yes" | "no" | "on" | "off")) => {
                self.wrong(node, "true or false without quotes");
                None
            }
            _ => {
                self.wrong(node, "true or false");
                None
            }
        }
    }

    /// The node as a whole number.
    pub fn int(&mut self, node: &Node, expected: &str) -> Option<i64> {
        let number = node.as_int();
        if number.is_none() {
            let quoted = node
                .as_str()
                .is_some_and(|text| text.parse::<i64>().is_ok());
            let hint = if quoted { " without quotes" } else { "" };
            self.wrong(node, &format!("{expected}{hint}"));
        }
        number
    }

    /// Notes each key that is not in `known` as an error, with the nearest known one.
    pub fn only(&mut self, mapping: &Mapping, known: &[&str]) {
        for member in &mapping.members {
            if !known.contains(&member.key.as_str()) && !self.is_full {
                let (found, allowed) = unknown(member, known);
                self.error(member.at, found, allowed);
            }
        }
    }

    /// Notes each key that is not in `known` as a warning: the original ignores it silently.
    pub fn ignored(&mut self, mapping: &Mapping, known: &[&str]) {
        for member in &mapping.members {
            if !known.contains(&member.key.as_str()) && !self.is_full {
                let (found, allowed) = unknown(member, known);
                let allowed = format!("which is ignored; {allowed}");
                self.warn(Code::UnknownKey, member.at, found, allowed);
            }
        }
    }
}

fn unknown(member: &Member, known: &[&str]) -> (String, String) {
    let allowed = match crate::nearest::nearest(&member.key, known) {
        Some(near) => format!("did you mean {near}? Known: {}", known.join(", ")),
        None => format!("expected one of {}", known.join(", ")),
    };
    (format!("the unknown key {}", quoted(&member.key)), allowed)
}
