// SPDX-License-Identifier: Apache-2.0
//! MIG mode, reset and reboot.

use gpu::NvmlCode;

use geometry::ModeChange;

use super::{EventKind, World};
use crate::code::{Answer, IN_USE, NOT_SUPPORTED, RESET_REQUIRED, SUCCESS};

impl World {
    /// Asks for MIG on or off; answers whether it is in force now (`SUCCESS`), waits for a reset
    /// (`RESET_REQUIRED`), or waits because something uses the GPU (`IN_USE`). Ampere always needs
    /// the reset, Hopper and later only if something uses the GPU.
    ///
    /// # Errors
    /// `NOT_SUPPORTED` on a board without MIG; `IN_USE` to switch off what has instances.
    pub fn set_mode(&mut self, gpu: u32, on: bool, held: bool) -> Answer<NvmlCode> {
        let device = self.gpu_mut(gpu)?;
        let board = device.board()?;
        if !board.has_mig() {
            return Err(NOT_SUPPORTED);
        }
        if !on && !device.instances.is_empty() {
            return Err(IN_USE);
        }
        device.mig_pending = on;
        if board.mode_change == ModeChange::Immediate && !held {
            device.mig_current = on;
        }
        let activation = match (device.mig_current == on, held) {
            (true, _) => SUCCESS,
            (false, true) => IN_USE,
            (false, false) => RESET_REQUIRED,
        };
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(activation)
    }

    /// Resets a GPU that nothing uses: instances are gone, the pending mode is in force.
    ///
    /// # Errors
    /// `GPU_IS_LOST`: a lost GPU needs a reboot.
    pub fn reset(&mut self, gpu: u32) -> Answer<()> {
        let device = self.gpu_mut(gpu)?;
        device.instances.clear();
        device.mig_current = device.mig_pending;
        self.tell(gpu, None, EventKind::MigConfigChange);
        Ok(())
    }

    /// Restarts the machine. Instances are gone everywhere; Ampere keeps the MIG mode that was
    /// asked for, Hopper and later start with MIG off; lost GPUs are back.
    pub fn reboot(&mut self) {
        self.boot = self.boot.wrapping_add(1);
        self.events.clear();
        for gpu in &mut self.gpus {
            let keeps = gpu
                .board()
                .is_ok_and(|board| board.mode_change == ModeChange::NeedsReset);
            gpu.mig_pending &= keeps;
            gpu.mig_current = gpu.mig_pending;
            gpu.instances.clear();
            gpu.lost = false;
        }
    }
}
