// SPDX-License-Identifier: Apache-2.0
//! The GPU clients file of NVIDIA's MIG manager, version `v1`: services of the operating system that
//! keep GPUs open.
//!
//! ```yaml
//! version: v1
//! systemd-services: [nvidia-dcgm.service, nvsm.service]
//! ```

use crate::diagnostic::{Diagnostic, Problems};
use crate::manifest::{self, Kind};
use crate::sink::Sink;
use crate::tree::Node;

/// Services that keep GPUs open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GpuClients {
    /// Units of systemd, in the order in which they are stopped.
    pub systemd_services: Vec<String>,
}

impl Default for GpuClients {
    /// Those of GPU Operator's own list (source: its ConfigMap `default-gpu-clients`).
    fn default() -> Self {
        let names = [
            "nvsm",
            "nvsm-mqtt",
            "nvsm-core",
            "nvsm-api-gateway",
            "nvsm-notifier",
            "nv_peer_mem",
            "nvidia-dcgm",
            "dcgm",
            "dcgm-exporter",
        ];
        Self {
            systemd_services: names.map(|name| format!("{name}.service")).into(),
        }
    }
}

/// Reads a GPU clients file; `file` is only what messages call it. Returns the warnings with it.
///
/// # Errors
/// The file has an error.
pub fn parse(file: &str, text: &str) -> Result<(GpuClients, Vec<Diagnostic>), Problems> {
    let mut sink = Sink::new(file);
    let part = manifest::only(&mut sink, text, Kind::GpuClients);
    let clients = part.and_then(|part| part.read(&mut sink, decode));
    let diagnostics = sink.finish();
    match Problems::of(file, &diagnostics) {
        Some(problems) => Err(problems),
        None => Ok((clients.unwrap_or_default(), diagnostics)),
    }
}

/// The clients from the root mapping.
pub(crate) fn decode(sink: &mut Sink, root: &Node) -> Option<GpuClients> {
    let mapping = sink.mapping(root, "a mapping with version and systemd-services")?;
    sink.ignored(mapping, &["version", "systemd-services"]);
    let version = mapping.get("version");
    if let Some(version) = version.filter(|it| it.value.as_str() != Some("v1")) {
        sink.key("version", |sink| sink.wrong(&version.value, "v1"));
    }
    let services = mapping.get("systemd-services")?;
    let read = |sink: &mut Sink| sink.items(&services.value, "a list of units", unit);
    Some(GpuClients {
        systemd_services: sink.key("systemd-services", read),
    })
}

/// The name of a unit (source: `systemd.unit(5)`).
fn unit(sink: &mut Sink, node: &Node) -> Option<String> {
    let expected = "the name of a systemd unit, such as nvidia-dcgm.service";
    let name = sink.string(node, expected)?;
    let legal = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || name.len() > 255 || name.starts_with('-') || !name.chars().all(legal) {
        sink.wrong(node, expected);
        return None;
    }
    Some(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_in_their_order() {
        let text = "version: v1\nsystemd-services:\n- nvsm.service\n- nvidia-dcgm.service\n";
        let (clients, warnings) = parse("clients.yaml", text).expect("a good file");
        assert_eq!(
            clients.systemd_services,
            ["nvsm.service", "nvidia-dcgm.service"]
        );
        assert_eq!(warnings, []);
    }

    #[test]
    fn what_is_no_unit_is_an_error_with_its_place() {
        let text = "version: v1\nsystemd-services: [ok.service, --now, 'a b', 7, '']\n";
        let problems = parse("clients.yaml", text).expect_err("four faults");
        let told = problems.to_string();
        for place in ["2:32", "2:39", "2:46", "2:49"] {
            assert!(told.contains(place), "{place}: {told}");
        }
        parse("clients.yaml", "version: v2\nsystemd-services: []\n").expect_err("a version");
        parse("clients.yaml", "version: v1\nflags: {}\n").expect_err("another file");
    }
}
