// SPDX-License-Identifier: Apache-2.0
//! What is wanted: labels, ConfigMaps, policy, flags.

use agent::decide::{Desired, Kept, Told, config_maps, resolve};
use config::deviceplugin::{Config, MigStrategy, Sharing};
use kubeapi::ClusterPolicySpec;
use units::Code;

use crate::support::{Machine, labelled, map, settings};

const SHARED: &str = "version: v1\nsharing:\n  timeSlicing:\n    renameByDefault: true\n    \
                      resources: [{name: nvidia.com/gpu, replicas: 4}]\n";

fn shared(label: Option<&str>, default: Option<&str>, text: &str) -> Told {
    let labels = label.map(|label| ("nvidia.com/device-plugin.config", label));
    Told {
        config_maps: [(
            "sharing".to_owned(),
            map(&[("shared-4", text), ("exclusive", "")]),
        )]
        .into(),
        policy: Some(ClusterPolicySpec {
            device_plugin_config_map: Some("sharing".to_owned()),
            device_plugin_default: default.map(str::to_owned),
            ..ClusterPolicySpec::default()
        }),
        ..labelled(labels.as_slice())
    }
}

fn codes(desired: &Desired) -> Vec<Code> {
    desired
        .findings
        .iter()
        .map(|finding| finding.code)
        .collect()
}

fn is_shared(config: &Config) -> bool {
    matches!(config.sharing, Sharing::TimeSlicing(_))
}

#[test]
fn a_label_or_the_default_selects_a_sharing_config() {
    let settings = settings();
    for (label, default, expected) in [
        (None, None, None),
        (Some("shared-4"), None, Some("shared-4")),
        (None, Some("shared-4"), Some("shared-4")),
        (Some("exclusive"), Some("shared-4"), Some("exclusive")),
        (Some(" "), Some("shared-4"), Some("shared-4")),
    ] {
        let told = shared(label, default, SHARED);
        let desired = resolve(&told, &settings, None, &Kept::default());
        assert_eq!(
            desired.kept.sharing.name(),
            expected,
            "{label:?} {default:?}"
        );
        assert_eq!(is_shared(&desired.config), expected == Some("shared-4"));
        assert_eq!(codes(&desired), []);
    }
}

#[test]
fn what_cannot_be_used_leaves_the_last_good_one_and_is_told() {
    let settings = settings();
    let good = resolve(
        &shared(Some("shared-4"), None, SHARED),
        &settings,
        None,
        &Kept::default(),
    );
    let kept = good.kept;
    let gone = Told {
        config_maps: [].into(),
        ..shared(Some("shared-4"), None, SHARED)
    };
    let no_map = labelled(&[("nvidia.com/device-plugin.config", "shared-4")]);
    for (told, code, words) in [
        (
            shared(Some("shard-4"), None, SHARED),
            Code::ConfigNotFound,
            "it has exclusive, shared-4",
        ),
        (
            shared(Some("shared-4"), None, "sharing: 7"),
            Code::ConfigInvalid,
            "key shared-4",
        ),
        (gone, Code::ConfigNotFound, "there is no ConfigMap sharing"),
        (
            no_map,
            Code::ConfigNotFound,
            "spec.devicePlugin.config.name",
        ),
    ] {
        let desired = resolve(&told, &settings, None, &kept);
        assert_eq!(codes(&desired), [code]);
        let message = &desired.findings[0].message;
        assert!(
            message.contains(words) && message.contains("stays in force"),
            "{message}"
        );
        assert_eq!(desired.kept.sharing.name(), Some("shared-4"));
        assert!(is_shared(&desired.config));
        // Without a last good one it is exclusive.
        assert!(!is_shared(
            &resolve(&told, &settings, None, &Kept::default()).config
        ));
    }
}

#[test]
fn the_strategy_is_that_of_the_first_who_says_something() {
    let told = |annotation: Option<&str>, policy: Option<&str>, text: &str| {
        let mut told = shared(Some("shared-4"), None, text);
        let annotation = annotation.map(|word| ("slicewright.dev/mig-strategy", word));
        told.annotations = map(annotation.as_slice());
        let strategy = policy.map(str::to_owned);
        told.policy.as_mut().unwrap().mig_strategy = strategy;
        told
    };
    let in_file = "flags: {migStrategy: single}";
    for (annotation, policy, flag, text, expected) in [
        (None, None, None, "", MigStrategy::None),
        (None, None, None, in_file, MigStrategy::Single),
        (
            None,
            None,
            Some(MigStrategy::Mixed),
            in_file,
            MigStrategy::Mixed,
        ),
        (
            None,
            Some("none"),
            Some(MigStrategy::Mixed),
            in_file,
            MigStrategy::None,
        ),
        (
            Some("single"),
            Some("none"),
            Some(MigStrategy::Mixed),
            "",
            MigStrategy::Single,
        ),
        // Nonsense says nothing, and is told.
        (Some("any"), Some("mixed"), None, "", MigStrategy::Mixed),
    ] {
        let mut settings = settings();
        settings.overrides.mig_strategy = flag;
        let desired = resolve(
            &told(annotation, policy, text),
            &settings,
            None,
            &Kept::default(),
        );
        assert_eq!(desired.config.flags.mig_strategy, expected);
        assert_eq!(
            codes(&desired).len(),
            usize::from(annotation == Some("any"))
        );
    }
}

