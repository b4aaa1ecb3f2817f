// SPDX-License-Identifier: Apache-2.0
//! A node that loses its power and starts again, or whose machine is replaced by a new one.

use nvmlsim::{Handle, verbs};

use super::node::Node;
use crate::error::Error;

/// Ends everything in the node but its first process, and takes away what a machine forgets: mounts
/// of pods, sockets, network namespaces, cgroups: a kubelet waits half a minute for containers that
/// only have a cgroup left.
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
    find /sys/fs/cgroup/*/\"$1\"/kubepods -depth -type d -exec rmdir {} + 2>/dev/null || true
";

/// Takes away what the kubelet and the agent keep over boots.
const FORGET: &str = "rm -rf /var/lib/kubelet /var/lib/slicewright /var/run/cdi /var/log/pods";

impl Node {
    /// Whether it was asked for a reboot since the last one.
    pub fn is_asked_to_reboot(&self) -> bool {
        self.disk().join("run/reboot-asked").exists()
    }

    /// Takes the node's power and starts it again: programs and containers end without notice, the
    /// GPUs come up as after a boot, then containerd and the kubelet start.
    ///
    /// # Errors
    /// If something does not end or start.
    pub fn reboot(&self) -> Result<(), Error> {
        self.lose_power()?;
        self.start_containerd()?;
        self.start_kubelet()
    }

    /// Takes the node's machine away. What containerd keeps stays, so that a new machine finds the
    /// images.
    ///
    /// # Errors
    /// If something does not end.
    pub fn take_away(&self) -> Result<(), Error> {
        self.lose_power()?;
        self.exec(30, &["sh", "-c", FORGET]).map(|_| ())
    }

    /// Starts a machine where one was taken away; its kubelet has these options besides.
    ///
    /// # Errors
    /// If something does not start.
    pub fn start_anew(&self, options: &[&str]) -> Result<(), Error> {
        self.start_containerd()?;
        self.start_kubelet_with(options)
    }

    fn lose_power(&self) -> Result<(), Error> {
        self.exec(30, &["sh", "-c", SCRIPT, "sh", &self.cgroup()])?;
        let world = self.world_file();
        if world.exists() {
            let failed = |error: nvmlsim::SimError| Error::Cluster(error.to_string());
            let handle = Handle::open(&world).map_err(failed)?;
            verbs::reboot(&handle).map_err(failed)?;
        }
        Ok(())
    }
}
