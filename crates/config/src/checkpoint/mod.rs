// SPDX-License-Identifier: Apache-2.0
//! The checkpoint file of `nvidia-mig-parted`: exact placements of all MIG-capable GPUs, as JSON.
//!
//! Profiles are NVML's enum values there, not the driver's ids. Placements of compute instances
//! are not recorded.

mod decode;

pub(crate) use decode::decode;
pub use decode::parse;

use geometry::inventory::{Gpu, GpuInstance, Inventory};
use geometry::{Board, ComputeSpec, InstanceSpec, Layout};
use serde::{Serialize, Serializer};
use units::{GpuUuid, Mode, Placement};

/// A checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// MIG-capable GPUs in the order of their index then.
    pub devices: Vec<DeviceState>,
}

/// What was on a GPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct DeviceState {
    /// Which GPU.
    #[serde(rename = "UUID")]
    pub uuid: GpuUuid,
    /// Whether MIG was on.
    #[serde(serialize_with = "as_number")]
    pub mig_mode: bool,
    /// Its GPU instances.
    #[serde(serialize_with = "null_if_empty")]
    pub gpu_instances: Vec<GpuInstanceState>,
}

/// A GPU instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct GpuInstanceState {
    /// NVML's enum value of the profile.
    #[serde(rename = "ProfileID")]
    pub profile_enum: u32,
    /// Where it was.
    #[serde(serialize_with = "placement")]
    pub placement: Placement,
    /// Its compute instances.
    #[serde(serialize_with = "null_if_empty")]
    pub compute_instances: Vec<ComputeInstanceState>,
}

/// A compute instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct ComputeInstanceState {
    /// NVML's enum value of the profile.
    #[serde(rename = "ProfileID")]
    pub profile_enum: u32,
    /// NVML's enum value of the engine profile; 0, shared, is the only one there is.
    #[serde(rename = "EngProfileID")]
    pub engine_enum: u32,
}

/// A checkpoint and a GPU do not go together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// A profile that the board does not have.
    #[error("{board} has no GPU instance profile with the NVML enum value {profile_enum}")]
    NoProfile {
        /// The board's key.
        board: String,
        /// The value.
        profile_enum: u32,
    },
    /// A compute instance profile that the GPU instance profile does not have.
    #[error("{profile} has no compute instance profile with the NVML enum value {profile_enum}")]
    NoComputeProfile {
        /// The GPU instance profile.
        profile: String,
        /// The value.
        profile_enum: u32,
    },
    /// An instance whose profile the board's tables lack.
    #[error("GPU {index}: the tables of {board} lack the profile of instance {instance}")]
    NotInTables {
        /// The GPU's index.
        index: u32,
        /// The board's key.
        board: String,
        /// The driver's id of the GPU instance.
        instance: u32,
    },
}

impl Checkpoint {
    /// The present state of a machine.
    ///
    /// # Errors
    /// [`CheckpointError::NotInTables`] if an instance cannot be written down.
    pub fn of(inventory: &Inventory) -> Result<Self, CheckpointError> {
        let capable = inventory.gpus.iter().filter(|gpu| gpu.mode.is_some());
        let devices: Result<_, _> = capable.map(DeviceState::of).collect();
        Ok(Self { devices: devices? })
    }

    /// The file's text, byte by byte as `nvidia-mig-parted checkpoint` writes it.
    pub fn print(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The state of the GPU with that UUID.
    pub fn device(&self, uuid: &GpuUuid) -> Option<&DeviceState> {
        self.devices.iter().find(|device| device.uuid == *uuid)
    }
}

impl DeviceState {
    fn of(gpu: &Gpu) -> Result<Self, CheckpointError> {
        let is_on = gpu.mode.is_some_and(Mode::is_on);
        let instances = gpu.instances.iter().filter(|_| is_on);
        let states: Result<Vec<_>, _> = instances
            .map(|instance| GpuInstanceState::of(gpu, instance))
            .collect();
        let mut gpu_instances = states?;
        gpu_instances.sort_by_key(|state| (state.profile_enum, state.placement));
        Ok(Self {
            uuid: gpu.uuid.clone(),
            mig_mode: is_on,
            gpu_instances,
        })
    }

