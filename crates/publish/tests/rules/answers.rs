// SPDX-License-Identifier: Apache-2.0
//! Answers that the recorded cases do not have.

use config::deviceplugin::Config;
use publish::{AllocateFlags, Answer, CdiExtra, allocate, resources};
use units::Code;

use super::machine::{config, whole};

fn answer(settings: &str, ids: &[&str]) -> Result<Answer, Code> {
    let node = whole(2, settings);
    let (resources, _) = resources(&node);
    let ids: Vec<String> = ids.iter().map(|id| (*id).to_owned()).collect();
    let control_nodes = ["/dev/nvidiactl".to_owned(), "/dev/nvidia-uvm".to_owned()];
    let config: Config = config(settings);
    let flags = AllocateFlags {
        config: &config,
        control_nodes: &control_nodes,
        has_imex_channel_0: true,
        cdi_extras: &[CdiExtra::Gds, CdiExtra::Mofed],
        annotation_id: "7",
    };
    allocate(&resources[0], &ids, &flags).map_err(|refusal| refusal.code)
}

const ONE: &str = "GPU-00000000-0000-0000-0000-000000000001";

#[test]
fn several_ways_at_once() {
    let settings = "flags:
  nvidiaDevRoot: /run/nvidia/driver/
  plugin:
    deviceListStrategy: [envvar, volume-mounts, cdi-annotations, cdi-cri]
    deviceIDStrategy: index
    passDeviceSpecs: true
    cdiAnnotationPrefix: example.com/
imex: {channelIDs: [0]}";
    let answer = answer(settings, &[ONE]).unwrap();
    let cdi = [
        "k8s.device-plugin.nvidia.com/gpu=1",
        "k8s.device-plugin.nvidia.com/imex-channel=0",
        "k8s.device-plugin.nvidia.com/gds=all",
        "k8s.device-plugin.nvidia.com/mofed=all",
    ];
    assert_eq!(answer.cdi_devices, cdi);
    assert_eq!(
        answer.annotations["example.com/nvidia-device-plugin_7"],
        cdi.join(",")
    );
    assert_eq!(
        answer.envs["NVIDIA_VISIBLE_DEVICES"],
        "/var/run/nvidia-container-devices"
    );
    assert_eq!(answer.envs["NVIDIA_IMEX_CHANNELS"], "0");
    let mounts: Vec<&str> = answer
        .mounts
        .iter()
        .map(|it| it.container_path.as_str())
        .collect();
    assert_eq!(
        mounts,
        [
            "/var/run/nvidia-container-devices/1",
            "/var/run/nvidia-container-devices/imex/0"
        ]
    );
    let nodes: Vec<&str> = answer
        .devices
        .iter()
        .map(|it| it.host_path.as_str())
        .collect();
    assert_eq!(
        nodes,
        [
            "/run/nvidia/driver/dev/nvidiactl",
            "/run/nvidia/driver/dev/nvidia-uvm",
            "/run/nvidia/driver/dev/nvidia1",
            "/run/nvidia/driver/dev/nvidia-caps-imex-channels/channel0",
        ]
    );
    assert_eq!(answer.devices[2].container_path, "/dev/nvidia1");
}

#[test]
fn what_is_not_advertised_is_refused() {
    assert_eq!(answer("", &["GPU-1"]), Err(Code::UnknownDevice));
    let shared = "sharing: {timeSlicing: {failRequestsGreaterThanOne: true,
        resources: [{name: gpu, replicas: 2, devices: [1]}]}}";
    let [first, second] = [0, 1].map(|replica| format!("{ONE}::{replica}"));
    let zero = "GPU-00000000-0000-0000-0000-000000000000";
    assert_eq!(
        answer(shared, &[&first, &second]),
        Err(Code::TooManyReplicas)
    );
    assert_eq!(answer(shared, &[&first, zero]), Err(Code::TooManyReplicas));
    assert_eq!(answer(shared, &[ONE]), Err(Code::UnknownDevice));
    assert!(answer(shared, &[zero]).is_ok());
}
