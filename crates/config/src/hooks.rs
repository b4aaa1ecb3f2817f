// SPDX-License-Identifier: Apache-2.0
//! The hooks file of `nvidia-mig-parted apply`, version `v1`: programs to run around a change.
//!
//! ```yaml
//! version: v1
//! hooks:
//!   pre-apply-mode:
//!   - command: /bin/sh
//!     args: ["-c", "systemctl stop nvidia-dcgm"]
//! ```

use std::collections::BTreeMap;

use crate::diagnostic::{Diagnostic, Problems};
use crate::manifest::{self, Kind};
use crate::sink::Sink;
use crate::tree::{Mapping, Node, Value, quoted};

/// When a hook runs (source: mig-parted).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// Before anything else.
    ApplyStart,
    /// Before MIG modes are changed.
    PreApplyMode,
    /// Before instances are changed.
    PreApplyConfig,
    /// At the end, however it ends.
    ApplyExit,
}

impl Point {
    /// All points in the order of a change.
    pub const ALL: [Self; 4] = [
        Self::ApplyStart,
        Self::PreApplyMode,
        Self::PreApplyConfig,
        Self::ApplyExit,
    ];

    /// The key in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApplyStart => "apply-start",
            Self::PreApplyMode => "pre-apply-mode",
            Self::PreApplyConfig => "pre-apply-config",
            Self::ApplyExit => "apply-exit",
        }
    }
}

/// A program to run. It sees only its own `envs` and those that the change adds, not the caller's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// The program; never empty.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment.
    pub envs: BTreeMap<String, String>,
    /// Its working folder; `None`: that of the caller.
    pub workdir: Option<String>,
}

/// The hooks of each point, in order; the first that fails stops the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hooks(BTreeMap<Point, Vec<Hook>>);

impl Hooks {
    /// The hooks of a point.
    pub fn at(&self, point: Point) -> &[Hook] {
        self.0.get(&point).map(Vec::as_slice).unwrap_or_default()
    }
}

/// Reads a hooks file; `file` is only what messages call it. Returns the warnings with it.
///
/// # Errors
/// The file has an error.
pub fn parse(file: &str, text: &str) -> Result<(Hooks, Vec<Diagnostic>), Problems> {
    let mut sink = Sink::new(file);
    let part = manifest::only(&mut sink, text, Kind::Hooks);
    let hooks = part.and_then(|part| part.read(&mut sink, decode));
    let diagnostics = sink.finish();
    match Problems::of(file, &diagnostics) {
        Some(problems) => Err(problems),
        None => Ok((hooks.unwrap_or_default(), diagnostics)),
    }
}

/// The hooks from the root mapping.
pub(crate) fn decode(sink: &mut Sink, root: &Node) -> Option<Hooks> {
    let mapping = sink.mapping(root, "a mapping with version and hooks")?;
    sink.ignored(mapping, &["version", "hooks"]);
    if let Some(version) = mapping
        .get("version")
        .filter(|it| it.value.as_str() != Some("v1"))
    {
        sink.key("version", |sink| sink.wrong(&version.value, "v1"));
    }
    let hooks = mapping
        .get("hooks")
        .filter(|hooks| hooks.value.value != Value::Null);
    let Some(hooks) = hooks else {
        return Some(Hooks::default());
    };
    let points = |sink: &mut Sink| decode_points(sink, &hooks.value);
    sink.key("hooks", points).map(Hooks)
}

fn decode_points(sink: &mut Sink, node: &Node) -> Option<BTreeMap<Point, Vec<Hook>>> {
    let mapping = sink.mapping(node, "a mapping from apply-start, ... to lists of programs")?;
    sink.ignored(mapping, &Point::ALL.map(Point::as_str));
    let mut hooks = BTreeMap::new();
    for point in Point::ALL {
        let key = point.as_str();
        if let Some(member) = mapping.get(key) {
            let list = |sink: &mut Sink| sink.items(&member.value, "a list of programs", hook);
            hooks.insert(point, sink.key(key, list));
        }
    }
    Some(hooks)
}

