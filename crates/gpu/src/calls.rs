// SPDX-License-Identifier: Apache-2.0
//! The one place that every call to NVML goes through, where it is counted.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::nvml_functions;
use crate::sys::*;
use crate::table::Functions;

/// How often NVML was called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCounts {
    /// Calls that change a GPU: set the MIG mode, create or destroy an instance. Failed ones count.
    pub mutating: u64,
    /// All others.
    pub reading: u64,
}

/// Functions that count what passes through them.
pub(crate) struct Counted {
    functions: Arc<dyn Functions>,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

impl Counted {
    pub(crate) fn new(functions: Arc<dyn Functions>) -> Self {
        Self {
            functions,
            calls: Mutex::default(),
        }
    }

    fn count(&self, name: &'static str) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        *calls.entry(name).or_insert(0) += 1;
    }

    pub(crate) fn by_name(&self) -> BTreeMap<&'static str, u64> {
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.clone()
    }

    pub(crate) fn counts(&self) -> CallCounts {
        let mut counts = CallCounts::default();
        for (name, calls) in self.by_name() {
            if is_mutating(name) {
                counts.mutating += calls;
            } else {
                counts.reading += calls;
            }
        }
        counts
    }
}

fn is_mutating(name: &str) -> bool {
    name == "nvmlDeviceSetMigMode"
        || name.starts_with("nvmlDeviceCreateGpuInstance")
        || name.starts_with("nvmlGpuInstanceCreateComputeInstance")
        || name.ends_with("InstanceDestroy")
}

macro_rules! counted {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
        #[allow(non_snake_case)]
        impl Functions for Counted {
            $(
                unsafe fn $name(&self, $($argument: $kind),*) -> nvmlReturn_t {
                    self.count(stringify!($name));
                    // SAFETY: the arguments pass unchanged, under the same contract.
                    unsafe { self.functions.$name($($argument),*) }
                }
            )*
        }
    };
}

nvml_functions!(counted);

#[cfg(test)]
mod tests {
    use super::*;

    macro_rules! mutating_names {
        ($($name:ident($($argument:ident: $kind:ty),* $(,)?);)*) => {
            [$(stringify!($name)),*].into_iter().filter(|name| is_mutating(name)).collect()
        };
    }

    #[test]
    fn exactly_these_functions_change_a_gpu() {
        let names: Vec<&str> = nvml_functions!(mutating_names);
        assert_eq!(
            names,
            [
                "nvmlDeviceSetMigMode",
                "nvmlDeviceCreateGpuInstance",
                "nvmlDeviceCreateGpuInstanceWithPlacement",
                "nvmlGpuInstanceDestroy",
                "nvmlGpuInstanceCreateComputeInstance",
                "nvmlGpuInstanceCreateComputeInstanceWithPlacement",
                "nvmlComputeInstanceDestroy",
            ]
        );
    }
}
