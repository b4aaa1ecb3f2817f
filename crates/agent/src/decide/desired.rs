// SPDX-License-Identifier: Apache-2.0
//! What is wanted of the node: labels, annotations, ConfigMaps, policy and settings, resolved.
//!
//! ```text
//! label device-plugin.config ─> policy default ─> file ─> exclusive      which sharing config
//! annotation ─> policy ─> flag, environment ─> sharing config ─> none    which strategy
//! label mig.config ─> (left as it is)                                    which MIG config
//! custom MIG ConfigMap over file over what is generated                  what its name means
//! ```

use std::collections::BTreeMap;

use config::deviceplugin::{Choice, Config, MigStrategy};
use config::gpu_clients;
use config::mig::{self, Entry};
use config::nearest::nearest;
use geometry::inventory::Inventory;
use kubeapi::ClusterPolicySpec;
use kubeapi::names;
use plan::{Refusal, Warning};
use units::Code;

use crate::settings::Settings;

/// Key of a custom MIG ConfigMap that holds the file (source: GPU Operator).
const MIG_KEY: &str = "config.yaml";
/// Key of a ConfigMap that holds the file of GPU clients (source: GPU Operator).
const CLIENTS_KEY: &str = "clients.yaml";

/// Everything that says what is wanted of the node.
#[derive(Clone, Debug, Default)]
pub struct Told {
    /// Labels of the node.
    pub labels: BTreeMap<String, String>,
    /// Annotations of the node.
    pub annotations: BTreeMap<String, String>,
    /// Data of the ConfigMaps that there are, by name.
    pub config_maps: BTreeMap<String, BTreeMap<String, String>>,
    /// The ClusterPolicy, if there is one.
    pub policy: Option<ClusterPolicySpec>,
}

impl Told {
    fn label(&self, key: &str) -> Option<&str> {
        let value = self.labels.get(key).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }

    fn annotation(&self, key: &str) -> Option<&str> {
        let value = self.annotations.get(key).map(|value| value.trim());
        value.filter(|value| !value.is_empty())
    }
}

/// What was good last: it stays in force while what is told cannot be used.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Kept {
    /// The sharing config.
    pub sharing: SharingConfig,
    /// The strategy that a change or the policy had set.
    pub strategy: Option<MigStrategy>,
}

/// What is wanted of the node.
#[derive(Clone, Debug)]
pub struct Desired {
    /// How devices are named, shared and handed out; overrides included.
    pub config: Config,
    /// The sharing config in force, before overrides, and the strategy that beats it.
    pub kept: Kept,
    /// The layout; `None`: it stays as it is.
    pub mig: Option<MigWanted>,
    /// What a person should know.
    pub findings: Vec<Warning>,
}

/// A sharing config as it was selected.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharingConfig {
    /// Its name and text; `None`: none was selected.
    pub source: Option<(String, String)>,
    /// What it says.
    pub config: Config,
}

impl SharingConfig {
    /// One that was in force before, from its name and text.
    pub fn read(name: String, text: String) -> Option<Self> {
        let config = read_plugin(&name, &text).ok()?;
        Some(Self {
            source: Some((name, text)),
            config,
        })
    }

    /// Its name; `None`: none was selected.
    pub fn name(&self) -> Option<&str> {
        self.source.as_ref().map(|(name, _)| name.as_str())
    }
}

/// A MIG config by name, and what the name means here.
#[derive(Clone, Debug, PartialEq)]
pub struct MigWanted {
    /// The name.
    pub name: String,
    /// Its entries, or why there are none.
    pub entries: Result<Vec<Entry>, Refusal>,
}

/// The ConfigMaps that the node needs: sharing, MIG, GPU clients.
pub fn config_maps(policy: Option<&ClusterPolicySpec>, settings: &Settings) -> Vec<String> {
    let sharing = sharing_map(policy, settings);
    let mig = policy.and_then(|policy| policy.mig_config_map.clone());
    let clients = clients_map(policy, settings);
    sharing.into_iter().chain(mig).chain(clients).collect()
}

/// The ConfigMap of GPU clients, if services may be stopped at all.
fn clients_map(policy: Option<&ClusterPolicySpec>, settings: &Settings) -> Option<String> {
    settings.services.as_ref()?;
    policy?.gpu_clients_config_map.clone()
}

