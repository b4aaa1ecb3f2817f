// SPDX-License-Identifier: Apache-2.0
//! Instances of a GPU: listed, created, destroyed.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use geometry::inventory::{ComputeInstance, GpuInstance};
use geometry::{Board, Confidence, Profile};
use units::{GpuUuid, MigUuid, Placement};

use crate::board::{BoardFacts, Tables};
use crate::driver::{Device, Driver};
use crate::error::{Error, NvmlCode};
use crate::raw::{Answer, ask, ask_list, ask_text, check};
use crate::sys::*;
use crate::table::Functions;
use crate::traits::Instances;

/// Room for instances of one profile. NVML does not take the size of the buffer, it trusts it to be
/// large enough; no board holds more than 12.
const INSTANCE_ROOM: usize = 64;

/// How often instances are read before an answer that makes no sense is believed.
const READINGS: u32 = 8;

/// Compute instances that are visible as MIG devices, by GPU instance id and their own id: the
/// device's index and UUID.
type MigDevices = BTreeMap<(u32, u32), (u32, MigUuid)>;

impl Driver {
    /// The board of a GPU and what is on it. The tables are read once for all equal boards.
    pub(crate) fn board_and_instances(
        &self,
        device: &Device<'_>,
        facts: &BoardFacts,
    ) -> Result<(Board, Vec<GpuInstance>), Error> {
        let lock = || self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lock().get(facts).cloned();
        let mut news = known.is_none();
        let mut tables = known.map_or_else(|| Tables::read(device, facts), Ok)?;
        let mut instances = Vec::new();
        if facts.mig_on == Some(true) {
            let mut attempts = 1..READINGS;
            let (asked, found) = loop {
                match read(device, &mut tables) {
                    Err(error) if may_pass(&error) && attempts.next().is_some() => {}
                    answer => break answer?,
                }
            };
            news |= asked;
            instances = found;
        }
        if news {
            lock().insert(facts.clone(), tables.clone());
        }
        Ok((tables.board, instances))
    }
}

/// The instances of a GPU, and whether compute profiles had to be asked for.
fn read(device: &Device<'_>, tables: &mut Tables) -> Result<(bool, Vec<GpuInstance>), Error> {
    let handles = gpu_instances(device, &tables.board)?;
    let asked = handles
        .iter()
        .map(|(info, handle)| (info.profileId, *handle));
    let news = tables.ask_compute(device, asked)?;
    Ok((news, describe(device, &tables.board, &handles)?))
}

/// Whether a reading can have failed because somebody changed instances in the middle of it:
/// handles go stale, and lists contradict each other.
fn may_pass(error: &Error) -> bool {
    let stale = [NvmlCode::INVALID_ARGUMENT, NvmlCode::NOT_FOUND];
    matches!(error, Error::Nonsense { .. })
        || error.nvml().is_some_and(|code| stale.contains(&code))
}

/// Handles and descriptions of the GPU instances, in no order.
fn gpu_instances(
    device: &Device<'_>,
    board: &Board,
) -> Result<Vec<(nvmlGpuInstanceInfo_t, nvmlGpuInstance_t)>, Error> {
    let (functions, handle) = (device.functions, device.handle);
    let mut found = Vec::new();
    for profile in &board.profiles {
        let answer: Answer<Vec<nvmlGpuInstance_t>> = ask_list!(
            INSTANCE_ROOM,
            functions,
            nvmlDeviceGetGpuInstances(handle, profile.driver_id)
        );
        // The catalogue may list profiles that this driver does not have.
        let guessed = profile.confidence != Confidence::Driver;
        let handles = match answer {
            Err(NvmlCode::NOT_SUPPORTED | NvmlCode::INVALID_ARGUMENT) if guessed => continue,
            answer => answer.map_err(device.failed("list the GPU instances"))?,
        };
        for instance in handles {
            let info = ask!(functions, nvmlGpuInstanceGetInfo(instance))
                .map_err(device.failed("read a GPU instance"))?;
            found.push((info, instance));
        }
    }
    Ok(found)
}

