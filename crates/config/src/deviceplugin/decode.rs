// SPDX-License-Identifier: Apache-2.0
//! From the tree to the settings.

use std::collections::BTreeSet;
use std::time::Duration;

use units::Code;

use super::choice::{Choice, ListStrategy, choice};
use super::{
    Config, Flags, Gfd, Imex, Pattern, Plugin, Resources, SleepInterval, duration, sharing,
};
use crate::diagnostic::{Diagnostic, Problems};
use crate::manifest::{self, Kind};
use crate::nearest::nearest;
use crate::sink::Sink;
use crate::tree::{Mapping, Member, Node, Value, quoted};

/// A device-plugin config file with all its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    name: String,
    config: Config,
    diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    /// Every fault, in the order of the file.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The settings.
    ///
    /// # Errors
    /// The file has an error.
    pub fn into_config(self) -> Result<Config, Problems> {
        match Problems::of(&self.name, &self.diagnostics) {
            Some(problems) => Err(problems),
            None => Ok(self.config),
        }
    }
}

/// Reads a device-plugin config file, bare or the only one in a ConfigMap manifest, and notes every
/// fault. An empty file is all defaults.
///
/// `file` is only what messages call it.
pub fn parse(file: &str, text: &str) -> Parsed {
    let mut sink = Sink::new(file);
    let part = manifest::only(&mut sink, text, Kind::DevicePlugin);
    let config = part.and_then(|part| part.read(&mut sink, decode));
    Parsed {
        name: file.to_owned(),
        config: config.unwrap_or_default(),
        diagnostics: sink.finish(),
    }
}

/// The settings from the root mapping.
pub(crate) fn decode(sink: &mut Sink, root: &Node) -> Option<Config> {
    if root.value == Value::Null {
        return Some(Config::default());
    }
    let mapping = sink.mapping(root, "a mapping with version, flags and sharing")?;
    unknown(
        sink,
        mapping,
        &["version", "flags", "resources", "sharing", "imex"],
        true,
    );
    if let Some(version) = field(mapping, "version") {
        let silent = version.value.value == Value::Null || version.value.as_str() == Some("");
        if !silent && version.value.as_str() != Some("v1") {
            sink.key("version", |sink| sink.wrong(&version.value, "v1"));
        }
    }
    Some(Config {
        resources: block(sink, mapping, "resources", resources).unwrap_or_default(),
        flags: block(sink, mapping, "flags", flags).unwrap_or_default(),
        sharing: block(sink, mapping, "sharing", sharing::decode).unwrap_or_default(),
        imex: block(sink, mapping, "imex", imex).unwrap_or_default(),
    })
}

/// The member of a plain block: keys match in any letter case, as in the original.
pub(super) fn field<'a>(mapping: &'a Mapping, key: &str) -> Option<&'a Member> {
    let any_case = |member: &&Member| member.key.eq_ignore_ascii_case(key);
    mapping
        .get(key)
        .or_else(|| mapping.members.iter().find(any_case))
}

/// Where each key belongs, to tell people who put it elsewhere.
const PLACES: [(&str, &str); 20] = [
    ("migStrategy", "flags"),
    ("failOnInitError", "flags"),
    ("mpsRoot", "flags"),
    ("nvidiaDriverRoot", "flags"),
    ("deviceDiscoveryStrategy", "flags"),
    ("plugin", "flags"),
    ("gfd", "flags"),
    ("passDeviceSpecs", "flags.plugin"),
    ("deviceListStrategy", "flags.plugin"),
    ("deviceIDStrategy", "flags.plugin"),
    ("sharedDevicesAllocationPolicy", "flags.plugin"),
    ("containerDriverRoot", "flags.plugin"),
    ("sleepInterval", "flags.gfd"),
    ("timeSlicing", "sharing"),
    ("mps", "sharing"),
    ("renameByDefault", "sharing.timeSlicing"),
    ("failRequestsGreaterThanOne", "sharing.timeSlicing"),
    ("replicas", "sharing.timeSlicing.resources[]"),
    ("channelIDs", "imex"),
    ("required", "imex"),
];

