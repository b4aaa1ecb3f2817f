// SPDX-License-Identifier: Apache-2.0
//! A machine that outlives the processes on it, and processes that die where a test wants it.
#![allow(dead_code)] // Each test file uses its part.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use gpu::{ClosedReset, Instances, MigMode, NvmlCode, ReadGpus, Reset};
use host::{Clock, GpuState, Host, Memory, StateDir, Storage};
use jiff::Timestamp;
use nvmlsim::{Handle, Options, Simulated, World};
use units::{GpuUuid, Mode, Placement};

/// What an event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A driver call that reads.
    Read,
    /// A driver call that changes something.
    Change,
    /// A write to journal or history.
    Write,
}

/// What goes wrong with one event, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process dies before the event has an effect.
    KillBefore(usize),
    /// The process dies after the effect, before it hears of it.
    KillAfter(usize),
    /// The process dies in the middle of a write. On a driver call as [`Fault::KillBefore`].
    Tear(usize),
    /// The event answers an error and has no effect; the process lives.
    FailBefore(usize),
    /// The event answers an error in spite of its effect; the process lives.
    FailAfter(usize),
}

/// What happens on the machine right before an event, by its number.
pub type Meanwhile = Box<dyn Fn(usize, Event) + Send + Sync>;

/// Counts events and makes some of them go wrong. Once the process is dead, nothing that it tries
/// has any effect.
pub struct Switch {
    faults: Vec<Fault>,
    meanwhile: Meanwhile,
    events: Mutex<Vec<Event>>,
    dead: AtomicBool,
}

impl Switch {
    fn new(faults: &[Fault], meanwhile: Meanwhile) -> Arc<Self> {
        Arc::new(Self {
            faults: faults.to_vec(),
            meanwhile,
            events: Mutex::default(),
            dead: AtomicBool::new(false),
        })
    }

    /// The events that there were.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap().clone()
    }

    pub fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// One event. `tear` does half of the work.
    fn event<T, E>(
        &self,
        kind: Event,
        work: impl FnOnce() -> Result<T, E>,
        tear: impl FnOnce(),
        error: impl FnOnce() -> E,
    ) -> Result<T, E> {
        let number = {
            let mut events = self.events.lock().unwrap();
            events.push(kind);
            events.len() - 1
        };
        if self.is_dead() {
            return Err(error());
        }
        (self.meanwhile)(number, kind);
        let is = |fault| self.faults.contains(&fault);
        let dies = [
            Fault::KillBefore(number),
            Fault::KillAfter(number),
            Fault::Tear(number),
        ];
        if dies.into_iter().any(is) {
            self.dead.store(true, Ordering::SeqCst);
        }
        if is(Fault::Tear(number)) {
            tear();
        } else if is(Fault::KillAfter(number)) || is(Fault::FailAfter(number)) {
            work()?;
        } else if !is(Fault::KillBefore(number)) && !is(Fault::FailBefore(number)) {
            return work();
        }
        Err(error())
    }
}

/// A driver whose calls are events.
pub struct FaultyDriver<'a> {
    pub driver: &'a gpu::Driver,
    pub reset: &'a dyn Reset,
    pub switch: &'a Switch,
}

impl FaultyDriver<'_> {
    fn call<T>(
        &self,
        kind: Event,
        work: impl FnOnce() -> Result<T, gpu::Error>,
    ) -> Result<T, gpu::Error> {
        let error = || gpu::Error::Call {
            operation: format!("{kind:?}"),
            gpu: None,
            code: NvmlCode::UNKNOWN,
        };
        self.switch.event(kind, work, || (), error)
    }
}

impl ReadGpus for FaultyDriver<'_> {
    fn inventory(&self) -> Result<Inventory, gpu::Error> {
        self.call(Event::Read, || self.driver.inventory())
    }

    fn gpu(&self, gpu: &GpuUuid) -> Result<Gpu, gpu::Error> {
        self.call(Event::Read, || self.driver.gpu(gpu))
    }
}

