// SPDX-License-Identifier: Apache-2.0
//! What of an object is merged how: facts about kinds, from a table or from a schema.

use std::collections::BTreeMap;

use serde_json::Value;

use super::typed::settled;

/// How objects of a kind are merged and who may own what of them: which lists are sets or have keys,
/// which maps are one value, what a write to a subresource does not touch.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeKeys {
    pub(super) root: Node,
    /// Whether it is as its client wrote it, but for metadata. All else is read into types.
    is_custom: bool,
    /// Subresource, and the path that a write to it leaves alone; no subresource is the empty text.
    resets: Vec<(&'static str, &'static [&'static str])>,
}

/// How a value is merged. By default a list is one value, and a map is merged member by member.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Node {
    /// A map that is one value to server-side apply.
    pub(super) atomic: bool,
    /// A member that the real API server always has, be it empty.
    pub(super) always: bool,
    /// What tells items of a list apart in server-side apply.
    pub(super) items: Items,
    /// What tells them apart in a strategic merge patch, where they are merged: the empty text for
    /// plain values.
    pub(super) merge: Option<String>,
    /// A map whose members are not declared one by one.
    pub(super) free: bool,
    /// A value that is kept to the letter: what is empty in it means something.
    pub(super) raw: bool,
    members: BTreeMap<String, Node>,
    /// What items of a list and members of a free map are like.
    others: Option<Box<Node>>,
}

/// What tells items of a list apart.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Items {
    /// Nothing: the list is one value.
    #[default]
    Atomic,
    /// Their value.
    Set,
    /// Members, with what a missing one counts as.
    Keys(Vec<(String, Option<Value>)>),
}

static PLAIN: Node = Node {
    atomic: false,
    always: false,
    items: Items::Atomic,
    merge: None,
    free: false,
    raw: false,
    members: BTreeMap::new(),
    others: None,
};

/// What no schema tells of: maps whose members are not declared, all the way down.
static UNKNOWN: Node = Node {
    atomic: false,
    always: false,
    items: Items::Atomic,
    merge: None,
    free: true,
    raw: false,
    members: BTreeMap::new(),
    others: None,
};

/// Lines with a type's name, below each, indented, its members that are not merged by default. Words
/// after a name: `atomic`, `always`, `set`, `keys:A,B=DEFAULT`
/// (in JSON), `merge:KEY`, `free`, `raw`, and `of:TYPE` for
/// the type of the member, of the items of a list, or of the members of a map.
const BUILT_IN: &str = include_str!("built_in.txt");

const STATUS: (&str, &[&str]) = ("", &["status"]);
const SPEC: (&str, &[&str]) = ("status", &["spec"]);

impl MergeKeys {
    /// Of a kind that the API server brings; `group` is empty for the core group. A kind that the table
    /// has not is merged by default.
    pub fn built_in(group: &str, kind: &str) -> Self {
        let package = match group.split('.').next() {
            None | Some("") => "core",
            Some(package) => package,
        };
        let mut resets = vec![STATUS, SPEC];
        match kind {
            "Deployment" => resets.push(("status", &["metadata", "labels"])),
            "Pod" => resets.extend([
                ("status", &["metadata", "deletionTimestamp"][..]),
                ("status", &["metadata", "ownerReferences"][..]),
            ]),
            _ => {}
        }
        Self {
            root: built_in(&format!("{package}.{kind}")),
            is_custom: false,
            resets,
        }
    }

    /// Of a custom resource, from its `openAPIV3Schema`.
    pub fn custom(schema: &Value, has_status_subresource: bool) -> Self {
        let mut root = Node::of_schema(schema);
        let metadata = built_in("meta.ObjectMeta");
        root.members.insert("metadata".to_owned(), metadata);
        let resets = match has_status_subresource {
            true => vec![STATUS, SPEC, ("status", &["metadata"])],
            false => Vec::new(),
        };
        Self {
            root,
            is_custom: true,
            resets,
        }
    }

    /// The object as the real API server keeps it.
    pub(super) fn settle(&self, mut object: Value) -> Value {
        if !self.is_custom {
            return settled(object, &self.root);
        }
        if let Some(metadata) = object.get_mut("metadata") {
            *metadata = settled(metadata.take(), self.root.member("metadata"));
        }
        object
    }

