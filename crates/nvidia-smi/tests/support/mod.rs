// SPDX-License-Identifier: Apache-2.0
//! A simulated machine in a folder of its own, and the program on it.

use std::path::PathBuf;
use std::process::Command;

use nvmlsim::{Handle, Options, WORLD_VARIABLE, World};

/// The folder goes with it.
pub struct Machine {
    folder: PathBuf,
    /// The world.
    pub handle: Handle,
}

impl Machine {
    /// A machine of that spec; `name` is that of the test.
    pub fn new(name: &str, spec: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("nvidia-smi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let world = World::create(&spec.parse().unwrap(), &Options::default());
        let handle = Handle::create(&folder.join("world.json"), &world).unwrap();
        Self { folder, handle }
    }

    /// The program with these words, on this machine.
    pub fn nvidia_smi(&self, words: &str) -> Command {
        let library = std::env::current_exe()
            .unwrap()
            .with_file_name("libnvmlsim.so");
        let mut command = Command::new(env!("CARGO_BIN_EXE_nvidia-smi"));
        command.args(words.split_whitespace());
        command.env("NVMLSIM_LIBRARY", library);
        command.env(WORLD_VARIABLE, self.folder.join("world.json"));
        command
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