impl Instances for FaultyDriver<'_> {
    fn instances(&self, gpu: &GpuUuid) -> Result<Vec<GpuInstance>, gpu::Error> {
        self.call(Event::Read, || self.driver.instances(gpu))
    }

    fn create_gpu_instance(
        &self,
        gpu: &GpuUuid,
        profile: u32,
        placement: Placement,
    ) -> Result<u32, gpu::Error> {
        self.call(Event::Change, || {
            self.driver.create_gpu_instance(gpu, profile, placement)
        })
    }

    fn destroy_gpu_instance(&self, gpu: &GpuUuid, instance: u32) -> Result<(), gpu::Error> {
        self.call(Event::Change, || {
            self.driver.destroy_gpu_instance(gpu, instance)
        })
    }

    fn create_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Result<u32, gpu::Error> {
        self.call(Event::Change, || {
            self.driver
                .create_compute_instance(gpu, instance, profile, placement)
        })
    }

    fn destroy_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        compute: u32,
    ) -> Result<(), gpu::Error> {
        self.call(Event::Change, || {
            self.driver.destroy_compute_instance(gpu, instance, compute)
        })
    }
}

impl MigMode for FaultyDriver<'_> {
    fn mode(&self, gpu: &GpuUuid) -> Result<Option<Mode>, gpu::Error> {
        self.call(Event::Read, || self.driver.mode(gpu))
    }

    fn set_mode(&self, gpu: &GpuUuid, on: bool) -> Result<(), gpu::Error> {
        self.call(Event::Change, || self.driver.set_mode(gpu, on))
    }
}

impl Reset for FaultyDriver<'_> {
    fn reset(&self, gpus: &[GpuUuid]) -> Result<(), gpu::Error> {
        self.call(Event::Change, || self.reset.reset(gpus))
    }
}

/// A storage whose writes are events.
struct FaultyStorage {
    inner: Arc<Memory>,
    switch: Arc<Switch>,
}

impl FaultyStorage {
    fn write(&self, work: impl FnOnce() -> io::Result<()>, tear: impl FnOnce()) -> io::Result<()> {
        let error = || io::ErrorKind::StorageFull.into();
        self.switch.event(Event::Write, work, tear, error)
    }
}

impl Storage for FaultyStorage {
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        self.inner.read(name)
    }

    fn append(&self, name: &str, line: &str) -> io::Result<()> {
        let tear = || {
            let text = self.inner.read(name).unwrap().unwrap_or_default();
            let text = String::from_utf8(text).unwrap() + &line[..line.len() / 2];
            self.inner.replace(name, &text).unwrap();
        };
        self.write(|| self.inner.append(name, line), tear)
    }

    fn replace(&self, name: &str, text: &str) -> io::Result<()> {
        self.write(|| self.inner.replace(name, text), || ())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.write(|| self.inner.remove(name), || ())
    }
}

/// A clock that stands still.
pub struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// A machine: simulated GPUs and a disk. Both outlive the processes.
pub struct Machine {
    pub world: Handle,
    pub disk: Arc<Memory>,
}

impl Machine {
    /// A machine that was just started.
    pub fn new(spec: &str) -> Self {
        let world = World::create(&spec.parse().unwrap(), &Options::default());
        Self {
            world: Handle::in_memory(world),
            disk: Arc::default(),
        }
    }

    /// One like this, with an empty disk.
    pub fn twin(&self) -> Self {
        Self {
            world: Handle::in_memory(World::clone(&self.world.world().unwrap())),
            disk: Arc::default(),
        }
    }

    /// One like this, with what is on its disk.
    pub fn copy(&self) -> Self {
        let copy = self.twin();
        for name in ["journal.jsonl", "history.jsonl"] {
            if let Some(bytes) = self.disk.read(name).unwrap() {
                let text = String::from_utf8(bytes).unwrap();
                copy.disk.replace(name, &text).unwrap();
            }
        }
        copy
    }

