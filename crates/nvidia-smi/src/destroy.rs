// SPDX-License-Identifier: Apache-2.0
//! `nvidia-smi mig -dci` and `-dgi`.

use std::io::Write;

use gpu::{Driver, Error, Instances, NvmlCode};

use crate::failure::{Failure, words};
use crate::select::Selection;

/// Destroys the chosen compute instances; goes on after one that is refused.
///
/// # Errors
/// If one was refused, or there are none.
pub fn compute_instances(
    driver: &Driver,
    chosen: &Selection<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut outcome = Outcome::default();
    for gpu in chosen.with_mig()? {
        for instance in chosen.instances_of(gpu) {
            for compute in &instance.compute {
                if !chosen.has_compute(compute.id) {
                    continue;
                }
                let what = format!(
                    "compute instance ID {:>2} from GPU {:>2} GPU instance ID {:>2}",
                    compute.id, gpu.index, instance.id
                );
                let done = driver.destroy_compute_instance(&gpu.uuid, instance.id, compute.id);
                outcome.tell(&what, done, out)?;
            }
        }
    }
    outcome.end("compute instances")
}

/// Destroys the chosen GPU instances; goes on after one that is refused.
///
/// # Errors
/// If one was refused, or there are none.
pub fn gpu_instances(
    driver: &Driver,
    chosen: &Selection<'_>,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let mut outcome = Outcome::default();
    for gpu in chosen.with_mig()? {
        for instance in chosen.instances_of(gpu) {
            let what = format!(
                "GPU instance ID {:>2} from GPU {:>2}",
                instance.id, gpu.index
            );
            let done = driver.destroy_gpu_instance(&gpu.uuid, instance.id);
            outcome.tell(&what, done, out)?;
        }
    }
    outcome.end("GPU instances")
}

/// How many were chosen, and the last code of a refusal.
#[derive(Default)]
struct Outcome {
    chosen: u32,
    refused: Option<NvmlCode>,
}

impl Outcome {
    fn tell(
        &mut self,
        what: &str,
        done: Result<(), Error>,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.chosen += 1;
        match done {
            Ok(()) => writeln!(out, "Successfully destroyed {what}")?,
            Err(error) => {
                let code = error.nvml().ok_or(Failure::Driver(error))?;
                writeln!(out, "Unable to destroy {what}: {}", words(code))?;
                self.refused = Some(code);
            }
        }
        Ok(())
    }

    fn end(self, kind: &str) -> Result<(), Failure> {
        match self.refused {
            Some(code) => Err(Failure::Refused {
                what: format!("Failed to destroy {kind}"),
                code,
            }),
            None if self.chosen == 0 => Err(Failure::Refused {
                what: format!("No {kind} found"),
                code: NvmlCode::NOT_FOUND,
            }),
            None => Ok(()),
        }
    }
}
