// SPDX-License-Identifier: Apache-2.0
//! What the driver reports by itself.

use std::sync::Arc;
use std::time::Duration;

use gpu::{Event, EventKind};
use publish::{Fault, XidPolicy};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::machine::Machine;

/// How long one wait takes: the driver cannot be closed before it ends.
const WAIT: Duration = Duration::from_millis(500);
/// How long to leave an event source alone that failed: losing it says nothing about devices.
const PAUSE: Duration = Duration::from_secs(10);

/// Follows what the driver reports on a thread of its own, until the receiver is dropped. `None`: it
/// cannot be heard any more, as when a GPU is lost, so that it is time to look.
pub fn follow(machine: Arc<Machine>) -> UnboundedReceiver<Option<Event>> {
    let (sender, receiver) = unbounded_channel();
    std::thread::spawn(move || {
        let mut quiet = false;
        while !sender.is_closed() {
            match machine.wait_event(WAIT) {
                Ok(None) => quiet = false,
                Ok(Some(event)) => {
                    if sender.send(Some(event)).is_err() {
                        return;
                    }
                }
                // Also a driver that reports nothing at all: the next may.
                Err(error) => {
                    if !quiet {
                        tracing::warn!("faults cannot be heard of for now: {error}");
                        // Whether anybody is left to look does not matter here.
                        let _ = sender.send(None);
                    }
                    quiet = true;
                    std::thread::sleep(PAUSE);
                }
            }
        }
    });
    receiver
}

/// The fault that an event stands for, if the policy says that it is one.
pub fn fault(event: &Event, policy: &XidPolicy) -> Option<Fault> {
    let EventKind::Xid(xid) = event.kind else {
        return None;
    };
    policy.acts_on(xid).then(|| Fault {
        gpu: event.gpu.clone(),
        gpu_instance: event.gpu_instance,
        compute_instance: event.compute_instance,
        what: format!("XID {xid}"),
    })
}