/// The services of the node that are stopped while a layout changes.
///
/// # Errors
/// `config-not-found` or `config-invalid`, if ClusterPolicy names a ConfigMap of them that is not
/// there or cannot be read.
pub fn services(told: &Told, settings: &Settings) -> Result<Vec<String>, Refusal> {
    let Some(given) = &settings.services else {
        return Ok(Vec::new());
    };
    let Some(map) = clients_map(told.policy.as_ref(), settings) else {
        return Ok(given.systemd_services.clone());
    };
    let data = told.config_maps.get(&map);
    let text = data.and_then(|data| data.get(CLIENTS_KEY)).ok_or_else(|| {
        let message = format!("there is no ConfigMap {map} with a key {CLIENTS_KEY}");
        Refusal::new(Code::ConfigNotFound, message)
    })?;
    let parsed = gpu_clients::parse(&format!("ConfigMap {map}, key {CLIENTS_KEY}"), text);
    let clients = parsed.map_err(|faults| Refusal::new(faults.code, faults.to_string()))?;
    Ok(clients.0.systemd_services)
}

fn sharing_map(policy: Option<&ClusterPolicySpec>, settings: &Settings) -> Option<String> {
    let named = policy.and_then(|policy| policy.device_plugin_config_map.clone());
    let given = settings.kubernetes.as_ref();
    named.or_else(|| given.and_then(|given| given.sharing_config_map.clone()))
}

/// What is wanted of the node. A sharing config or strategy that cannot be used leaves `kept`, the last
/// good ones, in force.
pub fn resolve(
    told: &Told,
    settings: &Settings,
    inventory: Option<&Inventory>,
    kept: &Kept,
) -> Desired {
    let mut findings = Vec::new();
    let sharing = sharing(told, settings).unwrap_or_else(|finding| {
        let kept = kept.sharing.clone();
        let in_force = kept.name().unwrap_or("exclusive");
        findings.push(Warning {
            message: format!("{}; {in_force} stays in force", finding.message),
            ..finding
        });
        kept
    });
    let mut config = settings.overrides.over(sharing.config.clone());
    let strategy = strategy(told, kept.strategy, &mut findings);
    if let Some(strategy) = strategy {
        config.flags.mig_strategy = strategy;
    }
    Desired {
        config,
        kept: Kept { sharing, strategy },
        mig: wanted_mig(told, settings, inventory),
        findings,
    }
}

/// The sharing config that is selected, before overrides.
fn sharing(told: &Told, settings: &Settings) -> Result<SharingConfig, Warning> {
    let from_file = || {
        let file = settings.plugin_file.as_ref();
        let config = file.map(|(path, text)| read_plugin(path, text));
        Ok(SharingConfig {
            source: None,
            config: config.transpose()?.unwrap_or_default(),
        })
    };
    let map = sharing_map(told.policy.as_ref(), settings);
    let policy = told.policy.as_ref();
    let given = settings.kubernetes.as_ref();
    let default = policy
        .and_then(|policy| policy.device_plugin_default.as_deref())
        .or_else(|| given.and_then(|given| given.sharing_default.as_deref()));
    let label = told.label(names::DEVICE_PLUGIN_CONFIG);
    let Some(name) = label.or(default) else {
        return from_file();
    };
    let not_found = |message: String| Warning {
        code: Code::ConfigNotFound,
        message,
    };
    let by = match label {
        Some(_) => format!("the label {}={name}", names::DEVICE_PLUGIN_CONFIG),
        None => format!("the default sharing config {name}"),
    };
    let Some(map) = map else {
        return Err(not_found(format!(
            "{by} selects nothing: no ConfigMap is named in ClusterPolicy \
             spec.devicePlugin.config.name"
        )));
    };
    let Some(data) = told.config_maps.get(&map) else {
        return Err(not_found(format!(
            "{by} selects nothing: there is no ConfigMap {map}"
        )));
    };
    let Some(text) = data.get(name) else {
        let keys: Vec<&str> = data.keys().map(String::as_str).collect();
        return Err(not_found(format!(
            "{by} selects nothing: ConfigMap {map} has no key {name}; it has {}",
            keys.join(", ")
        )));
    };
    let config = read_plugin(&format!("ConfigMap {map}, key {name}"), text)?;
    Ok(SharingConfig {
        source: Some((name.to_owned(), text.clone())),
        config,
    })
}

fn read_plugin(place: &str, text: &str) -> Result<Config, Warning> {
    let invalid = |message: String| Warning {
        code: Code::ConfigInvalid,
        message,
    };
    let parsed = config::deviceplugin::parse(place, text).into_config();
    parsed.map_err(|problems| invalid(problems.to_string()))
}

