// SPDX-License-Identifier: Apache-2.0
//! Whether a node is rebooted for a change.

use plan::Refusal;
use serde::{Deserialize, Serialize};
use units::Code;

/// A reboot that was asked for, as it is kept on disk: it outlives the reboot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebootAsked {
    /// Name of the MIG config that it was for.
    pub wanted: String,
    /// The kernel's id of the boot during which it was asked for.
    pub boot_id: String,
}

/// Whether the node may be rebooted for a MIG config: once, as what one reboot did not bring the
/// next will not bring either. `now` is the present boot; `in_vain` that this very process has
/// asked and waited already.
///
/// # Errors
/// `reboot-needed`, with what was tried.
pub fn may_reboot(
    asked: Option<&RebootAsked>,
    now: &RebootAsked,
    in_vain: bool,
) -> Result<(), Refusal> {
    let wanted = &now.wanted;
    let tried = match asked {
        _ if in_vain => "the node was told to reboot and did not; reboot it",
        Some(asked) if asked.wanted == *wanted && asked.boot_id != now.boot_id => {
            "the change did not take effect after rebooting"
        }
        _ => return Ok(()),
    };
    let message = format!("{wanted}: {tried}");
    Err(Refusal::new(Code::RebootNeeded, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(wanted: &str, boot_id: &str) -> RebootAsked {
        RebootAsked {
            wanted: wanted.to_owned(),
            boot_id: boot_id.to_owned(),
        }
    }

    #[test]
    fn a_node_is_rebooted_once_for_a_config() {
        let now = asked("all-1g.5gb", "second");
        let may = |before: Option<RebootAsked>| may_reboot(before.as_ref(), &now, false);
        assert_eq!(may(None), Ok(()));
        assert_eq!(may(Some(asked("all-disabled", "first"))), Ok(()));
        // Asked and killed before the machine went down.
        assert_eq!(may(Some(asked("all-1g.5gb", "second"))), Ok(()));
        let refusal = may(Some(asked("all-1g.5gb", "first"))).expect_err("a second reboot");
        assert_eq!(refusal.code, Code::RebootNeeded);
        assert!(
            refusal
                .message
                .contains("did not take effect after rebooting")
        );
    }

    #[test]
    fn a_machine_that_does_not_go_down_is_not_asked_again() {
        let now = asked("all-1g.5gb", "first");
        let refusal = may_reboot(Some(&now), &now, true).expect_err("asked in vain");
        assert!(refusal.message.contains("and did not"));
    }
}