    /// The layout of this GPU on a board. Compute instances have no placement.
    ///
    /// # Errors
    /// A profile that the board does not have.
    pub fn layout(&self, board: &Board) -> Result<Layout, CheckpointError> {
        let specs: Result<Vec<_>, _> = self
            .gpu_instances
            .iter()
            .map(|state| state.spec(board))
            .collect();
        let mut instances = specs?;
        instances.sort();
        Ok(Layout { instances })
    }
}

impl GpuInstanceState {
    fn of(gpu: &Gpu, instance: &GpuInstance) -> Result<Self, CheckpointError> {
        let missing = || CheckpointError::NotInTables {
            index: gpu.index,
            board: gpu.board.key.clone(),
            instance: instance.id,
        };
        let profile = gpu.board.profile(instance.driver_id).ok_or_else(missing)?;
        let compute = instance.compute.iter().map(|compute| {
            let known = profile
                .compute
                .iter()
                .find(|it| it.driver_id == compute.driver_id);
            known.map(|known| ComputeInstanceState {
                profile_enum: known.nvml_enum,
                engine_enum: 0,
            })
        });
        let mut compute_instances: Vec<ComputeInstanceState> =
            compute.collect::<Option<_>>().ok_or_else(missing)?;
        compute_instances.sort_unstable();
        Ok(Self {
            profile_enum: profile.nvml_enum,
            placement: instance.placement,
            compute_instances,
        })
    }

    fn spec(&self, board: &Board) -> Result<InstanceSpec, CheckpointError> {
        let mut profiles = board.profiles.iter();
        let profile = profiles
            .find(|profile| profile.nvml_enum == self.profile_enum)
            .ok_or_else(|| CheckpointError::NoProfile {
                board: board.key.clone(),
                profile_enum: self.profile_enum,
            })?;
        let compute = self.compute_instances.iter().map(|state| {
            let known = profile
                .compute
                .iter()
                .find(|it| it.nvml_enum == state.profile_enum);
            known
                .and_then(|known| {
                    Some(ComputeSpec {
                        profile: profile.name.with_compute(known.slices)?,
                        driver_id: known.driver_id,
                        placement: None,
                    })
                })
                .ok_or_else(|| CheckpointError::NoComputeProfile {
                    profile: profile.name.to_string(),
                    profile_enum: state.profile_enum,
                })
        });
        Ok(InstanceSpec {
            placement: self.placement,
            profile: profile.name.clone(),
            driver_id: profile.driver_id,
            compute: compute.collect::<Result<_, _>>()?,
        })
    }
}

impl Serialize for Checkpoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct File<'a> {
            version: &'static str,
            mig_state: MigState<'a>,
        }
        #[derive(Serialize)]
        #[serde(rename_all = "PascalCase")]
        struct MigState<'a> {
            #[serde(serialize_with = "null_if_empty")]
            devices: &'a [DeviceState],
        }
        let mig_state = MigState {
            devices: &self.devices,
        };
        let version = "v1";
        File { version, mig_state }.serialize(serializer)
    }
}

/// Go writes an empty slice that was never filled as null.
fn null_if_empty<T: Serialize, S: Serializer>(
    list: impl AsRef<[T]>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match list.as_ref() {
        [] => serializer.serialize_none(),
        list => list.serialize(serializer),
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)]
fn as_number<S: Serializer>(on: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u8(u8::from(*on))
}

fn placement<S: Serializer>(placement: &Placement, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(rename_all = "PascalCase")]
    struct Go {
        start: u8,
        size: u8,
    }
    let Placement { start, size } = *placement;
    Go { start, size }.serialize(serializer)
}

#[cfg(test)]
mod tests;
