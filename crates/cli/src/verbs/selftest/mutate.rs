// SPDX-License-Identifier: Apache-2.0
//! The checks that cut a GPU: every profile at every place, made, read back and taken away.

use std::time::Instant;

use geometry::inventory::{Gpu, GpuInstance};
use geometry::{ComputeProfile, ModeChange, Profile};
use host::Driver;
use units::{Code, GpuUuid, Mode, Placement};

use super::{Transcript, took};
use crate::failure::Failure;
use crate::machine::Machine;

/// Cuts an empty, idle GPU in every way, and leaves it as it was. Nobody else may change this
/// machine meanwhile.
pub fn check(
    machine: &Machine,
    gpu: &Gpu,
    transcript: &mut Transcript<'_, '_>,
) -> Result<(), Failure> {
    let state = machine.lock()?;
    if host::open_change(state.storage())?.is_some() {
        let message = "a change was begun and not ended: run `slicewright host recover` first";
        return Err(Failure::new(Code::JournalOpen, message));
    }
    may_be_cut(gpu)?;
    let bench = Bench {
        driver: machine.driver(),
        uuid: &gpu.uuid,
    };
    if gpu.mode == Some(Mode::Off) {
        transcript.check("turn MIG on".to_owned(), bench.set_mode(true))?;
    }
    // With MIG on the driver tells its own tables.
    let board = bench
        .driver
        .gpu(&gpu.uuid)
        .map_err(host::Error::from)?
        .board;
    let cuts = cut_all(&bench, &board.profiles, transcript);
    let left = bench.clear();
    if gpu.mode == Some(Mode::Off) {
        transcript.check("turn MIG off again".to_owned(), bench.set_mode(false))?;
    }
    transcript.check("all is as it was".to_owned(), left)?;
    cuts
}

fn may_be_cut(gpu: &Gpu) -> Result<(), Failure> {
    let index = gpu.index;
    let empty = format!("slicewright host apply --gpu {index} --layout empty");
    let refuse =
        |code, message: String, choices| Err(Failure::with_choices(code, message, choices));
    let Some(mode) = gpu.mode else {
        return refuse(
            Code::MigUnsupported,
            format!("GPU {index} has no MIG"),
            Vec::new(),
        );
    };
    if gpu.is_busy() {
        return refuse(Code::InUse, format!("GPU {index} is in use"), Vec::new());
    }
    if !gpu.instances.is_empty() {
        let message =
            format!("GPU {index} has instances; only an empty GPU is cut by the self-test");
        return refuse(Code::InUse, message, vec![empty]);
    }
    if mode.is_pending() || mode == Mode::Off && gpu.board.mode_change == ModeChange::NeedsReset {
        let message = format!("MIG of GPU {index} is {mode}, and turning it on takes a reset");
        return refuse(Code::ResetNeeded, message, vec![empty]);
    }
    Ok(())
}

fn cut_all(
    bench: &Bench<'_>,
    profiles: &[Profile],
    transcript: &mut Transcript<'_, '_>,
) -> Result<(), Failure> {
    for profile in profiles {
        for place in &profile.placements {
            let cut = bench.cut(profile, *place);
            if cut.is_err() {
                // What a failed check left behind must not make the next ones fail.
                let _ = bench.clear();
            }
            transcript.check(format!("{} at {place}", profile.name), cut)?;
        }
    }
    Ok(())
}

/// The GPU that is cut.
struct Bench<'a> {
    driver: &'a dyn Driver,
    uuid: &'a GpuUuid,
}

impl Bench<'_> {
    fn set_mode(&self, on: bool) -> Result<String, String> {
        self.driver
            .set_mode(self.uuid, on)
            .map_err(|error| error.to_string())?;
        match self.driver.mode(self.uuid) {
            Ok(Some(mode)) if mode == Mode::from_states(on, on) => Ok(mode.to_string()),
            Ok(mode) => Err(format!("it is {mode:?}")),
            Err(error) => Err(error.to_string()),
        }
    }

    fn instances(&self) -> Result<Vec<GpuInstance>, String> {
        self.driver
            .instances(self.uuid)
            .map_err(|error| error.to_string())
    }

    /// Makes an instance with each of its compute instances, sees that it is where it should be
    /// and that its place is taken, and takes it away.
    fn cut(&self, profile: &Profile, place: Placement) -> Result<String, String> {
        let text = |error: host::Error| error.to_string();
        let begun = Instant::now();
        let create = || {
            self.driver
                .create_gpu_instance(self.uuid, profile.driver_id, place)
        };
        let id = create().map_err(host::Error::from).map_err(text)?;
        let created = took(begun);
        match self.instances()?.as_slice() {
            [one] if (one.id, one.driver_id, one.placement) == (id, profile.driver_id, place) => {}
            found => return Err(format!("created as {id}, but there is {found:?}")),
        }
        let refused = match create() {
            Ok(second) => return Err(format!("instance {second} was made at the same place")),
            Err(error) => error
                .nvml()
                .map_or_else(|| error.to_string(), |code| code.to_string()),
        };
        for compute in &profile.compute {
            self.cut_inside(id, compute)?;
        }
        let begun = Instant::now();
        let destroyed = self.driver.destroy_gpu_instance(self.uuid, id);
        destroyed.map_err(host::Error::from).map_err(text)?;
        let destroyed = took(begun);
        match self.instances()?.as_slice() {
            [] => Ok(format!(
                "instance {id}, created in {created}, destroyed in {destroyed}; \
                 the place taken: {refused}"
            )),
            left => Err(format!("destroyed, but there is {left:?}")),
        }
    }

    fn cut_inside(&self, instance: u32, compute: &ComputeProfile) -> Result<(), String> {
        let what = format!("{}c inside", compute.slices);
        let text = |error: host::Error| format!("{what}: {error}");
        let create =
            self.driver
                .create_compute_instance(self.uuid, instance, compute.driver_id, None);
        let id = create.map_err(host::Error::from).map_err(text)?;
        let seen = self.instances()?;
        let mut inside = seen.iter().flat_map(|instance| &instance.compute);
        if !inside.any(|found| (found.id, found.driver_id) == (id, compute.driver_id)) {
            return Err(format!("{what}: created as {id}, but there is {seen:?}"));
        }
        if self
            .driver
            .destroy_gpu_instance(self.uuid, instance)
            .is_ok()
        {
            return Err(format!(
                "{what}: the driver destroyed the instance around it"
            ));
        }
        let destroyed = self
            .driver
            .destroy_compute_instance(self.uuid, instance, id);
        destroyed.map_err(host::Error::from).map_err(text)
    }

    /// Takes away whatever is there; says if something stays.
    fn clear(&self) -> Result<String, String> {
        for instance in self.instances()? {
            for compute in &instance.compute {
                let _ = self
                    .driver
                    .destroy_compute_instance(self.uuid, instance.id, compute.id);
            }
            let _ = self.driver.destroy_gpu_instance(self.uuid, instance.id);
        }
        match self.instances()?.as_slice() {
            [] => Ok("no instances".to_owned()),
            left => Err(format!("there is {left:?}")),
        }
    }
}
