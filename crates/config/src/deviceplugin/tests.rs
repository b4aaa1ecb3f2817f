// SPDX-License-Identifier: Apache-2.0
//! The recorded behaviour of the original device plugin, and our messages.

use super::*;
use serde_json::{Value, json};
use units::Code;

fn vector(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

const ERRORS: &str = include_str!("../../../../vectors/config/errors.json");
const DEFAULTS: &str = include_str!("../../../../vectors/config/defaults.json");

/// Cases where the recorded program is known to be worse, with the reason.
const BETTER: [&str; 1] = [
    // 49 replicas under MPS: the recorded plugin waits for ever for a daemon that refuses.
    "43-mps49",
];

#[test]
fn recorded_outcomes_are_ours() {
    let cases = vector(ERRORS);
    let cases = cases.as_array().unwrap();
    assert_eq!(cases.len(), 45);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let text = case["config_text"].as_str().unwrap();
        let config = parse("f", text).into_config();
        let accepted = config.is_ok_and(|config| config.conflicts().is_empty());
        let expected = case["outcome"] == "ok" && !BETTER.contains(&name);
        assert_eq!(
            accepted,
            expected,
            "{name}: {:?}",
            parse("f", text).diagnostics()
        );
    }
}

#[test]
fn defaults_are_those_recorded() {
    let mut recorded = vector(DEFAULTS);
    // Resource names and version are no settings here: they are fixed.
    let fixed = recorded["resources"].take();
    assert_eq!(
        fixed,
        json!({"gpus": [{"pattern": "*", "name": "nvidia.com/gpu"}]})
    );
    recorded.as_object_mut().unwrap().remove("resources");
    assert_eq!(recorded["version"].take(), "v1");
    recorded.as_object_mut().unwrap().remove("version");
    let ours = parse("f", "").into_config().unwrap();
    assert_eq!(serde_json::to_value(&ours).unwrap(), recorded);
    assert_eq!(ours, Config::default());
}

#[test]
fn messages_name_key_value_and_choices() {
    for (text, message) in [
        (
            "flags: {migStrategy: foo}",
            "f:1:22: flags.migStrategy: found the text \"foo\", expected one of none, single, mixed",
        ),
        (
            "flags: {plugin: {deviceListStrategy: [envvar, foo]}}",
            "f:1:47: flags.plugin.deviceListStrategy[1]: found the text \"foo\", expected one of \
             envvar, volume-mounts, cdi-annotations, cdi-cri",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: \"4\"}]}}",
            "f:1:59: sharing.timeSlicing.resources[0].replicas: found the text \"4\", expected a \
             whole number from 2 without quotes",
        ),
        (
            "sharing: {mps: {resources: [{name: gpu, replicas: 49}]}}",
            "f:1:51: sharing.mps.resources[0].replicas: found the number 49, expected a whole \
             number from 2 to 48, the most that MPS serves",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: example.com/gpu, replicas: 4}]}}",
            "f:1:44: sharing.timeSlicing.resources[0].name: found the text \"example.com/gpu\", \
             only resources of nvidia.com can be shared: expected a name such as nvidia.com/gpu",
        ),
        (
            "sharing: {timeSlicing: null}",
            "f:1:24: sharing.timeSlicing: found nothing, expected a mapping with resources, or no \
             such key at all",
        ),
        (
            "imex: {channelIDs: [0, 1]}",
            "f:1:20: imex.channelIDs: found a list of the number 0, the number 1, expected [] or \
             [0]: there is no other channel",
        ),
        (
            "flags: {gfd: {sleepInterval: abc}}",
            "f:1:30: flags.gfd.sleepInterval: found the text \"abc\", expected a duration such as \
             60s or 1h30m, or infinite",
        ),
        (
            "flags: {migStrategy: none, migStrategy: none}",
            "f:1:28: flags: found the key \"migStrategy\" again, it stands at 1:9 already; keep \
             one of them",
        ),
    ] {
        let problems = parse("f", text).into_config().unwrap_err();
        let messages: Vec<String> = problems
            .diagnostics
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(messages, [message]);
    }
}

#[test]
fn all_errors_are_found_at_once() {
    let text = "version: v2
flags:
  migStrategy: foo
  failOnInitError: \"true\"
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/GPU, replicas: 1}
    - {replicas: 2}
  mps: {}
";
    let problems = parse("f", text).into_config().unwrap_err();
    let lines: Vec<usize> = problems
        .diagnostics
        .iter()
        .map(|fault| fault.at.line)
        .collect();
    assert_eq!(lines, [1, 3, 4, 8, 8, 9, 10, 10], "{problems}");
}

