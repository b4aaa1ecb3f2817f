// SPDX-License-Identifier: Apache-2.0
//! A node that loses its power and starts again.

use nvmlsim::{Handle, verbs};

use super::node::Node;
use crate::error::Error;

/// Ends everything in the node but its first process, and takes away what a machine forgets: mounts
/// of pods, sockets, network namespaces.
const SCRIPT: &str = "
    kill -9 -1
    while pidof containerd kubelet containerd-shim-runc-v2 slicewright > /run/left; do kill -9 -1; done
    for tries in 1 2 3; do
        sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .*/\\1/p' /proc/self/mountinfo |
            grep -E '^/(run/containerd|run/netns|run/lock|var/lib/(kubelet|containerd)|var/run/netns)' |
            sort -r | while read -r mount; do umount -l \"$mount\" || true; done
    done
    rm -f /run/reboot-asked
    rm -rf /run/containerd /run/netns /run/containerd.pid /run/kubelet.pid
    rm -f /var/lib/kubelet/device-plugins/*.sock /var/lib/kubelet/pod-resources/*.sock
    ip link | sed -n 's/^[0-9]*: \\(veth[^@]*\\)@.*/\\1/p' | while read -r link; do
        ip link delete \"$link\" || true
    done
    rm -rf /var/lib/cni/networks
";

impl Node {
    /// Whether its first process was asked for a reboot since the last one.
    pub fn is_asked_to_reboot(&self) -> bool {
        self.disk().join("run/reboot-asked").exists()
    }

    /// Takes the node's power and starts it again: programs and containers end without notice, the
    /// GPUs come up as after a boot, then containerd and the kubelet start.
    ///
    /// # Errors
    /// If something does not end or start.
    pub fn reboot(&self) -> Result<(), Error> {
        self.exec(30, &["sh", "-c", SCRIPT])?;
        let world = self.world_file();
        if world.exists() {
            let failed = |error: nvmlsim::SimError| Error::Cluster(error.to_string());
            let handle = Handle::open(&world).map_err(failed)?;
            verbs::reboot(&handle).map_err(failed)?;
        }
        self.start_containerd()?;
        self.start_kubelet()
    }
}