/// The strategy that a change or the policy sets over flags and files.
fn strategy(
    told: &Told,
    kept: Option<MigStrategy>,
    findings: &mut Vec<Warning>,
) -> Option<MigStrategy> {
    let annotation = told.annotation(names::MIG_STRATEGY);
    let policy = told.policy.as_ref();
    let policy = policy.and_then(|policy| policy.mig_strategy.as_deref());
    let sources = [
        ("the annotation slicewright.dev/mig-strategy", annotation),
        ("ClusterPolicy spec.mig.strategy", policy),
    ];
    let mut last = None;
    for (place, word) in sources {
        let Some(word) = word else { continue };
        match MigStrategy::from_word(word) {
            Some(strategy) => return Some(strategy),
            None => {
                last = kept;
                let stays = kept.map(|kept| format!("; {} stays in force", kept.as_str()));
                findings.push(Warning {
                    code: Code::ConfigInvalid,
                    message: format!(
                        "{place} is {word:?}, expected one of none, single, mixed{}",
                        stays.unwrap_or_default()
                    ),
                });
            }
        }
    }
    last
}

fn wanted_mig(
    told: &Told,
    settings: &Settings,
    inventory: Option<&Inventory>,
) -> Option<MigWanted> {
    let name = told.label(names::MIG_CONFIG)?.to_owned();
    let inventory = inventory?;
    let entries = mig_entries(&name, told, settings, inventory);
    Some(MigWanted { name, entries })
}

fn mig_entries(
    name: &str,
    told: &Told,
    settings: &Settings,
    inventory: &Inventory,
) -> Result<Vec<Entry>, Refusal> {
    let mut names: Vec<String> = Vec::new();
    let mut fault = None;
    for (place, text) in mig_texts(told, settings) {
        let text = text.map_err(|reason| Refusal::new(Code::ConfigNotFound, reason));
        match text.and_then(|text| from_text(name, &place, &text, &mut names)) {
            Ok(Some(entries)) => return Ok(entries),
            Ok(None) => {}
            Err(refusal) => fault = fault.or(Some(refusal)),
        }
    }
    let generated = plan::generated(inventory);
    if let Some(config) = generated.get(name) {
        return Ok(config.entries.clone());
    }
    // A file that cannot be read may have had it.
    if let Some(refusal) = fault {
        return Err(refusal);
    }
    names.extend(generated.names().into_iter().map(str::to_owned));
    names.dedup();
    let known: Vec<&str> = names.iter().map(String::as_str).collect();
    let near = nearest(name, &known).map(|near| format!("; did you mean {near}?"));
    Err(Refusal {
        code: Code::ConfigNotFound,
        message: format!(
            "there is no MIG config {name:?} for this node{}",
            near.unwrap_or_default()
        ),
        choices: names,
    })
}

/// Files with MIG configs, the one that wins first, each with its place.
fn mig_texts(told: &Told, settings: &Settings) -> Vec<(String, Result<String, String>)> {
    let map = told.policy.as_ref();
    let map = map.and_then(|policy| policy.mig_config_map.as_deref());
    let custom = map.map(|map| {
        let place = format!("ConfigMap {map}, key {MIG_KEY}");
        let data = told.config_maps.get(map);
        let text = data.and_then(|data| data.get(MIG_KEY)).cloned();
        let missing = || match data {
            Some(_) => format!("ConfigMap {map} has no key {MIG_KEY}"),
            None => format!("there is no ConfigMap {map}"),
        };
        (place, text.ok_or_else(missing))
    });
    let file = settings.mig_file.clone();
    let file = file.map(|(path, text)| (path, Ok(text)));
    custom.into_iter().chain(file).collect()
}

/// The entries of that name in a file, `None` if it has no such name.
fn from_text(
    name: &str,
    place: &str,
    text: &str,
    names: &mut Vec<String>,
) -> Result<Option<Vec<Entry>>, Refusal> {
    let parsed = mig::parse(place, text);
    let has = parsed.names().contains(&name);
    names.extend(parsed.names().into_iter().map(str::to_owned));
    match parsed.select(Some(name)) {
        Ok(selected) => Ok(Some(selected.entries)),
        Err(problems) if problems.code == Code::ConfigNotFound && !has => Ok(None),
        Err(problems) => Err(Refusal::new(problems.code, problems.to_string())),
    }
}
