// SPDX-License-Identifier: Apache-2.0
//! What is accepted, refused and warned of, row by row of the format.

use super::*;
use crate::diagnostic::Problems;
use units::Code;

const GOOD: &str = "version: v1
mig-configs:
  all-disabled:
  - devices: all
    mig-enabled: false
  custom:
  - devices: [0, 1]
    mig-enabled: yes
    mig-devices: {1g.10gb: 7, 2g.20gb: 0}
  - device-filter: [\"0x20B010DE\", \"0x233010DE:0x16C110DE\"]
    devices: [2]
    mig-enabled: true
    mig-devices: {}
";

/// A file with the one configuration `x` that has this entry.
fn with_entry(entry: &str) -> String {
    format!("version: v1\nmig-configs:\n  x:\n  - {entry}\n")
}

fn messages(problems: &Problems) -> Vec<String> {
    problems
        .diagnostics
        .iter()
        .map(ToString::to_string)
        .collect()
}

fn profile(name: &str) -> ProfileName {
    name.parse().unwrap()
}

#[test]
fn a_good_file_is_read_as_it_is() {
    let parsed = parse("f", GOOD);
    assert_eq!(parsed.names(), ["all-disabled", "custom"]);
    let custom = parsed.select(Some("custom")).unwrap();
    assert!(custom.warnings.is_empty());
    assert_eq!(custom.entries[0].devices, Devices::Indices(vec![0, 1]));
    assert!(custom.entries[0].mig_enabled);
    assert_eq!(
        custom.entries[0].mig_devices,
        BTreeMap::from([(profile("1g.10gb"), 7)])
    );
    assert_eq!(
        custom.entries[1].device_filter[1].to_string(),
        "0x233010DE:0x16C110DE"
    );
    let off = parsed.select(Some("all-disabled")).unwrap();
    assert_eq!(off.entries[0].devices, Devices::All);
}

#[test]
fn the_configuration_must_be_named_and_known() {
    let parsed = parse("f", GOOD);
    let error = parsed.select(Some("all-disable")).unwrap_err();
    assert_eq!(error.code, Code::ConfigNotFound);
    assert_eq!(
        error.to_string(),
        "f has no configuration \"all-disable\"; did you mean all-disabled? \
         There are: all-disabled, custom"
    );
    let error = parsed.select(None).unwrap_err();
    assert_eq!(error.code, Code::ConfigNotFound);
    assert!(error.to_string().contains("say which"), "{error}");
    let one = parse("f", &with_entry("{devices: all, mig-enabled: false}"));
    assert_eq!(one.select(None).unwrap().name, "x");
    let error = parse("f", "").select(Some("x")).unwrap_err();
    assert_eq!(error.code, Code::ConfigNotFound);
    assert_eq!(
        parse("f", "version: v1\n").select(None).unwrap_err().code,
        Code::ConfigNotFound
    );
}

#[test]
fn faults_of_the_whole_file_are_errors() {
    let entry = "mig-configs: {x: [{devices: all, mig-enabled: false}]}";
    for (text, message) in [
        (
            format!("{entry}\n"),
            "f:1:1: found no version, expected version: v1",
        ),
        (
            format!("version: v2\n{entry}\n"),
            "f:1:10: version: found the text \"v2\", expected v1",
        ),
        (
            format!("version: 1\n{entry}\n"),
            "f:1:10: version: found the number 1, expected v1",
        ),
        (
            format!("version: v1\n{entry}\nMig-Configs: {{}}\n"),
            "f:3:1: found the unknown key \"Mig-Configs\", did you mean mig-configs? \
             Known: version, mig-configs",
        ),
        (
            format!("version: v1\n{entry}\nversion: v1\n"),
            "f:3:1: found the key \"version\" again, it stands at 1:1 already; keep one of them",
        ),
        (
            "{}".to_owned(),
            "f:1:1: found no version, expected version: v1",
        ),
        (
            "version: v1\nmig-configs: {}\n".to_owned(),
            "f:2:14: mig-configs: found an empty mapping, expected a mapping from names to lists \
             of entries, with at least one name",
        ),
        (
            "version: v1\nmig-configs: []\n".to_owned(),
            "f:2:14: mig-configs: found a list, expected a mapping from names to lists of \
             entries, with at least one name",
        ),
        (
            "- 1\n".to_owned(),
            "f:1:1: found a list, expected a mapping with version and mig-configs",
        ),
        (
            "version: v1\n  x: [\n".to_owned(),
            "f:2:4: mapping values are not allowed in this context",
        ),
        (
            "flags: {}\n".to_owned(),
            "f:1:1: found a device-plugin config, expected a MIG config",
        ),
    ] {
        let error = parse("f", &text).select(Some("x")).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        assert_eq!(messages(&error), [message], "{text}");
    }
}

#[test]
fn faults_of_an_entry_are_errors_of_its_configuration() {
    for (entry, message) in [
        ("{mig-enabled: false}", "3:5: x[0]: found no devices"),
        ("{devices: all}", "3:5: x[0]: found no mig-enabled"),
        (
            "{devices: ALL, mig-enabled: false}",
            "x[0].devices: found the text \"ALL\", expected all",
        ),
        (
            "{devices: [all], mig-enabled: false}",
            "x[0].devices[0]: found the text \"all\"",
        ),
        (
            "{devices: null, mig-enabled: false}",
            "x[0].devices: found nothing",
        ),
        (
            "{devices: [0.5], mig-enabled: false}",
            "x[0].devices[0]: found the number 0.5",
        ),
        (
            "{devices: [\"0\"], mig-enabled: false}",
            "expected a GPU index such as 0 without quotes",
        ),
        (
            "{devices: \"0\", mig-enabled: false}",
            "x[0].devices: found the text \"0\"",
        ),
        (
            "{devices: all, mig-enabled: \"true\"}",
            "expected true or false without quotes",
        ),
        (
            "{devices: all, mig-enabled: 1}",
            "x[0].mig-enabled: found the number 1",
        ),
        (
            "{devices: all, mig-enabled: true}",
            "x[0]: found no mig-devices",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: null}",
            "x[0]: found no mig-devices",
        ),
        (
            "{devices: all, mig-enabled: false, mig-devices: {1g.5gb: 1}}",
            "x[0].mig-devices: found slices, mig-enabled: false must have none",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 0}}",
            "x[0].mig-devices: found only counts of 0",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: -1}}",
            "x[0].mig-devices.1g.5gb: found the number -1",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: \"1\"}}",
            "expected how many: a whole number from 0 without quotes",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 1.5}}",
            "x[0].mig-devices.1g.5gb: found the number 1.5",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 99999999999}}",
            "x[0].mig-devices.1g.5gb: found the number 99999999999",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb.me: 1}}",
            "x[0].mig-devices: found the profile \"1g.5gb.me\"",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {5c.3g.20gb: 1}}",
            "its compute part is larger than its GPU instance",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 1, 1c.1g.5gb: 2}}",
            "found the profile 1g.5gb again, \"1c.1g.5gb\" is another name of it",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 1, 1g.5gb: 2}}",
            "found the key \"1g.5gb\" again",
        ),
        (
            "{devices: all, mig-enabled: true, mig-devices: [1g.5gb]}",
            "mig-devices: found a list",
        ),
        (
            "{devices: all, mig-enabled: false, devcies: all}",
            "did you mean devices?",
        ),
        (
            "{devices: all, mig-enabled: false, gpu-clients: []}",
            "unknown key \"gpu-clients\"",
        ),
        (
            "{device-filter: A100-SXM4-40GB, devices: all, mig-enabled: false}",
            "x[0].device-filter: found the text \"A100-SXM4-40GB\", which matches no GPU",
        ),
        (
            "{device-filter: [\"0x20B010DE\", \"\"], devices: all, mig-enabled: false}",
            "x[0].device-filter[1]: found the text \"\"",
        ),
        (
            "{device-filter: 0x20B010DE, devices: all, mig-enabled: false}",
            "found the number 0x20B010DE without quotes, expected \"0x20B010DE\"",
        ),
    ] {
        let text = with_entry(entry);
        let error = parse("f", &text).select(None).unwrap_err();
        assert_eq!(error.code, Code::ConfigInvalid);
        let messages = messages(&error);
        assert!(
            messages
                .iter()
                .any(|found| found.contains(message.trim_start_matches("3:5: "))),
            "{entry}: {messages:#?}"
        );
        assert!(
            messages.iter().all(|found| found.starts_with("f:4:")),
            "{messages:#?}"
        );

        let other = format!("{text}  good:\n  - devices: all\n    mig-enabled: false\n");
        let good = parse("f", &other).select(Some("good")).unwrap();
        assert!(!good.warnings.is_empty());
        assert!(
            good.warnings
                .iter()
                .all(|w| w.code == Code::UnselectedConfigFault && !w.is_error())
        );
        assert!(parse("f", &other).into_file().is_err());
    }
}