fn with_mig(name: &str, custom: Option<&str>) -> Told {
    let mut told = labelled(&[("nvidia.com/mig.config", name)]);
    if let Some(text) = custom {
        told.config_maps = [("custom".to_owned(), map(&[("config.yaml", text)]))].into();
        told.policy = Some(ClusterPolicySpec {
            mig_config_map: Some("custom".to_owned()),
            ..ClusterPolicySpec::default()
        });
    }
    told
}

#[test]
fn a_custom_mig_config_adds_to_the_generated_ones_and_wins() {
    let inventory = Machine::new("1xH100-80GB-SXM").inventory();
    let custom = "version: v1\nmig-configs:\n  five:\n  - {devices: all, mig-enabled: true, \
                  mig-devices: {1g.10gb: 5}}\n  all-1g.10gb:\n  - {devices: all, mig-enabled: \
                  true, mig-devices: {1g.10gb: 3}}\n";
    let count = |name: &str, custom| {
        let desired = resolve(
            &with_mig(name, custom),
            &settings(),
            Some(&inventory),
            &Kept::default(),
        );
        let entries = desired.mig.unwrap().entries.unwrap();
        entries[0].mig_devices.values().sum::<u32>()
    };
    assert_eq!(count("five", Some(custom)), 5);
    assert_eq!(count("all-1g.10gb", Some(custom)), 3);
    assert_eq!(count("all-1g.10gb", None), 7);
    assert_eq!(count("all-balanced", Some(custom)), 4);
    // A file that cannot be read hides no generated name.
    assert_eq!(count("all-balanced", Some("mig-configs: 7")), 4);
}

#[test]
fn a_mig_config_that_nobody_knows_is_refused_with_the_names_that_there_are() {
    let inventory = Machine::new("1xH100-80GB-SXM").inventory();
    let desired = |name: &str, custom| {
        let told = with_mig(name, custom);
        let desired = resolve(&told, &settings(), Some(&inventory), &Kept::default());
        desired.mig.unwrap().entries.unwrap_err()
    };
    let typo = desired("all-1g.10gbb", None);
    assert_eq!(typo.code, Code::ConfigNotFound);
    assert!(
        typo.message.contains("did you mean all-1g.10gb?"),
        "{}",
        typo.message
    );
    assert!(typo.choices.contains(&"all-balanced".to_owned()));
    // Where a file that may have had it cannot be read, that is what is wrong.
    let broken = desired(
        "five",
        Some("version: v1\nmig-configs:\n  five: [{devices: al}]\n"),
    );
    assert_eq!(broken.code, Code::ConfigInvalid);
}

#[test]
fn the_config_maps_that_matter_are_those_that_the_policy_names() {
    let told = with_mig("x", Some(""));
    assert_eq!(config_maps(told.policy.as_ref(), &settings()), ["custom"]);
    assert_eq!(config_maps(None, &settings()), [""; 0]);
    let mut settings = settings();
    settings.kubernetes.as_mut().unwrap().sharing_config_map = Some("mine".to_owned());
    assert_eq!(
        config_maps(told.policy.as_ref(), &settings),
        ["mine", "custom"]
    );
}

#[test]
fn a_strategy_that_cannot_be_used_leaves_the_last_good_one() {
    let told = |strategy: &str| {
        let mut told = shared(None, None, SHARED);
        told.policy.as_mut().unwrap().mig_strategy = Some(strategy.to_owned());
        told
    };
    let good = resolve(&told("single"), &settings(), None, &Kept::default());
    for wrong in ["many", "7"] {
        let desired = resolve(&told(wrong), &settings(), None, &good.kept);
        assert_eq!(desired.config.flags.mig_strategy, MigStrategy::Single);
        assert_eq!(desired.kept, good.kept);
        assert_eq!(codes(&desired), [Code::ConfigInvalid]);
        assert!(
            desired.findings[0]
                .message
                .contains("single stays in force")
        );
    }
    // A policy that says nothing is no mistake.
    let silent = shared(None, None, SHARED);
    let desired = resolve(&silent, &settings(), None, &good.kept);
    assert_eq!(desired.config.flags.mig_strategy, MigStrategy::None);
    assert_eq!(codes(&desired), []);
}
