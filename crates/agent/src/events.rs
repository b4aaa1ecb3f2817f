// SPDX-License-Identifier: Apache-2.0
//! What the driver reports by itself.

use std::sync::Arc;
use std::time::Duration;

use gpu::{Event, EventKind};
use publish::{Fault, XidPolicy};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::machine::Machine;
use crate::surroundings::Workers;

/// How long one wait takes: the driver cannot be closed before it ends.
const WAIT: Duration = Duration::from_millis(500);
/// How often an event source is asked where nothing may block.
const LOOK: Duration = Duration::from_secs(1);
/// How long to leave an event source alone that failed: losing it says nothing about devices.
const PAUSE: Duration = Duration::from_secs(10);

/// Follows what the driver reports, on a thread of its own where that may block, until the receiver is
/// dropped. `None`: it
/// cannot be heard any more, as when a GPU is lost, so that it is time to look.
pub fn follow(machine: Arc<Machine>, workers: Workers) -> UnboundedReceiver<Option<Event>> {
    let (sender, receiver) = unbounded_channel();
    let mut listener = Listener {
        machine,
        sender,
        is_deaf: false,
    };
    match workers {
        Workers::Threads => {
            std::thread::spawn(move || {
                while let Some(pause) = listener.listen(WAIT) {
                    std::thread::sleep(pause);
                }
            });
        }
        Workers::Inline => {
            tokio::spawn(async move {
                while let Some(pause) = listener.listen(Duration::ZERO) {
                    tokio::time::sleep(pause.max(LOOK)).await;
                }
            });
        }
    }
    receiver
}

/// Passes on what the driver reports.
struct Listener {
    machine: Arc<Machine>,
    sender: UnboundedSender<Option<Event>>,
    is_deaf: bool,
}

impl Listener {
    /// Waits once; how long to pause before the next time, or `None` if nobody listens any more.
    fn listen(&mut self, longest: Duration) -> Option<Duration> {
        let pause = match self.machine.wait_event(longest) {
            Ok(event) => {
                self.is_deaf = false;
                if event.is_some() {
                    // Whether anybody is left to hear is seen below.
                    let _ = self.sender.send(event);
                }
                Duration::ZERO
            }
            // Also a driver that reports nothing at all: the next may.
            Err(error) => {
                if !self.is_deaf {
                    tracing::warn!("faults cannot be heard of for now: {error}");
                    let _ = self.sender.send(None);
                }
                self.is_deaf = true;
                PAUSE
            }
        };
        (!self.sender.is_closed()).then_some(pause)
    }
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