/// Warns of keys that are not in `known`: the original ignores them silently.
pub(super) fn unknown(sink: &mut Sink, mapping: &Mapping, known: &[&str], any_case: bool) {
    for Member { key, at, .. } in &mapping.members {
        let is = |name: &&str| key == name || any_case && key.eq_ignore_ascii_case(name);
        if known.iter().any(is) || sink.is_full() {
            continue;
        }
        let mut places = PLACES.iter();
        let place = places.find(|(name, _)| key.eq_ignore_ascii_case(name));
        let hint = match (nearest(key, known), place) {
            (Some(near), _) => format!("did you mean {near}?"),
            (None, Some((name, place))) => format!("{name} belongs into {place}"),
            (None, None) => format!("known here: {}", known.join(", ")),
        };
        let found = format!("the unknown key {}", quoted(key));
        let allowed = format!("which is ignored; {hint}");
        sink.warn(Code::UnknownKey, *at, found, allowed);
    }
}

/// Reads a block that may be absent or null.
fn block<T>(
    sink: &mut Sink,
    mapping: &Mapping,
    key: &str,
    read: impl FnOnce(&mut Sink, &Mapping) -> T,
) -> Option<T> {
    setting(sink, mapping, key, |sink, node| {
        sink.mapping(node, "a mapping")
            .map(|mapping| read(sink, mapping))
    })
}

/// Reads a value that may be absent or null.
fn setting<T>(
    sink: &mut Sink,
    mapping: &Mapping,
    key: &str,
    read: impl FnOnce(&mut Sink, &Node) -> Option<T>,
) -> Option<T> {
    let member = field(mapping, key)?;
    if member.value.value == Value::Null {
        return None;
    }
    sink.key(key, |sink| read(sink, &member.value))
}

/// Reads plain settings of a mapping into the fields of a value.
macro_rules! settings {
    ($sink:ident, $mapping:ident, $into:ident { $($key:literal => $field:ident: $read:expr,)+ }) => {
        $(if let Some(value) = setting($sink, $mapping, $key, $read) {
            $into.$field = value;
        })+
    };
}

fn text(sink: &mut Sink, node: &Node) -> Option<String> {
    sink.string(node, "text").map(str::to_owned)
}

fn flags(sink: &mut Sink, mapping: &Mapping) -> Flags {
    const KEYS: [&str; 12] = [
        "migStrategy",
        "failOnInitError",
        "mpsRoot",
        "nvidiaDriverRoot",
        "nvidiaDevRoot",
        "gdrcopyEnabled",
        "gdsEnabled",
        "mofedEnabled",
        "useNodeFeatureAPI",
        "deviceDiscoveryStrategy",
        "plugin",
        "gfd",
    ];
    unknown(sink, mapping, &KEYS, true);
    let mut flags = Flags::default();
    settings!(sink, mapping, flags {
        "migStrategy" => mig_strategy: choice,
        "failOnInitError" => fail_on_init_error: Sink::bool,
        "mpsRoot" => mps_root: text,
        "nvidiaDriverRoot" => nvidia_driver_root: text,
        "gdrcopyEnabled" => gdrcopy_enabled: Sink::bool,
        "gdsEnabled" => gds_enabled: Sink::bool,
        "mofedEnabled" => mofed_enabled: Sink::bool,
        "deviceDiscoveryStrategy" => device_discovery_strategy: choice,
    });
    flags.nvidia_dev_root.clone_from(&flags.nvidia_driver_root);
    settings!(sink, mapping, flags {
        "nvidiaDevRoot" => nvidia_dev_root: text,
    });
    flags.use_node_feature_api = setting(sink, mapping, "useNodeFeatureAPI", Sink::bool);
    flags.plugin = block(sink, mapping, "plugin", plugin).unwrap_or_default();
    flags.gfd = block(sink, mapping, "gfd", gfd).unwrap_or_default();
    flags
}

fn plugin(sink: &mut Sink, mapping: &Mapping) -> Plugin {
    const KEYS: [&str; 7] = [
        "passDeviceSpecs",
        "deviceListStrategy",
        "deviceIDStrategy",
        "cdiAnnotationPrefix",
        "nvidiaCTKPath",
        "containerDriverRoot",
        "sharedDevicesAllocationPolicy",
    ];
    unknown(sink, mapping, &KEYS, true);
    let mut plugin = Plugin::default();
    settings!(sink, mapping, plugin {
        "passDeviceSpecs" => pass_device_specs: Sink::bool,
        "deviceListStrategy" => device_list_strategy: list_strategies,
        "deviceIDStrategy" => device_id_strategy: choice,
        "cdiAnnotationPrefix" => cdi_annotation_prefix: text,
        "nvidiaCTKPath" => nvidia_ctk_path: text,
        "containerDriverRoot" => container_driver_root: text,
        "sharedDevicesAllocationPolicy" => shared_devices_allocation_policy: choice,
    });
    plugin
}