    /// Runs a process on the machine until it ends or dies.
    pub fn process<R>(
        &self,
        faults: &[Fault],
        body: impl FnOnce(&Host<'_>) -> R,
    ) -> (R, Arc<Switch>) {
        self.start(Switch::new(faults, Box::new(|_, _| ())), body)
    }

    /// Runs a process while something else happens on the machine.
    pub fn process_while<R>(
        &self,
        meanwhile: impl Fn(usize, Event) + Send + Sync + 'static,
        body: impl FnOnce(&Host<'_>) -> R,
    ) -> (R, Arc<Switch>) {
        self.start(Switch::new(&[], Box::new(meanwhile)), body)
    }

    fn start<R>(&self, switch: Arc<Switch>, body: impl FnOnce(&Host<'_>) -> R) -> (R, Arc<Switch>) {
        let simulated = Arc::new(Simulated::new(self.world.clone()));
        let driver = gpu::Driver::new(simulated.clone()).unwrap();
        let faulty = FaultyDriver {
            driver: &driver,
            reset: &ClosedReset::new(&driver, &*simulated),
            switch: &switch,
        };
        let state = StateDir::in_storage(Box::new(FaultyStorage {
            inner: self.disk.clone(),
            switch: switch.clone(),
        }));
        let boot = self.world.world().unwrap().boot.to_string();
        let host = Host {
            driver: &faulty,
            reset: &faulty,
            state: &state,
            clock: &StoppedClock,
            boot_id: &boot,
        };
        (body(&host), switch)
    }

    /// Runs a process to which nothing happens.
    pub fn run<R>(&self, body: impl FnOnce(&Host<'_>) -> R) -> R {
        self.process(&[], body).0
    }

    /// What is on each GPU.
    pub fn states(&self) -> Vec<GpuState> {
        let inventory = self.run(|host| host.inventory()).unwrap();
        inventory.gpus.iter().map(GpuState::of).collect()
    }

    /// MIG mode in force and pending of each GPU, and every instance by its place, with the number
    /// that no other has: what was destroyed and made again has another one.
    pub fn shape(&self) -> Shape {
        Shape::of(&self.world)
    }
}

/// What is on a machine, as its world has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    pub modes: Vec<Mode>,
    pub serials: BTreeMap<Place, u32>,
}

impl Shape {
    pub fn of(world: &Handle) -> Self {
        let world = world.world().unwrap();
        let modes = world.gpus.iter().map(nvmlsim::world::Gpu::mode);
        let mut serials = BTreeMap::new();
        for (index, gpu) in world.gpus.iter().enumerate() {
            for instance in &gpu.instances {
                let place = (index, instance.placement, instance.profile, None);
                serials.insert(place, instance.serial);
                for compute in &instance.compute {
                    let inside = Some((compute.placement, compute.profile));
                    serials.insert((place.0, place.1, place.2, inside), compute.serial);
                }
            }
        }
        Self {
            modes: modes.collect(),
            serials,
        }
    }

    /// Whether the two are the same but for the numbers.
    pub fn is_like(&self, other: &Self) -> bool {
        self.modes == other.modes && self.serials.keys().eq(other.serials.keys())
    }

    /// What both have, with the numbers of this one.
    pub fn shared(&self, other: &Self) -> BTreeMap<Place, u32> {
        let mut shared = self.serials.clone();
        shared.retain(|place, _| other.serials.contains_key(place));
        shared
    }
}

/// GPU, place, profile, and for a compute instance place and profile inside.
pub type Place = (usize, Placement, u32, Option<(Placement, u32)>);

/// Numbers that look random and are the same in each run.
pub struct Dice(pub u64);

impl Dice {
    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % sides as u64) as usize
    }
}

/// Fills the GPUs of a machine with whatever the driver accepts; some stay without MIG.
pub fn scatter(machine: &Machine, dice: &mut Dice) {
    let simulated = Arc::new(Simulated::new(machine.world.clone()));
    let driver = gpu::Driver::new(simulated.clone()).unwrap();
    for gpu in driver.inventory().unwrap().gpus {
        if dice.roll(6) == 0 {
            continue;
        }
        driver.set_mode(&gpu.uuid, true).unwrap();
        if driver.mode(&gpu.uuid).unwrap() != Some(Mode::On) {
            simulated.reset(std::slice::from_ref(&gpu.uuid)).unwrap();
        }
        for _ in 0..dice.roll(12) {
            let profile = &gpu.board.profiles[dice.roll(gpu.board.profiles.len())];
            let place = profile.placements[dice.roll(profile.placements.len())];
            let made = driver.create_gpu_instance(&gpu.uuid, profile.driver_id, place);
            let Ok(instance) = made else { continue };
            if dice.roll(12) == 0 {
                continue;
            }
            let compute = match dice.roll(3) {
                0 => &profile.compute[dice.roll(profile.compute.len())],
                _ => profile.full_compute().unwrap(),
            };
            for _ in 0..=dice.roll(compute.max_instances.into()) {
                let _ =
                    driver.create_compute_instance(&gpu.uuid, instance, compute.driver_id, None);
            }
        }
    }
}
