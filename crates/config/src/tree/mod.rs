// SPDX-License-Identifier: Apache-2.0
//! YAML or JSON text as a tree in which every value and key knows its place.
//!
//! Scalars are resolved as NVIDIA's programs do (YAML 1.1: `yes` and `on` are booleans), anchors
//! and merge keys are resolved, duplicate keys are recorded, and memory, depth and text length are
//! bounded, whatever the input.

mod build;
mod scalar;

pub use build::{Budget, MAX_BYTES, MAX_DEPTH, Tree, TreeError, parse, parse_within};
pub(crate) use scalar::{resolve, unsigned};

use std::fmt;

use serde::Serialize;

/// A place in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl Position {
    /// The first character of a text.
    pub const START: Self = Self { line: 1, column: 1 };
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A value and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where it begins. A value that came through an alias is where its anchor is.
    pub at: Position,
    /// How it is written, if it is a block of literal text (`|`).
    pub is_literal: bool,
}

/// What a node is.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing, `null` or `~`.
    Null,
    /// `true`, `yes`, `on` and their opposites.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text.
    String(String),
    /// A list.
    Sequence(Vec<Node>),
    /// A mapping.
    Mapping(Mapping),
}

/// Keys and values in the order of the text, each key once: of duplicates the last value counts,
/// as in the original programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mapping {
    /// The members.
    pub members: Vec<Member>,
    /// Keys that stand more than once: each repetition.
    pub duplicates: Vec<Duplicate>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// The key as written; never resolved, so `on: ` is the key `on`.
    pub key: String,
    /// Where the key begins.
    pub at: Position,
    /// The value.
    pub value: Node,
}

/// A key that was there before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicate {
    /// The key.
    pub key: String,
    /// Where it stands first.
    pub first: Position,
    /// Where it stands again.
    pub again: Position,
}

impl Mapping {
    /// The member with that key.
    pub fn get(&self, key: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.key == key)
    }
}

impl Node {
    /// The mapping that this is.
    pub fn as_mapping(&self) -> Option<&Mapping> {
        match &self.value {
            Value::Mapping(mapping) => Some(mapping),
            _ => None,
        }
    }

    /// The text that this is.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The whole number that this is; `7.0` counts.
    pub fn as_int(&self) -> Option<i64> {
        /// Up to here every whole number is exact as a float.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self.value {
            Value::Int(number) => Some(number),
            #[allow(clippy::cast_possible_truncation)]
            Value::Float(number) if number.fract() == 0.0 && number.abs() <= EXACT => {
                Some(number as i64)
            }
            _ => None,
        }
    }

    /// The value as a message shows it: `the text "x"`, `the number 7`, `a list`.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Null => "nothing".to_owned(),
            Value::Bool(value) => format!("{value}"),
            Value::Int(number) => format!("the number {number}"),
            Value::Float(number) => format!("the number {number}"),
            Value::String(text) => format!("the text {}", quoted(text)),
            Value::Sequence(_) => "a list".to_owned(),
            Value::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// Text in quotes for a message: control characters escaped, cut after 60 characters.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// A name as a message shows it: as it is if it is short and plain, else in quotes.
pub fn shown(name: &str) -> String {
    const LONGEST: usize = 200;
    let plain = name.chars().all(|c| c.is_ascii_graphic()) && name.len() <= LONGEST;
    if plain && !name.is_empty() {
        name.to_owned()
    } else {
        quoted(name)
    }
}

#[cfg(test)]
mod tests;
