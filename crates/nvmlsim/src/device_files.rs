// SPDX-License-Identifier: Apache-2.0
//! Device nodes of a simulated machine, as NVIDIA's kernel modules number them.

use std::fmt::Write;
use std::path::Path;

use crate::world::World;

/// Capability nodes of a GPU instance: its own, and one for each of eight compute instances.
const PER_INSTANCE: u32 = 9;
/// GPU instances of a GPU that have nodes.
const INSTANCES: u32 = 15;
/// The first one that is of an instance: 1 is the right to configure, 2 that to monitor.
const FIRST: u32 = 3;

/// Minor number of `/dev/nvidia-caps/nvidia-capN` for a GPU instance, or a compute instance of it
/// (source: `/proc/driver/nvidia-caps/mig-minors` of real machines).
pub fn cap_minor(gpu_minor: u32, instance: u32, compute: Option<u32>) -> u32 {
    let of_instance = FIRST + (gpu_minor * INSTANCES + instance) * PER_INSTANCE;
    of_instance + compute.map_or(0, |compute| compute + 1)
}

/// `/proc/driver/nvidia-caps/mig-minors` of a machine: all that there can be, not what there is.
pub fn mig_minors(world: &World) -> String {
    let mut text = "config 1\nmonitor 2\n".to_owned();
    for gpu in &world.gpus {
        for instance in 0..INSTANCES {
            let minor = gpu.minor;
            let own = cap_minor(minor, instance, None);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "gpu{minor}/gi{instance}/access {own}");
            for compute in 0..PER_INSTANCE - 1 {
                let own = cap_minor(minor, instance, Some(compute));
                let _ = writeln!(text, "gpu{minor}/gi{instance}/ci{compute}/access {own}");
            }
        }
    }
    text
}

/// Paths of all device nodes that a machine can have, below `/`.
pub fn paths(world: &World) -> Vec<String> {
    let control = [
        "nvidiactl",
        "nvidia-modeset",
        "nvidia-uvm",
        "nvidia-uvm-tools",
    ];
    let mut paths: Vec<String> = control.iter().map(|name| format!("dev/{name}")).collect();
    paths.extend([1, 2].map(|minor| format!("dev/nvidia-caps/nvidia-cap{minor}")));
    for gpu in &world.gpus {
        paths.push(format!("dev/nvidia{}", gpu.minor));
        let first = cap_minor(gpu.minor, 0, None);
        let caps = first..first + INSTANCES * PER_INSTANCE;
        paths.extend(caps.map(|minor| format!("dev/nvidia-caps/nvidia-cap{minor}")));
    }
    paths
}

/// Whether this process has the nodes of a whole GPU, or of a slice of it: containers get those
/// that are given to them.
pub(crate) fn has_nodes(gpu_minor: u32, slice: Option<(u32, u32)>) -> bool {
    let exists = |path: String| Path::new(&path).exists();
    let cap = |minor| exists(format!("/dev/nvidia-caps/nvidia-cap{minor}"));
    let gpu = exists(format!("/dev/nvidia{gpu_minor}"));
    gpu && slice.is_none_or(|(instance, compute)| {
        cap(cap_minor(gpu_minor, instance, None))
            && cap(cap_minor(gpu_minor, instance, Some(compute)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_real_machines() {
        // From listings of machines with A100.
        assert_eq!(cap_minor(0, 0, None), 3);
        assert_eq!(cap_minor(0, 1, None), 12);
        assert_eq!(cap_minor(0, 1, Some(0)), 13);
        assert_eq!(cap_minor(1, 0, None), 138);
    }
}
