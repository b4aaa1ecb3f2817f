// SPDX-License-Identifier: Apache-2.0
//! A GPU in a few lines: what each action does to it, and when the hardware would refuse.

use std::collections::BTreeMap;

use geometry::inventory::Gpu;
use geometry::{Board, ComputeSpec, InstanceSpec, Layout, ModeChange};
use plan::{Action, Condition};
use units::{Mode, Placement, ProfileName};

/// What is on a GPU at one moment of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Whether MIG is in force.
    pub(crate) on: bool,
    /// Whether MIG is in force after a reset.
    pub(crate) on_after_reset: bool,
    /// Whether somebody uses it who is not named in the plan.
    busy: bool,
    /// GPU instances by place; compute instances in order.
    instances: BTreeMap<Placement, InstanceSpec>,
}

impl State {
    /// The GPU as the inventory has it.
    pub(crate) fn of(gpu: &Gpu, busy: bool) -> Self {
        let mode = gpu.mode.unwrap_or(Mode::Off);
        Self {
            on: mode.is_on(),
            on_after_reset: mode.will_be_on(),
            busy,
            instances: by_place(&gpu.layout()),
        }
    }

    /// The mode.
    pub(crate) fn mode(&self) -> Mode {
        Mode::from_states(self.on, self.on_after_reset)
    }

    /// Whether the instances are those of `layout`.
    pub(crate) fn has(&self, layout: &Layout) -> bool {
        self.instances == by_place(layout)
    }

    /// Whether the mode in force and the instances are the same; a pending mode may differ.
    pub(crate) fn same_in_force(&self, other: &Self) -> bool {
        self.on == other.on && self.instances == other.instances
    }

    fn compute(&self, instance: Placement) -> &[ComputeSpec] {
        let instance = self.instances.get(&instance);
        instance.map_or(&[], |instance| instance.compute.as_slice())
    }

    /// Whether the condition holds.
    pub(crate) fn holds(&self, condition: &Condition) -> bool {
        let present = |placement, driver_id| {
            let instance: Option<&InstanceSpec> = self.instances.get(placement);
            instance.is_some_and(|instance| instance.driver_id == driver_id)
        };
        match condition {
            Condition::ModeRequested { on } => self.on_after_reset == *on,
            Condition::ModeInForce { on } => self.on == *on,
            Condition::NothingPending => self.on == self.on_after_reset,
            Condition::Idle => !self.busy,
            Condition::NoInstances => self.instances.is_empty(),
            Condition::InstancePresent {
                placement,
                driver_id,
            } => present(placement, *driver_id),
            Condition::InstanceAbsent {
                placement,
                driver_id,
            } => !present(placement, *driver_id),
            Condition::UnitsFree { placement } => !self
                .instances
                .keys()
                .any(|taken| taken.overlaps(*placement)),
            Condition::InstanceEmpty { placement } => {
                let instance = self.instances.get(placement);
                instance.is_some_and(|instance| instance.compute.is_empty())
            }
            Condition::ComputePresent { instance, compute } => {
                self.compute(*instance).contains(compute)
            }
            Condition::ComputeAbsent { instance, compute } => {
                !self.compute(*instance).contains(compute)
            }
        }
    }
}

fn by_place(layout: &Layout) -> BTreeMap<Placement, InstanceSpec> {
    let instances = layout.instances.iter().map(|instance| {
        let mut instance = instance.clone();
        instance.compute.sort();
        (instance.placement, instance)
    });
    instances.collect()
}

/// What the hardware allows.
pub(crate) struct Model<'a> {
    board: &'a Board,
    /// What was there in the beginning: the hardware had it, whatever the tables say.
    proven: BTreeMap<Placement, InstanceSpec>,
}

impl<'a> Model<'a> {
    /// The rules of this GPU.
    pub(crate) fn new(gpu: &'a Gpu) -> Self {
        Self {
            board: &gpu.board,
            proven: by_place(&gpu.layout()),
        }
    }

    /// Does one action.
    ///
    /// # Errors
    /// Why the hardware would refuse it, or what it would lose.
    pub(crate) fn apply(&self, state: &mut State, action: &Action) -> Result<(), String> {
        match action {
            Action::SetMode { on } => self.set_mode(state, *on),
            Action::Reset => reset(state),
            Action::CreateGpuInstance {
                placement,
                profile,
                driver_id,
            } => self.create_instance(state, *placement, profile, *driver_id),
            Action::DestroyGpuInstance {
                placement,
                profile,
                driver_id,
            } => destroy_instance(state, *placement, profile, *driver_id),
            Action::CreateCompute { instance, compute } => {
                self.create_compute(state, *instance, compute)
            }
            Action::DestroyCompute { instance, compute } => {
                destroy_compute(state, *instance, compute)
            }
        }
    }

    fn set_mode(&self, state: &mut State, on: bool) -> Result<(), String> {
        state.on_after_reset = on;
        if self.board.mode_change == ModeChange::Immediate && state.on != on {
            if !state.instances.is_empty() {
                return Err("the mode changes with instances on the GPU".into());
            }
            if state.busy {
                return Err("the mode changes while the GPU is used".into());
            }
            state.on = on;
        }
        Ok(())
    }

    fn create_instance(
        &self,
        state: &mut State,
        placement: Placement,
        profile: &ProfileName,
        driver_id: u32,
    ) -> Result<(), String> {
        let what = format!("{profile} at {placement}");
        if !state.on {
            return Err(format!("{what} is created with MIG off"));
        }
        if state
            .instances
            .keys()
            .any(|taken| taken.overlaps(placement))
        {
            return Err(format!("{what} is created on units that are taken"));
        }
        let proven = self
            .proven
            .get(&placement)
            .is_some_and(|proven| (proven.driver_id, &proven.profile) == (driver_id, profile));
        if !proven {
            self.is_offered(state, placement, profile, driver_id)
                .map_err(|why| format!("{what} is created, but {why}"))?;
        }
        let instance = InstanceSpec {
            placement,
            profile: profile.clone(),
            driver_id,
            compute: Vec::new(),
        };
        state.instances.insert(placement, instance);
        Ok(())
    }