fn describe(
    device: &Device<'_>,
    board: &Board,
    handles: &[(nvmlGpuInstanceInfo_t, nvmlGpuInstance_t)],
) -> Result<Vec<GpuInstance>, Error> {
    let mut visible = mig_devices(device)?;
    let mut instances = Vec::new();
    for (info, handle) in handles {
        let profile = board.profile(info.profileId).ok_or_else(|| {
            device.nonsense(format!("GPU instance {} has no known profile", info.id))
        })?;
        instances.push(GpuInstance {
            id: info.id,
            driver_id: info.profileId,
            profile: profile.name.clone(),
            placement: device.placement(info.placement.start, info.placement.size)?,
            compute: compute_instances(device, profile, info.id, *handle, &mut visible)?,
        });
    }
    // What the tables do not describe must not be planned around as if it were not there.
    if let Some(((instance, compute), _)) = visible.first_key_value() {
        return Err(device.nonsense(format!(
            "compute instance {compute} of GPU instance {instance} has no known profile"
        )));
    }
    instances.sort_by_key(|instance| instance.placement);
    Ok(instances)
}

/// The compute instances of a GPU instance, by rising id. Takes theirs from the visible ones.
fn compute_instances(
    device: &Device<'_>,
    profile: &Profile,
    instance: u32,
    handle: nvmlGpuInstance_t,
    visible: &mut MigDevices,
) -> Result<Vec<ComputeInstance>, Error> {
    let functions = device.functions;
    let mut found = Vec::new();
    for compute in &profile.compute {
        let answer: Answer<Vec<nvmlComputeInstance_t>> = ask_list!(
            INSTANCE_ROOM,
            functions,
            nvmlGpuInstanceGetComputeInstances(handle, compute.driver_id)
        );
        // Compute profiles may come from the catalogue or a rule, and be absent on this driver.
        let handles = match answer {
            Err(NvmlCode::NOT_SUPPORTED | NvmlCode::INVALID_ARGUMENT) => continue,
            answer => answer.map_err(device.failed("list the compute instances"))?,
        };
        let name = profile.name.with_compute(compute.slices).ok_or_else(|| {
            device.nonsense(format!(
                "a compute profile of {} slices in {}",
                compute.slices, profile.name
            ))
        })?;
        for handle in handles {
            let (id, placement) = compute_info(device, handle)?;
            let (mig_index, uuid) = visible.remove(&(instance, id)).unzip();
            found.push(ComputeInstance {
                id,
                driver_id: compute.driver_id,
                profile: name.clone(),
                placement,
                uuid,
                mig_index,
                holders: Vec::new(),
            });
        }
    }
    found.sort_by_key(|compute| compute.id);
    Ok(found)
}

/// Id and place of a compute instance. Only the second version of the call tells the place.
fn compute_info(
    device: &Device<'_>,
    compute: nvmlComputeInstance_t,
) -> Result<(u32, Option<Placement>), Error> {
    let functions = device.functions;
    let failed = || device.failed("read a compute instance");
    let info: Answer<nvmlComputeInstanceInfo_t> =
        ask!(functions, nvmlComputeInstanceGetInfo_v2(compute));
    match info {
        Ok(info) => {
            let place = device.placement(info.placement.start, info.placement.size)?;
            Ok((info.id, Some(place)))
        }
        Err(NvmlCode::FUNCTION_NOT_FOUND) => {
            let info: nvmlComputeInstanceInfo_t =
                ask!(functions, nvmlComputeInstanceGetInfo(compute)).map_err(failed())?;
            Ok((info.id, None))
        }
        Err(code) => Err(failed()(code)),
    }
}

/// The MIG devices of a GPU. Their indices have gaps.
fn mig_devices(device: &Device<'_>) -> Result<MigDevices, Error> {
    let (functions, handle) = (device.functions, device.handle);
    let failed = || device.failed("list the MIG devices");
    let count: c_uint = ask!(functions, nvmlDeviceGetMaxMigDeviceCount(handle)).map_err(failed())?;
    let mut devices = MigDevices::new();
    for index in 0..count {
        let mig: nvmlDevice_t = match ask!(
            functions,
            nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        ) {
            Err(NvmlCode::NOT_FOUND) => continue,
            answer => answer.map_err(failed())?,
        };
        let instance = ask!(functions, nvmlDeviceGetGpuInstanceId(mig)).map_err(failed())?;
        let compute = ask!(functions, nvmlDeviceGetComputeInstanceId(mig)).map_err(failed())?;
        let uuid = ask_text!(functions, nvmlDeviceGetUUID(mig)).map_err(failed())?;
        let uuid = uuid
            .parse()
            .map_err(|error| device.nonsense(format!("{error}")))?;
        devices.insert((instance, compute), (index, uuid));
    }
    Ok(devices)
}

