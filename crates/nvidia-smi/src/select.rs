// SPDX-License-Identifier: Apache-2.0
//! Which GPUs and instances a command is about.

use geometry::inventory::{Gpu, GpuInstance, Inventory};

use crate::failure::Failure;

/// The GPUs chosen by `-i`, by index, and the instances by `-gi` and `-ci`.
pub struct Selection<'a> {
    /// GPUs.
    pub gpus: Vec<&'a Gpu>,
    /// Ids of GPU instances; `None` for all.
    pub instances: Option<Vec<u32>>,
    /// Ids of compute instances; `None` for all.
    pub compute: Option<Vec<u32>>,
}

impl<'a> Selection<'a> {
    /// Finds them.
    ///
    /// # Errors
    /// [`Failure::Usage`] if a GPU is not there.
    pub fn of(
        inventory: &'a Inventory,
        names: Option<&[String]>,
        instances: Option<Vec<u32>>,
        compute: Option<Vec<u32>>,
    ) -> Result<Self, Failure> {
        let all: Vec<&Gpu> = inventory.gpus.iter().collect();
        let gpus = match names {
            None => all,
            Some(names) => {
                let found: Result<Vec<&Gpu>, Failure> =
                    names.iter().map(|name| find(inventory, name)).collect();
                let mut found = found?;
                found.sort_by_key(|gpu| gpu.index);
                found.dedup_by_key(|gpu| gpu.index);
                found
            }
        };
        Ok(Self {
            gpus,
            instances,
            compute,
        })
    }

    /// The GPUs that have MIG on.
    ///
    /// # Errors
    /// [`Failure::Said`] in the original's words if there are none.
    pub fn with_mig(&self) -> Result<Vec<&'a Gpu>, Failure> {
        let on = |gpu: &&&Gpu| gpu.mode.is_some_and(|mode| mode.is_on());
        let gpus: Vec<&Gpu> = self.gpus.iter().filter(on).copied().collect();
        if gpus.is_empty() {
            return Err(Failure::Usage("No MIG-enabled devices found.".into()));
        }
        Ok(gpus)
    }

    /// The chosen GPU instances of a GPU, by id.
    pub fn instances_of(&self, gpu: &'a Gpu) -> Vec<&'a GpuInstance> {
        let wanted = |id: u32| self.instances.as_ref().is_none_or(|ids| ids.contains(&id));
        let mut found: Vec<&GpuInstance> = gpu
            .instances
            .iter()
            .filter(|instance| wanted(instance.id))
            .collect();
        found.sort_by_key(|instance| instance.id);
        found
    }

    /// Whether that compute instance is chosen.
    pub fn has_compute(&self, id: u32) -> bool {
        self.compute.as_ref().is_none_or(|ids| ids.contains(&id))
    }
}

fn find<'a>(inventory: &'a Inventory, name: &str) -> Result<&'a Gpu, Failure> {
    let is_it = |gpu: &&Gpu| {
        gpu.index.to_string() == name
            || gpu.uuid.as_str() == name
            || gpu.pci_bus_id.eq_ignore_ascii_case(name)
            || gpu
                .pci_bus_id
                .strip_prefix("0000")
                .is_some_and(|id| id.eq_ignore_ascii_case(name))
    };
    let missing = || Failure::Usage(format!("No devices were found: there is no GPU {name}."));
    inventory.gpus.iter().find(is_it).ok_or_else(missing)
}