#[test]
fn shapes_of_a_configuration_are_checked() {
    for (configs, message) in [
        ("{x: []}", "f:2:18: mig-configs.x: found an empty list"),
        (
            "{x: {devices: all, mig-enabled: false}}",
            "f:2:18: mig-configs.x: found a mapping",
        ),
        ("{x: null}", "f:2:18: mig-configs.x: found nothing"),
        ("{x: [7]}", "f:2:19: mig-configs.x[0]: found the number 7"),
        (
            "{x: [{devices: all, mig-enabled: false}], x: [{devices: all, mig-enabled: false}]}",
            "f:2:56: mig-configs: found the key \"x\" again, it stands at 2:15 already",
        ),
    ] {
        let text = format!("version: v1\nmig-configs: {configs}\n");
        let error = parse("f", &text).select(Some("x")).unwrap_err();
        assert!(messages(&error)[0].starts_with(message), "{error}");
    }
}

#[test]
fn what_the_original_accepts_is_accepted() {
    for entry in [
        "{devices: [], mig-enabled: false}",
        "{devices: [-1, 99, 0, 0, 7.0], mig-enabled: false}",
        "{devices: all, mig-enabled: off, mig-devices: {}}",
        "{devices: all, mig-enabled: false, mig-devices: null}",
        "{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7.0, 1c.3g.20gb: 1}}",
        "{devices: all, mig-enabled: true, mig-devices: {01g.5gb: 1, 1g.5gb+ME: 1}}",
        "{device-filter: \"\", devices: all, mig-enabled: false}",
        "{device-filter: [], devices: all, mig-enabled: false}",
        "{device-filter: \"548409566\", devices: all, mig-enabled: false}",
        "{\"device-filter\": \"0x20B010DE\", \"devices\": \"all\", \"mig-enabled\": false}",
    ] {
        let selected = parse("f", &with_entry(entry)).select(None);
        assert!(
            selected.as_ref().is_ok_and(|it| it.warnings.is_empty()),
            "{entry}: {selected:?}"
        );
    }
}