fn list_strategies(sink: &mut Sink, node: &Node) -> Option<BTreeSet<ListStrategy>> {
    match &node.value {
        Value::Sequence(items) if !items.is_empty() => sink
            .each(items, choice::<ListStrategy>)
            .into_iter()
            .collect(),
        Value::String(_) => choice(sink, node).map(|word| BTreeSet::from([word])),
        _ => {
            sink.wrong(node, &format!("a list, or {}", ListStrategy::expected()));
            None
        }
    }
}

fn gfd(sink: &mut Sink, mapping: &Mapping) -> Gfd {
    const KEYS: [&str; 5] = [
        "oneshot",
        "noTimestamp",
        "sleepInterval",
        "outputFile",
        "machineTypeFile",
    ];
    unknown(sink, mapping, &KEYS, true);
    let mut gfd = Gfd::default();
    settings!(sink, mapping, gfd {
        "oneshot" => oneshot: Sink::bool,
        "noTimestamp" => no_timestamp: Sink::bool,
        "sleepInterval" => sleep_interval: sleep_interval,
        "outputFile" => output_file: text,
        "machineTypeFile" => machine_type_file: text,
    });
    gfd
}

fn sleep_interval(sink: &mut Sink, node: &Node) -> Option<SleepInterval> {
    let every = match (&node.value, node.as_int()) {
        (Value::String(text), _) if text == "infinite" => return Some(SleepInterval::Infinite),
        (Value::String(text), _) => duration::parse(text),
        (_, Some(nanoseconds)) => u64::try_from(nanoseconds).ok().map(Duration::from_nanos),
        _ => None,
    };
    if every.is_none() {
        sink.wrong(node, "a duration such as 60s or 1h30m, or infinite");
    }
    every.map(SleepInterval::Every)
}

fn resources(sink: &mut Sink, mapping: &Mapping) -> Resources {
    unknown(sink, mapping, &["gpus", "mig"], true);
    let mut resources = Resources::default();
    settings!(sink, mapping, resources {
        "gpus" => gpus: patterns,
        "mig" => mig: patterns,
    });
    resources
}

fn patterns(sink: &mut Sink, node: &Node) -> Option<Vec<Pattern>> {
    let items = sink.sequence(node, "a list of {pattern, name}")?;
    sharing::not_portable(sink, node, "names of one's own");
    sink.each(items, pattern).into_iter().collect()
}

fn pattern(sink: &mut Sink, node: &Node) -> Option<Pattern> {
    let mapping = sink.mapping(node, "a mapping with pattern and name")?;
    let pattern = sharing::required(sink, node, mapping, "pattern", text);
    let name = sharing::required(sink, node, mapping, "name", sharing::resource_name);
    Some(Pattern {
        pattern: pattern?,
        name: name?,
    })
}

fn imex(sink: &mut Sink, mapping: &Mapping) -> Imex {
    unknown(sink, mapping, &["channelIDs", "required"], true);
    let mut imex = Imex::default();
    settings!(sink, mapping, imex {
        "channelIDs" => channel_0: channels,
        "required" => required: Sink::bool,
    });
    imex
}

fn channels(sink: &mut Sink, node: &Node) -> Option<bool> {
    const EXPECTED: &str = "[] or [0]: there is no other channel";
    let items = sink.sequence(node, EXPECTED)?;
    let ids: Vec<Option<i64>> = items.iter().map(Node::as_int).collect();
    match ids.as_slice() {
        [] => Some(false),
        [Some(0)] => Some(true),
        _ => {
            let shown: Vec<String> = items.iter().take(8).map(Node::describe).collect();
            let found = format!("a list of {}", shown.join(", "));
            sink.error(node.at, found, format!("expected {EXPECTED}"));
            None
        }
    }
}
