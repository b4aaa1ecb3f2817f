// SPDX-License-Identifier: Apache-2.0
//! What holds after any sequence of operations.

#![allow(clippy::unwrap_used)]

use geometry::Board;
use nvmlsim::world::Instance;
use nvmlsim::{Handle, Options, World};
use proptest::prelude::*;
use units::Placement;

const BOARDS: [&str; 6] = [
    "A100-40GB",
    "A30",
    "H100-80GB-SXM",
    "H100-94GB-NVL:mirrored",
    "RTX-PRO-6000-SE",
    "B200",
];

/// An operation: what, and numbers that choose among what there is.
#[derive(Clone, Debug)]
enum Operation {
    Create {
        profile: usize,
        place: Option<usize>,
    },
    CreateAnywhere {
        profile: u32,
        place: Placement,
    },
    Destroy {
        instance: usize,
    },
    CreateCompute {
        instance: usize,
        profile: usize,
        place: Option<usize>,
    },
    DestroyCompute {
        instance: usize,
        compute: usize,
    },
    Mode {
        on: bool,
        held: bool,
    },
    Reset,
    Reboot,
}

fn operation() -> impl Strategy<Value = Operation> {
    use Operation as O;
    let some = || proptest::option::of(0usize..8);
    let place = (0u8..14, 0u8..14).prop_map(|(start, size)| Placement { start, size });
    prop_oneof![
        8 => (0usize..12, some()).prop_map(|(profile, place)| O::Create { profile, place }),
        2 => (0u32..70, place).prop_map(|(profile, place)| O::CreateAnywhere { profile, place }),
        4 => (0usize..8).prop_map(|instance| O::Destroy { instance }),
        6 => (0usize..8, 0usize..6, some()).prop_map(|(instance, profile, place)| {
            O::CreateCompute { instance, profile, place }
        }),
        4 => (0usize..8, 0usize..8).prop_map(|(instance, compute)| O::DestroyCompute { instance, compute }),
        2 => any::<(bool, bool)>().prop_map(|(on, held)| O::Mode { on, held }),
        1 => Just(O::Reset),
        1 => Just(O::Reboot),
    ]
}

/// The n-th, counted around.
fn nth<T>(all: &[T], n: usize) -> Option<&T> {
    all.get(n.checked_rem(all.len())?)
}

/// Does it, and answers whether the driver took it.
fn act(world: &mut World, board: &Board, operation: &Operation) -> Result<(), gpu::NvmlCode> {
    let instances: Vec<Instance> = world.gpus[0].instances.clone();
    let instance = |n: &usize| nth(&instances, *n).ok_or(gpu::NvmlCode::NOT_FOUND);
    match operation {
        Operation::Create { profile, place } => {
            let profile = nth(&board.profiles, *profile).unwrap();
            let place = place.and_then(|n| nth(&profile.placements, n).copied());
            world
                .create_gpu_instance(0, profile.driver_id, place)
                .map(drop)
        }
        Operation::CreateAnywhere { profile, place } => world
            .create_gpu_instance(0, *profile, Some(*place))
            .map(drop),
        Operation::Destroy { instance: n } => world.destroy_gpu_instance(0, instance(n)?.id),
        Operation::CreateCompute {
            instance: n,
            profile,
            place,
        } => {
            let instance = instance(n)?;
            let whole = board.profile(instance.profile).unwrap();
            let compute = nth(&whole.compute, *profile).unwrap();
            let place = place.and_then(|n| nth(&compute.placements, n).copied());
            world
                .create_compute_instance(0, instance.id, compute.driver_id, place)
                .map(drop)
        }
        Operation::DestroyCompute {
            instance: n,
            compute,
        } => {
            let instance = instance(n)?;
            let id = nth(&instance.compute, *compute).map_or(9, |compute| compute.id);
            world.destroy_compute_instance(0, instance.id, id)
        }
        Operation::Mode { on, held } => world.set_mode(0, *on, *held).map(drop),
        Operation::Reset => world.reset(0),
        Operation::Reboot => {
            world.reboot();
            Ok(())
        }
    }
}

/// Whether the GPU could be so: by the board's table, with sums and masks of its own.
fn is_legal(board: &Board, world: &World) -> Result<(), TestCaseError> {
    let gpu = &world.gpus[0];
    prop_assert!(gpu.mig_current || gpu.instances.is_empty());
    let mut units = 0u64;
    let (mut slices, mut media) = (0u32, [0u32; 4]);
    for instance in &gpu.instances {
        let profile = board.profile(instance.profile).unwrap();
        prop_assert!(profile.placements.contains(&instance.placement));
        prop_assert_eq!(units & instance.placement.mask(), 0, "instances overlap");
        units |= instance.placement.mask();
        slices += u32::from(profile.slices);
        let same = gpu
            .instances
            .iter()
            .filter(|other| other.profile == instance.profile);
        prop_assert!(same.count() <= usize::from(profile.max_instances));
        let e = profile.engines;
        let engines = [e.decoders, e.encoders, e.jpeg, e.ofa];
        for (sum, engine) in media.iter_mut().zip(engines) {
            *sum += u32::from(engine);
        }
        let mut inside = 0u64;
        for compute in &instance.compute {
            let known = profile
                .compute
                .iter()
                .find(|known| known.driver_id == compute.profile);
            prop_assert!(known.is_some_and(|known| known.slices == compute.placement.size));
            prop_assert_eq!(
                inside & compute.placement.mask(),
                0,
                "compute instances overlap"
            );
            inside |= compute.placement.mask();
        }
        prop_assert!(inside < 1 << profile.slices);
    }
    prop_assert!(slices <= u32::from(board.compute_slices));
    let e = board.engines;
    for (sum, budget) in media.iter().zip([e.decoders, e.encoders, e.jpeg, e.ofa]) {
        prop_assert!(*sum <= u32::from(budget));
    }
    let mut ids: Vec<u32> = gpu.instances.iter().map(|instance| instance.id).collect();
    ids.dedup();
    prop_assert_eq!(ids.len(), gpu.instances.len(), "ids repeat");
    Ok(())
}

proptest! {
    #[test]
    fn a_random_walk_stays_legal(
        board in 0..BOARDS.len(),
        operations in proptest::collection::vec(operation(), 1..60),
    ) {
        let world = World::create(&format!("1x{}", BOARDS[board]).parse().unwrap(), &Options::default());
        let board = world.gpus[0].board().unwrap();
        let handle = Handle::in_memory(world);
        handle.change(|world| { let _ = world.set_mode(0, true, false); let _ = world.reset(0); }).unwrap();
        for operation in operations {
            let before = handle.world().unwrap();
            let answer = handle.update(|world| act(world, board, &operation)).unwrap();
            let after = handle.world().unwrap();
            if answer.is_err() {
                prop_assert_eq!(&before, &after, "a refused operation changed something");
            }
            is_legal(board, &after)?;
            prop_assert_eq!(after.check(), Ok(()));
        }
    }
}
