// SPDX-License-Identifier: Apache-2.0
//! Creating and destroying instances.

use geometry::{Board, ComputeProfile, Profile};
use units::Placement;

use super::{Compute, EventKind, Gpu, Instance, World, legal};
use crate::code::{
    Answer, IN_USE, INSUFFICIENT_RESOURCES, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, UNKNOWN,
};

impl Gpu {
    /// The board, if MIG is in force.
    fn mig_board(&self) -> Answer<&'static Board> {
        let board = self.board()?;
        if board.has_mig() && self.mig_current {
            Ok(board)
        } else {
            Err(NOT_SUPPORTED)
        }
    }

    /// How many more GPU instances of the profile with that driver id fit.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` while MIG is off, `INVALID_ARGUMENT` for an unknown profile.
    pub fn remaining(&self, profile: u32) -> Answer<u32> {
        let board = self.mig_board()?;
        let profile = board.profile(profile).ok_or(INVALID_ARGUMENT)?;
        Ok(legal::remaining(board, &self.instances, profile))
    }

    /// The profile of a GPU instance.
    ///
    /// # Errors
    /// None in a world that [`World::check`] accepts.
    pub fn profile_of(&self, instance: &Instance) -> Answer<&'static Profile> {
        self.board()?.profile(instance.profile).ok_or(UNKNOWN)
    }

    /// The profile of a compute instance.
    ///
    /// # Errors
    /// None in a world that [`World::check`] accepts.
    pub fn compute_profile_of(
        &self,
        instance: &Instance,
        compute: &Compute,
    ) -> Answer<&'static ComputeProfile> {
        compute_profile(self.profile_of(instance)?, compute.profile).map_err(|_| UNKNOWN)
    }

    /// How many more compute instances of the profile with that driver id fit into the instance.
    ///
    /// # Errors
    /// `NOT_FOUND` without such an instance, `INVALID_ARGUMENT` for an unknown profile.
    pub fn remaining_compute(&self, instance: u32, profile: u32) -> Answer<u32> {
        let instance = self.instance(instance)?;
        let profile = compute_profile(self.profile_of(instance)?, profile)?;
        Ok(legal::remaining_compute(instance, profile))
    }
}

fn compute_profile(profile: &Profile, driver_id: u32) -> Answer<&ComputeProfile> {
    let mut all = profile.compute.iter();
    all.find(|compute| compute.driver_id == driver_id)
        .ok_or(INVALID_ARGUMENT)
}

/// The wanted place if it is free, the driver's choice if none is wanted.
fn choose(
    wanted: Option<Placement>,
    free: &[Placement],
    choice: impl FnOnce() -> Option<Placement>,
) -> Answer<Placement> {
    let place = match wanted {
        None => choice(),
        Some(wanted) => free.iter().copied().find(|place| *place == wanted),
    };
    place.ok_or(INSUFFICIENT_RESOURCES)
}

impl World {
    /// Creates a GPU instance and returns its id. Without a place the driver chooses.
    ///
    /// # Errors
    /// As NVML: `NOT_SUPPORTED` while MIG is off, `INVALID_ARGUMENT` for an unknown profile or a
    /// place that the profile never takes, `INSUFFICIENT_RESOURCES` if it does not fit.
    pub fn create_gpu_instance(
        &mut self,
        gpu: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Answer<u32> {
        let serial = self.serial();
        let device = self.gpu_mut(gpu)?;
        let board = device.mig_board()?;
        let profile = board.profile(profile).ok_or(INVALID_ARGUMENT)?;
        if placement.is_some_and(|place| !profile.placements.contains(&place)) {
            return Err(INVALID_ARGUMENT);
        }
        let free = legal::free_places(board, &device.instances, profile);
        let placement = choose(placement, &free, || {
            legal::driver_choice(device, board, profile)
        })?;
        let id = legal::gpu_instance_id(board, device.mirrored, placement);
        device.instances.push(Instance {
            id,
            profile: profile.driver_id,
            placement,
            serial,
            compute: Vec::new(),
        });
        device.instances.sort_by_key(|instance| instance.id);
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(id)
    }

    /// Destroys a GPU instance.
    ///
    /// # Errors
    /// `NOT_FOUND`; `IN_USE` if it has compute instances.
    pub fn destroy_gpu_instance(&mut self, gpu: u32, instance: u32) -> Answer<()> {
        let device = self.gpu_mut(gpu)?;
        if !device.instance(instance)?.compute.is_empty() {
            return Err(IN_USE);
        }
        device.instances.retain(|other| other.id != instance);
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(())
    }

    /// Creates a compute instance and returns its id: the lowest one that is free. Without a place
    /// the driver takes the lowest free one.
    ///
    /// # Errors
    /// `NOT_FOUND` without such a GPU instance, `INVALID_ARGUMENT` for an unknown profile or a
    /// place that the profile never takes, `INSUFFICIENT_RESOURCES` if it does not fit.
    pub fn create_compute_instance(
        &mut self,
        gpu: u32,
        instance: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Answer<u32> {
        let serial = self.serial();
        let device = self.gpu_mut(gpu)?;
        let table = device.profile_of(device.instance(instance)?)?;
        let profile = compute_profile(table, profile)?;
        if placement.is_some_and(|place| !profile.placements.contains(&place)) {
            return Err(INVALID_ARGUMENT);
        }
        let target = device
            .instances
            .iter_mut()
            .find(|other| other.id == instance);
        let target = target.ok_or(NOT_FOUND)?;
        let free = legal::free_compute_places(target, profile);
        let placement = choose(placement, &free, || free.first().copied())?;
        let id = (0..)
            .find(|id| target.compute(*id).is_err())
            .ok_or(UNKNOWN)?;
        let profile = profile.driver_id;
        target.compute.push(Compute {
            id,
            profile,
            placement,
            serial,
        });
        target.compute.sort_by_key(|compute| compute.id);
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(id)
    }

    /// Destroys a compute instance. Whether something uses it is for the caller to know.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub fn destroy_compute_instance(&mut self, gpu: u32, instance: u32, id: u32) -> Answer<()> {
        let device = self.gpu_mut(gpu)?;
        device.instance(instance)?.compute(id)?;
        let target = device
            .instances
            .iter_mut()
            .filter(|other| other.id == instance);
        target.for_each(|target| target.compute.retain(|compute| compute.id != id));
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(())
    }

    /// Makes every handle of an instance on the GPU stale, as if it had been made anew.
    pub(crate) fn renumber(&mut self, gpu: u32) {
        let mut serial = self.next_serial;
        let device = self.gpus.get_mut(gpu as usize).into_iter();
        for instance in device.flat_map(|device| &mut device.instances) {
            let compute = instance
                .compute
                .iter_mut()
                .map(|compute| &mut compute.serial);
            for number in [&mut instance.serial].into_iter().chain(compute) {
                serial = serial.wrapping_add(1);
                *number = serial;
            }
        }
        self.next_serial = serial;
    }
}