#[test]
fn a_bare_index_is_accepted_with_a_warning() {
    let selected = parse("f", &with_entry("{devices: 7, mig-enabled: false}"))
        .select(None)
        .unwrap();
    assert_eq!(selected.entries[0].devices, Devices::Indices(vec![7]));
    assert_eq!(selected.warnings[0].code, Code::NotPortable);
}

#[test]
fn filters_match_by_device_and_subsystem() {
    let entry = |filter: &str| {
        let text = with_entry(&format!(
            "{{device-filter: {filter}, devices: [0, 2], mig-enabled: false}}"
        ));
        parse("f", &text).select(None).unwrap().entries.remove(0)
    };
    let (h100, a100, sub) = (
        PciDevice(0x2330_10DE),
        PciDevice(0x20B0_10DE),
        PciDevice(0x16C1_10DE),
    );
    assert!(entry("\"\"").matches(0, h100, sub));
    assert!(entry("\"0x233010DE\"").matches(2, h100, sub));
    assert!(!entry("\"0x233010DE\"").matches(1, h100, sub));
    assert!(!entry("\"0x233010de\"").matches(0, a100, sub));
    assert!(entry("[\"0x20B010DE\", \"0x233010DE:0x16C110DE\"]").matches(0, h100, sub));
    assert!(!entry("\"0x233010DE:0x16C010DE\"").matches(0, h100, sub));
    assert!(entry("\"590352606\"").matches(0, h100, sub));
}

