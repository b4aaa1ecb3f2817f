// SPDX-License-Identifier: Apache-2.0
//! What a person is told when something cannot be done, or can but should be known.

use std::collections::BTreeMap;

use geometry::inventory::{Gpu, Inventory};
use serde::Serialize;
use units::Code;

use crate::text::list;

/// Why a wish is refused. Nothing has been touched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Stable code.
    pub code: Code,
    /// Object, cause and next step, in a sentence or two.
    pub message: String,
    /// What would be possible instead, ready to be typed; may be empty.
    pub choices: Vec<String>,
}

impl Refusal {
    /// A refusal without choices.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            choices: Vec::new(),
        }
    }

    /// This machine has no GPU of that index, or has lost it.
    pub(crate) fn unknown_gpu(inventory: &Inventory, index: u32) -> Self {
        if inventory.lost.contains(&index) {
            return Self::new(Code::GpuLost, lost(&[index]));
        }
        Self {
            choices: inventory
                .gpus
                .iter()
                .map(|gpu| gpu.index.to_string())
                .collect(),
            ..Self::new(
                Code::NoGpuMatches,
                format!("there is no GPU {index} on this machine"),
            )
        }
    }
}

/// Something worth knowing that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Warning {
    /// Stable code.
    pub code: Code,
    /// Object and cause, in a sentence.
    pub message: String,
}

/// Warnings under way: what is the same of several GPUs becomes one.
#[derive(Default)]
pub(crate) struct Notes(BTreeMap<(Code, String, String), Vec<String>>);

impl Notes {
    /// Notes `text` of a GPU.
    pub(crate) fn add(&mut self, code: Code, gpu: &Gpu, text: String) {
        let key = (code, gpu.name.clone(), text);
        self.0.entry(key).or_default().push(gpu.index.to_string());
    }

    /// One warning for each text, by code.
    pub(crate) fn into_warnings(self) -> impl Iterator<Item = Warning> {
        self.0.into_iter().map(|((code, name, text), gpus)| {
            let gpus = match gpus.as_slice() {
                [gpu] => format!("GPU {gpu}"),
                gpus => format!("GPUs {}", gpus.join(", ")),
            };
            Warning {
                code,
                message: format!("{gpus} ({name}): {text}"),
            }
        })
    }
}

/// What there is to say of GPUs that fell off the bus.
pub(crate) fn lost(indices: &[u32]) -> String {
    format!(
        "GPU {} fell off the bus: the driver can neither read nor change it; see the kernel log, and \
         reboot the machine",
        list(indices)
    )
}

/// `GPU 3 (NVIDIA A30)`.
pub(crate) fn gpu_name(gpu: &Gpu) -> String {
    format!("GPU {} ({})", gpu.index, gpu.name)
}
