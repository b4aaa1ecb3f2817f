// SPDX-License-Identifier: Apache-2.0
//! Waiting for events.

use std::thread::sleep;
use std::time::{Duration, Instant};

use gpu::sys::*;

use super::{Answer, Out, Simulated};
use crate::code::{INVALID_ARGUMENT, TIMEOUT};
use crate::simulated::Id;
use crate::world::{Event, EventKind, World};

/// How often a waiting call looks. A world in a file has no other way to tell.
const LOOK: Duration = Duration::from_millis(50);
const SERVED: c_ulonglong =
    (nvmlEventTypeXidCriticalError | nvmlEventMigConfigChange) as c_ulonglong;

fn number<T>(set: Out<T>) -> Answer<u32> {
    match Id::of(set)? {
        Id::Events { number } => Ok(number),
        _ => Err(INVALID_ARGUMENT),
    }
}

pub fn nvmlEventSetCreate(sim: &Simulated, set: Out<nvmlEventSet_t>) -> Answer<()> {
    if set.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    set.put(
        Id::Events {
            number: sim.events.create(),
        }
        .handle(),
    )
}

pub fn nvmlEventSetFree(sim: &Simulated, set: Out<nvmlEventSet_st>) -> Answer<()> {
    sim.events.free(number(set)?)
}

pub fn nvmlDeviceGetSupportedEventTypes(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    event_types: Out<c_ulonglong>,
) -> Answer<()> {
    sim.world()?.whole(device)?;
    event_types.put(SERVED)
}

/// Types that never happen here are accepted, as long as `nvml.h` has them.
pub fn nvmlDeviceRegisterEvents(
    sim: &Simulated,
    device: Out<nvmlDevice_st>,
    event_types: c_ulonglong,
    set: Out<nvmlEventSet_st>,
) -> Answer<()> {
    if event_types & !c_ulonglong::from(nvmlEventTypeAll) != 0 {
        return Err(INVALID_ARGUMENT);
    }
    let world = sim.world()?;
    let (gpu, _) = world.whole(device)?;
    sim.events.register(number(set)?, &world, gpu, event_types)
}

fn kind(event: &Event) -> u64 {
    u64::from(match event.what {
        EventKind::Xid(_) => nvmlEventTypeXidCriticalError,
        EventKind::MigConfigChange => nvmlEventMigConfigChange,
    })
}

pub fn nvmlEventSetWait_v2(
    sim: &Simulated,
    set: Out<nvmlEventSet_st>,
    data: Out<nvmlEventData_t>,
    timeoutms: c_uint,
) -> Answer<()> {
    if data.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    let set = number(set)?;
    let end = Instant::now() + Duration::from_millis(timeoutms.into());
    loop {
        let world = sim.world()?;
        if let Some(event) = sim.events.next(set, &world, kind)? {
            return data.put(describe(&world, &event));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(TIMEOUT);
        }
        sleep(left.min(LOOK));
    }
}

pub fn nvmlEventSetWait(
    sim: &Simulated,
    set: Out<nvmlEventSet_st>,
    data: Out<nvmlEventData_t>,
    timeoutms: c_uint,
) -> Answer<()> {
    nvmlEventSetWait_v2(sim, set, data, timeoutms)
}

/// The event as `nvml.h` has it: of a GPU, also where it is about one of its instances.
fn describe(world: &World, event: &Event) -> nvmlEventData_t {
    let (instance, compute) = event.instance.unzip();
    nvmlEventData_t {
        device: world.gpu_id(event.gpu).handle(),
        eventType: kind(event),
        eventData: match event.what {
            EventKind::Xid(xid) => xid.into(),
            EventKind::MigConfigChange => 0,
        },
        gpuInstanceId: instance.unwrap_or(c_uint::MAX),
        computeInstanceId: compute.unwrap_or(c_uint::MAX),
    }
}