#[test]
fn a_config_map_is_opened_and_positions_are_those_of_the_manifest() {
    let manifest = "apiVersion: v1
kind: ConfigMap
metadata:
  name: custom-mig-config
data:
  config.yaml: |

    version: v1
    mig-configs:

      x:
        - devices: al
          mig-enabled: false
";
    let error = parse("f", manifest).select(None).unwrap_err();
    assert_eq!(
        messages(&error),
        [
            "f:12:20: data[config.yaml].mig-configs.x[0].devices: found the text \"al\", \
          expected all, or a list of GPU indices such as [0, 1]"
        ]
    );
    let broken = manifest.replace("mig-enabled: false", "mig-enabled: [");
    let error = parse("f", &broken).select(None).unwrap_err();
    assert!(messages(&error)[0].starts_with("f:13:2"), "{error}");
    let quoted = "kind: ConfigMap\ndata:\n  config.yaml: \"version: v2\\nmig-configs: {x: []}\"\n";
    let error = parse("f", quoted).select(None).unwrap_err();
    assert!(
        messages(&error)[0].starts_with("f:3:16: data[config.yaml].version"),
        "{error}"
    );
    let two = "kind: ConfigMap\ndata: {a: 'mig-configs: {}', b: 'mig-configs: {}'}\n";
    let error = parse("f", two).select(None).unwrap_err();
    assert!(error.to_string().contains("exactly one key"), "{error}");
}

#[test]
fn a_second_document_is_ignored_with_a_warning() {
    let text = format!("{GOOD}---\nversion: v2\n");
    let selected = parse("f", &text).select(Some("custom")).unwrap();
    assert_eq!(selected.warnings[0].code, Code::ContentIgnored);
    assert_eq!(selected.warnings[0].at.line, 14);
}

#[test]
fn printing_reads_back() {
    let file = parse("f", GOOD).into_file().unwrap();
    assert_eq!(
        print(&file, Format::Yaml),
        "version: v1
mig-configs:
  all-disabled:
  - devices: all
    mig-enabled: false
    mig-devices: {}
  custom:
  - devices: [0, 1]
    mig-enabled: true
    mig-devices:
      1g.10gb: 7
  - device-filter: [\"0x20B010DE\", \"0x233010DE:0x16C110DE\"]
    devices: [2]
    mig-enabled: true
    mig-devices: {}
"
    );
    for format in [Format::Yaml, Format::Json] {
        assert_eq!(parse("f", &print(&file, format)).into_file().unwrap(), file);
    }
}

#[test]
fn a_manifest_of_many_bombs_is_refused_quickly() {
    let bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n    \
                c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\n    d: [*c, *c, *c, *c, *c]\n";
    let mut manifest = String::from("kind: ConfigMap\ndata:\n");
    for key in 0..20_000 {
        manifest.push_str(&format!("  k{key}: |\n    {bomb}"));
    }
    let error = parse("f", &manifest).select(None).unwrap_err();
    assert!(
        error.to_string().contains("too many values"),
        "{}",
        error.message
    );
    assert!(error.diagnostics.len() <= 201);

    let many = "  k: |\n    version: v1\n";
    let keys: String = (0..100_000)
        .map(|key| many.replace('k', &format!("k{key}")))
        .collect();
    let parsed = parse("f", &format!("kind: ConfigMap\ndata:\n{keys}"));
    assert!(parsed.select(None).is_err());
}

#[test]
fn thousands_of_faults_are_cut_short() {
    let entry = "  - {devices: ALL, x: 1, mig-enabled: 7}\n";
    let name = "n".repeat(100_000);
    let text = format!(
        "version: v1\nmig-configs:\n  ? {name}\n  :\n{}",
        entry.repeat(10_000)
    );
    let parsed = parse("f", &text);
    assert!(
        parsed.diagnostics().len() < 20,
        "{}",
        parsed.diagnostics().len()
    );
    let error = parsed.select(None).unwrap_err();
    assert!(
        error.to_string().contains("the rest is not shown"),
        "{}",
        error.diagnostics[0].found
    );
}
