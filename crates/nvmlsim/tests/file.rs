// SPDX-License-Identifier: Apache-2.0
//! A world in a file that several use at once.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;
use std::thread;

use nvmlsim::{Handle, Options, SimError, Target, World, verbs};
use units::Code;

/// A folder of this test, gone afterwards.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nvmlsim-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn world(&self, spec: &str) -> Handle {
        let world = World::create(&spec.parse().unwrap(), &Options::default());
        Handle::create(&self.path(), &world).unwrap()
    }

    fn path(&self) -> PathBuf {
        self.0.join("world.json")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn no_update_is_lost() {
    const EACH: u64 = 50;
    let folder = Folder::new("updates");
    let handle = folder.world("1xT4");
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let own = Handle::open(&folder.path()).unwrap();
                for _ in 0..EACH {
                    own.change(|world| world.seed += 1).unwrap();
                }
            });
        }
    });
    let world = handle.world().unwrap();
    assert_eq!((world.seed, world.generation), (4 * EACH, 4 * EACH));
}

#[test]
fn others_see_a_change_at_once_and_it_stays() {
    let folder = Folder::new("sees");
    let (one, other) = (
        folder.world("1xH100-80GB-SXM"),
        Handle::open(&folder.path()).unwrap(),
    );
    one.update(|world| world.set_mode(0, true, false))
        .unwrap()
        .unwrap();
    assert!(other.world().unwrap().gpus[0].mig_current);
    let id = other
        .update(|world| world.create_gpu_instance(0, 19, None))
        .unwrap()
        .unwrap();
    let refused = other
        .update(|world| world.set_mode(0, false, false))
        .unwrap();
    assert!(refused.is_err());
    drop((one, other));
    let later = Handle::open(&folder.path()).unwrap().world().unwrap();
    assert_eq!(later.gpus[0].instances[0].id, id);
    verbs::reboot(&Handle::open(&folder.path()).unwrap()).unwrap();
    let later = Handle::open(&folder.path()).unwrap().world().unwrap();
    assert!(later.gpus[0].instances.is_empty() && later.boot == 2);
}

#[test]
fn a_world_is_not_written_over() {
    let folder = Folder::new("exists");
    folder.world("1xT4");
    let world = World::create(&"1xA30".parse().unwrap(), &Options::default());
    let error = Handle::create(&folder.path(), &world).unwrap_err();
    assert!(matches!(error, SimError::Exists { .. }), "{error}");
}

#[test]
fn what_is_no_world_is_refused() {
    let folder = Folder::new("damaged");
    folder.world("2xH100-80GB-SXM");
    let good = std::fs::read_to_string(folder.path()).unwrap();
    let damages = [
        String::new(),
        "[]".into(),
        good[..good.len() / 2].into(),
        good.replace("\"slicewright_world\":1", "\"slicewright_world\":99"),
        good.replace("H100-80GB-SXM", "H100-80GB-XXX"),
        good.replace("\"instances\":[]", "\"instances\":[{\"id\":1,\"profile\":9,\"placement\":{\"start\":0,\"size\":4},\"serial\":1,\"compute\":[]}]"),
    ];
    for damaged in damages {
        std::fs::write(folder.path(), &damaged).unwrap();
        let error = Handle::open(&folder.path()).unwrap_err();
        assert_eq!(error.code(), Code::SimInvalid);
        assert!(
            error.to_string().contains("is not a simulated world"),
            "{error}"
        );
    }
}

#[test]
fn what_a_killed_writer_leaves_does_no_harm() {
    let folder = Folder::new("leftover");
    let handle = folder.world("1xT4");
    std::fs::write(folder.0.join("world.json.new"), "{\"half\":").unwrap();
    handle.change(|world| world.seed = 5).unwrap();
    assert_eq!(
        Handle::open(&folder.path()).unwrap().world().unwrap().seed,
        5
    );
}

#[test]
fn holds_end_with_their_guard() {
    let folder = Folder::new("holds");
    let handle = folder.world("2xT4");
    let uuid = handle.world().unwrap().gpus[1].uuid.to_string();
    let first = handle.hold(&uuid).unwrap();
    let second = Handle::open(&folder.path()).unwrap().hold(&uuid).unwrap();
    let held = |gpu| handle.holders(Target::gpu(gpu));
    assert_eq!((held(0), held(1)), (vec![], vec![std::process::id()]));
    drop(first);
    assert_eq!(held(1), [std::process::id()]);
    drop(second);
    assert!(held(1).is_empty());
    assert!(handle.hold("GPU-none").is_err());
}