fn gpu_instance(device: &Device<'_>, id: u32) -> Answer<nvmlGpuInstance_t> {
    ask!(
        device.functions,
        nvmlDeviceGetGpuInstanceById(device.handle, id)
    )
}

impl Instances for Driver {
    fn instances(&self, gpu: &GpuUuid) -> Result<Vec<GpuInstance>, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let facts = device.board_facts()?;
        Ok(self.board_and_instances(&device, &facts)?.1)
    }

    fn create_gpu_instance(
        &self,
        gpu: &GpuUuid,
        profile: u32,
        placement: Placement,
    ) -> Result<u32, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let operation = || format!("create a GPU instance of profile {profile} at {placement}");
        let place = nvmlGpuInstancePlacement_t {
            start: placement.start.into(),
            size: placement.size.into(),
        };
        let functions = device.functions;
        let created: nvmlGpuInstance_t = ask!(
            functions,
            nvmlDeviceCreateGpuInstanceWithPlacement(device.handle, profile, &place)
        )
        .map_err(device.failed(operation()))?;
        let info: Answer<nvmlGpuInstanceInfo_t> = ask!(functions, nvmlGpuInstanceGetInfo(created));
        info.map(|info| info.id).map_err(|code| {
            // Without its id nobody could find it again, so it must not stay.
            // SAFETY: the handle is of the instance just created in this session.
            let _ = unsafe { functions.nvmlGpuInstanceDestroy(created) };
            device.failed(operation())(code)
        })
    }

    fn destroy_gpu_instance(&self, gpu: &GpuUuid, instance: u32) -> Result<(), Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        gpu_instance(&device, instance)
            .and_then(|handle| {
                // SAFETY: the handle was looked up in this session.
                check(unsafe { device.functions.nvmlGpuInstanceDestroy(handle) })
            })
            .map_err(device.failed(format!("destroy GPU instance {instance}")))
    }

    fn create_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        profile: u32,
        placement: Option<Placement>,
    ) -> Result<u32, Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let functions = device.functions;
        let operation = || {
            let place = placement
                .map(|place| format!(" at {place}"))
                .unwrap_or_default();
            format!(
                "create a compute instance of profile {profile}{place} in GPU instance {instance}"
            )
        };
        let place = placement.map(|place| nvmlComputeInstancePlacement_t {
            start: place.start.into(),
            size: place.size.into(),
        });
        let created: Answer<nvmlComputeInstance_t> =
            gpu_instance(&device, instance).and_then(|handle| match &place {
                Some(place) => ask!(
                    functions,
                    nvmlGpuInstanceCreateComputeInstanceWithPlacement(handle, profile, place)
                ),
                None => ask!(
                    functions,
                    nvmlGpuInstanceCreateComputeInstance(handle, profile)
                ),
            });
        let created = created.map_err(device.failed(operation()))?;
        compute_info(&device, created)
            .map(|(id, _)| id)
            .inspect_err(|_| {
                // Without its id nobody could find it again, so it must not stay.
                // SAFETY: the handle is of the instance just created in this session.
                let _ = unsafe { functions.nvmlComputeInstanceDestroy(created) };
            })
    }

    fn destroy_compute_instance(
        &self,
        gpu: &GpuUuid,
        instance: u32,
        compute: u32,
    ) -> Result<(), Error> {
        let session = self.session()?;
        let device = session.device(gpu)?;
        let functions = device.functions;
        gpu_instance(&device, instance)
            .and_then(|handle| {
                ask!(
                    functions,
                    nvmlGpuInstanceGetComputeInstanceById(handle, compute)
                )
            })
            .and_then(|handle| {
                // SAFETY: the handle was looked up in this session.
                check(unsafe { functions.nvmlComputeInstanceDestroy(handle) })
            })
            .map_err(device.failed(format!(
                "destroy compute instance {compute} of GPU instance {instance}"
            )))
    }
}
