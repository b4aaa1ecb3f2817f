// SPDX-License-Identifier: Apache-2.0
//! Any configuration file, checked as what its content says it is.

use serde::Serialize;
use units::Code;

use crate::diagnostic::Diagnostic;
use crate::manifest::{self, Kind, Part};
use crate::sink::Sink;
use crate::tree::{Node, Position};
use crate::{checkpoint, deviceplugin, gpu_clients, hooks, mig};

/// What is in a file and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The configurations: the key in a ConfigMap (`None` for a bare file) and what it is.
    pub parts: Vec<(Option<String>, Kind)>,
    /// Every fault, in the order of the file. Each configuration of a MIG config counts: here all
    /// are as good as selected.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// Whether anything in the file cannot be used as written.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Checks a file; `file` is only what messages call it.
pub fn check(file: &str, text: &str) -> Report {
    let mut sink = Sink::new(file);
    let parts = manifest::parts(&mut sink, text);
    let has_known = parts.iter().any(|part| part.kind < Kind::Blank);
    for part in &parts {
        check_part(&mut sink, part, has_known);
    }
    if parts.is_empty() && !sink.has_errors() {
        let allowed = "expected at least one key below data that holds a configuration";
        sink.error(Position::START, "an empty ConfigMap", allowed);
    }
    Report {
        parts: parts
            .into_iter()
            .map(|part| (part.key, part.kind))
            .collect(),
        diagnostics: sink.finish(),
    }
}

fn check_part(sink: &mut Sink, part: &Part, has_known: bool) {
    match part.kind {
        Kind::MigConfig => drop(part.read(sink, mig::decode)),
        Kind::DevicePlugin => {
            let config = part.read(sink, deviceplugin::decode);
            let at = part.root.as_ref().map_or(Position::START, |root| root.at);
            for conflict in config.iter().flat_map(deviceplugin::Config::conflicts) {
                let found = format!("{conflict}, unless a flag or variable overrides it");
                sink.warn(Code::ContentIgnored, at, found, "");
            }
        }
        Kind::Hooks => drop(part.read(sink, hooks::decode)),
        Kind::Checkpoint => drop(part.read(sink, checkpoint::decode)),
        Kind::GpuClients => drop(part.read(sink, gpu_clients::decode)),
        Kind::Blank => {}
        Kind::Unknown => {
            let allowed = "expected a MIG config (mig-configs), a device-plugin config (flags, \
                           sharing), a hooks file (hooks), a checkpoint (MigState), or a ConfigMap \
                           that holds one";
            let note = |sink: &mut Sink, root: &Node| {
                if has_known {
                    let allowed = "which is no configuration and is ignored";
                    sink.warn(Code::ContentIgnored, root.at, root.describe(), allowed);
                } else {
                    sink.error(root.at, root.describe(), allowed);
                }
                None::<()>
            };
            part.read(sink, note);
        }
    }
}