#[test]
fn what_has_no_effect_here_or_there_is_a_warning() {
    for (text, code, message) in [
        (
            "flags: {migStratgy: mixed}",
            Code::UnknownKey,
            "did you mean migStrategy?",
        ),
        (
            "flags: {renameByDefault: true}",
            Code::UnknownKey,
            "belongs into sharing.timeSlicing",
        ),
        (
            "flags: {foo: 1}",
            Code::UnknownKey,
            "known here: migStrategy",
        ),
        (
            "resources: {gpus: [{pattern: \"*\", name: a100}]}",
            Code::NotPortable,
            "names of one's own",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4, devices: [0, \"0:1\"]}]}}",
            Code::NotPortable,
            "a selection of devices",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4, rename: x}]}}",
            Code::NotPortable,
            "works here",
        ),
        (
            "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4, Replicas: 5}]}}",
            Code::UnknownKey,
            "did you mean replicas?",
        ),
        (
            "version: v1\n---\nflags: {}\n",
            Code::ContentIgnored,
            "only the first is read",
        ),
    ] {
        let parsed = parse("f", text);
        let [warning] = parsed.diagnostics() else {
            panic!("{text}: {:?}", parsed.diagnostics());
        };
        assert_eq!((warning.code, warning.is_error()), (code, false), "{text}");
        assert!(warning.to_string().contains(message), "{warning}");
        assert!(parsed.into_config().is_ok());
    }
}

#[test]
fn settings_are_read_as_the_original_reads_them() {
    let text = "Flags:
  MIGSTRATEGY: single
  nvidiaDriverRoot: /run/nvidia/driver
  plugin: {deviceListStrategy: cdi-cri}
  gfd: {sleepInterval: 1h, noTimestamp: yes}
sharing:
  mps:
    renameByDefault: true
    resources:
    - {name: gpu, replicas: 4}
    - {name: nvidia.com/gpu, replicas: 8}
    - {name: nvidia.com/mig-1g.10gb, replicas: 2}
imex: {channelIDs: [0], required: true}
";
    let parsed = parse("f", text);
    assert_eq!(parsed.diagnostics().len(), 1, "the repeated resource");
    let config = parsed.into_config().unwrap();
    assert_eq!(config.flags.mig_strategy, MigStrategy::Single);
    assert_eq!(config.flags.nvidia_dev_root, "/run/nvidia/driver");
    assert_eq!(
        config.flags.plugin.device_list_strategy,
        BTreeSet::from([ListStrategy::CdiCri])
    );
    assert_eq!(
        config.flags.gfd.sleep_interval,
        SleepInterval::Every(Duration::from_secs(3600))
    );
    assert!(config.imex.channel_0 && config.imex.required);
    assert_eq!(config.conflicts().len(), 1, "no MPS root");
    let Sharing::Mps(mps) = &config.sharing else {
        panic!("no MPS");
    };
    assert!(mps.fail_requests_greater_than_one);
    let advertised: Vec<String> = mps.resources.iter().map(|it| mps.advertised(it)).collect();
    assert_eq!(
        advertised,
        ["nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb.shared"]
    );
    assert_eq!(mps.resources[0].replicas, 8);
}

#[test]
fn requests_for_several_replicas_follow_the_way_of_sharing() {
    let fails = |sharing: &str| {
        let text = format!("sharing: {{{sharing}resources: [{{name: gpu, replicas: 4}}]}}}}");
        match parse("f", &text).into_config().unwrap().sharing {
            Sharing::TimeSlicing(it) | Sharing::Mps(it) => it.fail_requests_greater_than_one,
            Sharing::Exclusive => panic!("not shared"),
        }
    };
    assert!(!fails("timeSlicing: {"));
    assert!(fails("timeSlicing: {failRequestsGreaterThanOne: true, "));
    assert!(fails("mps: {"));
    assert!(!fails("mps: {failRequestsGreaterThanOne: false, "));
}

#[test]
fn some_devices_under_a_name_of_their_own() {
    let text = "resources:
  gpus: [{pattern: '*A100*', name: a100}]
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - {name: gpu, devices: [0, 1:2, GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f], replicas: 4}
    - {name: gpu, rename: gpu-two, devices: 1, replicas: 2}
";
    let config = parse("f", text).into_config().unwrap();
    let pattern = &config.resources.gpus[0];
    assert_eq!(
        (&*pattern.pattern, &*pattern.name),
        ("*A100*", "nvidia.com/a100")
    );
    let Sharing::TimeSlicing(sharing) = &config.sharing else {
        panic!("not time-sliced");
    };
    let names: Vec<String> = sharing
        .resources
        .iter()
        .map(|it| sharing.advertised(it))
        .collect();
    assert_eq!(names, ["nvidia.com/gpu.shared", "nvidia.com/gpu-two"]);
    let uuid = "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f".parse().unwrap();
    assert_eq!(
        sharing.resources[0].devices,
        Devices::List(vec![
            DeviceRef::Gpu(0),
            DeviceRef::Slice(1, 2),
            DeviceRef::GpuUuid(uuid)
        ])
    );
    assert_eq!(sharing.resources[1].devices, Devices::Count(1));
    assert_eq!(
        serde_json::to_value(&sharing.resources[0]).unwrap()["devices"],
        json!(["0", "1:2", "GPU-5c89852c-d268-c3f3-1b07-005d5ae1dc3f"])
    );
}