fn hook(sink: &mut Sink, node: &Node) -> Option<Hook> {
    let mapping = sink.mapping(node, "a mapping with command")?;
    sink.ignored(mapping, &["command", "args", "envs", "workdir"]);
    let command = text(sink, mapping, "command").filter(|command| !command.is_empty());
    if command.is_none() {
        sink.error(node.at, "no command", "every hook needs a program to run");
    }
    let args = mapping.get("args").map(|member| {
        sink.key("args", |sink| {
            sink.items(&member.value, "a list of texts", word)
        })
    });
    let envs = mapping
        .get("envs")
        .filter(|envs| envs.value.value != Value::Null);
    let envs = envs.map(|member| sink.key("envs", |sink| envs_of(sink, &member.value)));
    Some(Hook {
        workdir: text(sink, mapping, "workdir").filter(|workdir| !workdir.is_empty()),
        command: command?,
        args: args.unwrap_or_default(),
        envs: envs.unwrap_or_default(),
    })
}

fn text(sink: &mut Sink, mapping: &Mapping, key: &str) -> Option<String> {
    let member = mapping.get(key)?;
    if member.value.value == Value::Null {
        return None;
    }
    sink.key(key, |sink| word(sink, &member.value))
}

/// A text without NUL characters, which no program can be given.
fn word(sink: &mut Sink, node: &Node) -> Option<String> {
    let text = sink.string(node, "text")?;
    if text.contains('\0') {
        sink.wrong(node, "text without NUL characters");
        return None;
    }
    Some(text.to_owned())
}

fn envs_of(sink: &mut Sink, node: &Node) -> BTreeMap<String, String> {
    let mapping = sink.mapping(node, "a mapping from variables to texts");
    let mut envs = BTreeMap::new();
    for member in mapping.iter().flat_map(|mapping| &mapping.members) {
        if member.key.is_empty() || member.key.contains(['=', '\0']) {
            let allowed = "expected a name without = in it";
            sink.error(
                member.at,
                format!("the variable {}", quoted(&member.key)),
                allowed,
            );
        }
        let value = sink.key(&member.key, |sink| word(sink, &member.value));
        envs.extend(value.map(|value| (member.key.clone(), value)));
    }
    envs
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Code;

    #[test]
    fn hooks_are_read_by_point() {
        let text = "version: v1
hooks:
  apply-start:
  - workdir: /etc/nvidia-mig-manager
    command: /bin/bash
    args: [\"-x\", \"-c\", \"source hooks.sh\"]
    envs: {A: b}
  - command: /bin/true
  pre-apply-mode: null
  apply-end: []
";
        let (hooks, warnings) = parse("f", text).unwrap();
        let start = hooks.at(Point::ApplyStart);
        assert_eq!(start[0].args, ["-x", "-c", "source hooks.sh"]);
        assert_eq!(
            start[0].envs,
            BTreeMap::from([("A".to_owned(), "b".to_owned())])
        );
        assert_eq!(start[0].workdir.as_deref(), Some("/etc/nvidia-mig-manager"));
        assert_eq!(start[1].workdir, None);
        assert!(hooks.at(Point::PreApplyMode).is_empty());
        assert_eq!(warnings.len(), 1);
        assert_eq!(
            (warnings[0].code, warnings[0].at.line),
            (Code::UnknownKey, 10)
        );
        assert_eq!(parse("f", "").unwrap().0, Hooks::default());
    }

    #[test]
    fn faults_of_hooks_are_errors() {
        for (hook, message) in [
            ("{}", "found no command"),
            ("{command: \"\"}", "found no command"),
            ("{command: [a]}", "command: found a list"),
            (
                "{command: a, args: [1]}",
                "args[0]: found the number 1, expected text in quotes",
            ),
            ("{command: a, envs: {B: 1}}", "envs.B: found the number 1"),
            ("{command: a, envs: {\"=\": x}}", "found the variable \"=\""),
            ("{command: \"a\\0\"}", "without NUL characters"),
        ] {
            let text = format!("version: v1\nhooks: {{apply-exit: [{hook}]}}\n");
            let problems = parse("f", &text).unwrap_err();
            assert!(problems.to_string().contains(message), "{problems}");
        }
        assert!(parse("f", "version: v2\nhooks: {}\n").is_err());
        assert!(parse("f", "mig-configs: {}\n").is_err());
    }
}