    /// Paths that a write to the subresource leaves alone.
    pub(super) fn resets(
        &self,
        subresource: &str,
    ) -> impl Iterator<Item = &'static [&'static str]> {
        let here = self.resets.iter().filter(move |(of, _)| *of == subresource);
        here.map(|(_, path)| *path)
    }
}

impl Node {
    /// What a member of a map is like.
    pub(super) fn member(&self, name: &str) -> &Self {
        self.members.get(name).unwrap_or_else(|| self.others())
    }

    /// What the items of a list are like.
    pub(super) fn others(&self) -> &Self {
        let unknown = if self.free { &UNKNOWN } else { &PLAIN };
        self.others.as_deref().unwrap_or(unknown)
    }

    /// Whether the member is one by name, not one of a free map.
    pub(super) fn declares(&self, name: &str) -> bool {
        !self.free || self.members.contains_key(name)
    }

    /// Members that a map has in any case.
    pub(super) fn always(&self) -> impl Iterator<Item = &String> {
        let members = self.members.iter().filter(|(_, member)| member.always);
        members.map(|(name, _)| name)
    }

    /// Takes a word of [`BUILT_IN`].
    fn learn(&mut self, word: &str) {
        match word.split_once(':') {
            None => match word {
                "atomic" => self.atomic = true,
                "always" => self.always = true,
                "set" => self.items = Items::Set,
                "free" => self.free = true,
                "raw" => self.raw = true,
                _ => {}
            },
            Some(("keys", keys)) => {
                let key = |key: &str| match key.split_once('=') {
                    Some((key, default)) => (key.to_owned(), serde_json::from_str(default).ok()),
                    None => (key.to_owned(), None),
                };
                self.items = Items::Keys(keys.split(',').map(key).collect());
            }
            Some(("merge", key)) => self.merge = Some(key.to_owned()),
            Some(("of", name)) => {
                let of = built_in(name);
                if self.free || self.merge.is_some() || self.items != Items::Atomic {
                    self.others = Some(Box::new(of));
                } else {
                    self.atomic |= of.atomic;
                    self.members = of.members;
                }
            }
            Some(_) => {}
        }
    }

    /// From the schema of a custom resource.
    fn of_schema(schema: &Value) -> Self {
        let properties = schema["properties"].as_object();
        let properties = properties.into_iter().flatten();
        let members = properties.map(|(name, schema)| (name.clone(), Self::of_schema(schema)));
        let others = [&schema["items"], &schema["additionalProperties"]];
        let others = others.into_iter().find(|schema| schema.is_object());
        let items = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Items::Set,
            Some("map") => {
                let keys = schema["x-kubernetes-list-map-keys"].as_array();
                let keys = keys.into_iter().flatten().filter_map(Value::as_str);
                let default =
                    |key: &str| schema["items"]["properties"][key].get("default").cloned();
                Items::Keys(keys.map(|key| (key.to_owned(), default(key))).collect())
            }
            _ => Items::Atomic,
        };
        Self {
            atomic: schema["x-kubernetes-map-type"] == "atomic",
            always: false,
            items,
            merge: None,
            free: schema["x-kubernetes-preserve-unknown-fields"] == true
                || !schema["additionalProperties"].is_null(),
            raw: false,
            members: members.collect(),
            others: others.map(|schema| Box::new(Self::of_schema(schema))),
        }
    }
}

/// The type of this name in the table; a plain one if there is none.
fn built_in(name: &str) -> Node {
    let mut lines = BUILT_IN.lines().skip_while(|line| {
        let first = line.split(' ').next();
        first != Some(name)
    });
    let mut node = Node::default();
    for word in lines
        .next()
        .into_iter()
        .flat_map(|line| line.split(' ').skip(1))
    {
        node.learn(word);
    }
    for line in lines.map_while(|line| line.strip_prefix(' ')) {
        let mut words = line.split(' ');
        let mut member = Node::default();
        let field = words.next().unwrap_or_default();
        words.for_each(|word| member.learn(word));
        node.members.insert(field.to_owned(), member);
    }
    node
}