    /// Start list, number and engines; overlap is judged already, and no more than the units'
    /// compute slices ever fit.
    fn is_offered(
        &self,
        state: &State,
        placement: Placement,
        name: &ProfileName,
        driver_id: u32,
    ) -> Result<(), String> {
        let profile = self.board.profile(driver_id).filter(|p| p.name == *name);
        let profile = profile.ok_or("the board does not offer it under that id")?;
        if !profile.placements.contains(&placement) {
            return Err("the board does not offer that place".into());
        }
        let there = |id: u32| state.instances.values().filter(move |i| i.driver_id == id);
        if there(driver_id).count() >= usize::from(profile.max_instances) {
            return Err("there are as many as the board allows".into());
        }
        let others = state.instances.values();
        let taken = others.filter_map(|instance| self.board.profile(instance.driver_id));
        let mut sums = [0_u32; 4];
        let counts = |e: &geometry::Engines| [e.decoders, e.encoders, e.jpeg, e.ofa];
        for engines in taken
            .chain([profile])
            .map(|profile| counts(&profile.engines))
        {
            for (sum, engines) in sums.iter_mut().zip(engines) {
                *sum += u32::from(engines);
            }
        }
        // A driver may tell of more than the catalogue: one instance may have what it is said to.
        let told = self.board.profiles.iter().map(|profile| &profile.engines);
        let told: Vec<_> = told.chain([&self.board.engines]).map(counts).collect();
        let budget = |kind: usize| told.iter().map(|told| u32::from(told[kind])).max();
        if (0..sums.len()).any(|kind| Some(sums[kind]) > budget(kind)) {
            return Err("the board has no such engines left".into());
        }
        Ok(())
    }

    fn create_compute(
        &self,
        state: &mut State,
        place: Placement,
        compute: &ComputeSpec,
    ) -> Result<(), String> {
        let what = format!("slice {} in the instance at {place}", compute.profile);
        let Some(instance) = state.instances.get_mut(&place) else {
            return Err(format!("{what} is created, but there is no such instance"));
        };
        let proven = self.proven.get(&place).is_some_and(|proven| {
            proven.driver_id == instance.driver_id && proven.compute.contains(compute)
        });
        if !proven {
            self.compute_is_offered(instance, compute)
                .map_err(|why| format!("{what} is created, but {why}"))?;
        }
        let taken = instance.compute.iter().filter_map(|c| c.placement);
        if let Some(wanted) = compute.placement
            && taken.into_iter().any(|taken| taken.overlaps(wanted))
        {
            return Err(format!("{what} is created on slices that are taken"));
        }
        instance.compute.push(compute.clone());
        instance.compute.sort();
        Ok(())
    }

    fn compute_is_offered(
        &self,
        instance: &InstanceSpec,
        wanted: &ComputeSpec,
    ) -> Result<(), String> {
        let mut offered = self
            .board
            .profile(instance.driver_id)
            .into_iter()
            .flat_map(|p| &p.compute);
        let profile = offered.find(|compute| {
            compute.driver_id == wanted.driver_id
                && instance.profile.with_compute(compute.slices).as_ref() == Some(&wanted.profile)
        });
        let profile = profile.ok_or("the instance does not offer it under that id")?;
        let there = instance
            .compute
            .iter()
            .filter(|c| c.driver_id == wanted.driver_id);
        if there.count() >= usize::from(profile.max_instances) {
            return Err("there are as many as the instance allows".into());
        }
        match wanted.placement {
            Some(place) if !profile.placements.contains(&place) => {
                Err("the instance does not offer that place".into())
            }
            None if wanted.profile.is_partial() => Err("the driver would choose its place".into()),
            _ => Ok(()),
        }
    }
}

fn reset(state: &mut State) -> Result<(), String> {
    if state.on == state.on_after_reset {
        return Err("it is reset although no mode is pending".into());
    }
    if !state.instances.is_empty() {
        return Err("it is reset with instances on it".into());
    }
    if state.busy {
        return Err("it is reset while it is used".into());
    }
    state.on = state.on_after_reset;
    Ok(())
}

fn destroy_instance(
    state: &mut State,
    placement: Placement,
    profile: &ProfileName,
    driver_id: u32,
) -> Result<(), String> {
    let what = format!("{profile} at {placement}");
    let there = state.instances.get(&placement);
    let there = there.filter(|i| i.driver_id == driver_id && i.profile == *profile);
    match there {
        None => Err(format!("{what} is destroyed, but is not there")),
        Some(instance) if !instance.compute.is_empty() => {
            Err(format!("{what} is destroyed with compute instances in it"))
        }
        Some(_) => {
            state.instances.remove(&placement);
            Ok(())
        }
    }
}

fn destroy_compute(
    state: &mut State,
    place: Placement,
    compute: &ComputeSpec,
) -> Result<(), String> {
    let instance = state.instances.get_mut(&place);
    let slices = instance.map(|instance| &mut instance.compute);
    let at = slices
        .as_ref()
        .and_then(|slices| slices.iter().position(|c| c == compute));
    match (slices, at) {
        (Some(slices), Some(at)) => {
            slices.remove(at);
            Ok(())
        }
        _ => Err(format!(
            "slice {} in the instance at {place} is destroyed, but is not there",
            compute.profile
        )),
    }
}
