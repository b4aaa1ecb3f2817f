// SPDX-License-Identifier: Apache-2.0
//! A new world, and identities derived from its seed.

use geometry::Board;
use units::{GpuUuid, MigUuid};

use super::{Compute, FORMAT, Gpu, Instance, Spec, SpecError, World};

/// What a new world is like beside its GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Identities are derived from it; also, device minors are the indices turned by it.
    pub seed: u64,
    /// How long a call takes that changes something, in milliseconds.
    pub latency_ms: u64,
    /// Driver version, `580.95.05`; up to R535 profiles cannot be asked while MIG is off.
    pub driver_version: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            latency_ms: 0,
            driver_version: "580.95.05".into(),
        }
    }
}

impl World {
    /// A machine that was just started, with MIG off everywhere.
    pub fn create(spec: &Spec, options: &Options) -> Self {
        let count = spec.gpus.len();
        let gpus = spec.gpus.iter().enumerate();
        let gpus = gpus.map(|(index, (board, mirrored))| {
            new_gpu(index, count, board, *mirrored, options.seed)
        });
        Self {
            slicewright_world: FORMAT,
            seed: options.seed,
            generation: 0,
            boot: 1,
            driver_version: options.driver_version.clone(),
            cuda_version: cuda_version(&options.driver_version),
            latency_ms: options.latency_ms,
            gpus: gpus.collect(),
            rules: Vec::new(),
            events: Vec::new(),
            next_serial: 0,
        }
    }
}

/// The CUDA version that a driver of that branch supports (NVIDIA's release notes of CUDA); of an
/// unknown branch, that of the newest known one before it.
fn cuda_version(driver: &str) -> (u16, u16) {
    const BRANCHES: [(u32, (u16, u16)); 9] = [
        (450, (11, 0)),
        (470, (11, 4)),
        (525, (12, 0)),
        (535, (12, 2)),
        (550, (12, 4)),
        (560, (12, 6)),
        (570, (12, 8)),
        (580, (13, 0)),
        (590, (13, 1)),
    ];
    let branch = driver
        .split('.')
        .next()
        .and_then(|branch| branch.parse().ok());
    let branch: u32 = branch.unwrap_or(u32::MAX);
    let before = BRANCHES.iter().rev().find(|(known, _)| *known <= branch);
    before.unwrap_or(&BRANCHES[0]).1
}

/// The text, if it is a driver version: numbers with dots between.
///
/// # Errors
/// [`SpecError::DriverVersion`].
pub fn driver_version(text: &str) -> Result<String, SpecError> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split('.').collect();
    if (2..=3).contains(&parts.len()) && parts.into_iter().all(is_number) {
        return Ok(text.to_owned());
    }
    Err(SpecError::DriverVersion {
        text: text.to_owned(),
    })
}

fn new_gpu(index: usize, count: usize, board: &Board, mirrored: bool, seed: u64) -> Gpu {
    let number = index as u64;
    let identity = format!("{seed}/{number}/{}", board.key);
    Gpu {
        minor: ((number + seed % count as u64) % count as u64) as u32,
        uuid: GpuUuid::from_bits(uuid_bits(&identity)),
        board: board.key.clone(),
        bus: (7 + 8 * index).min(255) as u8,
        serial: format!(
            "165{:010}",
            hash(seed, identity.as_bytes()) % 10_000_000_000
        ),
        numa_node: (index * 2 / count.max(2)) as u32,
        memory_mib: board.nominal_memory_mib(),
        mirrored,
        persistence: true,
        mig_current: false,
        mig_pending: false,
        lost: false,
        instances: Vec::new(),
    }
}

/// The UUID of a compute instance: from its GPU and its place alone.
pub fn mig_uuid(gpu: &GpuUuid, instance: &Instance, compute: &Compute) -> MigUuid {
    let place = format!(
        "{gpu}/{}/{}/{}/{}",
        instance.id, instance.placement, compute.id, compute.placement
    );
    MigUuid::from_bits(uuid_bits(&place))
}

/// A UUID of version 5's form from the text. Real ones are SHA-1 over the chip's identity; here
/// only that they are stable and differ matters.
fn uuid_bits(text: &str) -> u128 {
    let bits = u128::from(hash(1, text.as_bytes())) << 64 | u128::from(hash(2, text.as_bytes()));
    let version_and_variant = 0xf << 76 | 0b11 << 62;
    bits & !version_and_variant | 5 << 76 | 0b10 << 62
}

/// FNV-1a, with the last step of splitmix64 so that every bit of the input reaches every bit.
fn hash(salt: u64, bytes: &[u8]) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ salt.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = bytes.iter().fold(start, |state, byte| {
        (state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
