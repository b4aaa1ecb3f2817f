// SPDX-License-Identifier: Apache-2.0
//! Changes that were begun and not ended, and the way back: `slicewright host recover`, `rollback`.

use host::{Ending, Host, OpenChange, Toward};
use serde::Serialize;

use super::apply::{Change, carry_out, failure_of};
use super::hooks::Hooks;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::output::Output;

/// What programs get of `recover`. Version 1.
#[derive(Serialize)]
struct RecoverReport {
    version: &'static str,
    change: Option<u64>,
    result: &'static str,
}

/// `slicewright host recover`: undoes an open change, or says that there is none.
///
/// # Errors
/// If it cannot be ended.
pub fn run(machine: &Machine, output: &mut Output<'_>) -> Result<u8, Failure> {
    let state = machine.lock()?;
    let host = machine.host(&state);
    let open = host::open_change(state.storage())?;
    let result = match &open {
        None => "nothing",
        Some(open) => resolve(&host, open, false, output)?,
    };
    if output.is_machine() {
        let change = open.as_ref().map(OpenChange::id);
        output.machine(&RecoverReport {
            version: "v1",
            change,
            result,
        })?;
    } else if open.is_none() {
        output.text("Nothing to recover: no change is open.\n")?;
    }
    Ok(0)
}

/// Ends an open change, in the new layout if that is still wanted, and says so.
///
/// # Errors
/// If it cannot be ended.
pub fn resolve(
    host: &Host<'_>,
    open: &OpenChange,
    wanted: bool,
    output: &mut Output<'_>,
) -> Result<&'static str, Failure> {
    let toward = if wanted { Toward::New } else { Toward::Old };
    let ending = host
        .recover(toward)?
        .map_or(Ending::Nothing, |outcome| outcome.ending);
    let what = format!(
        "change {} ({}) was begun and not ended",
        open.id(),
        open.intent().text
    );
    match ending {
        Ending::Done => {
            output.note(format_args!("{what}: it was finished"));
            Ok("applied")
        }
        Ending::Nothing | Ending::PutBack { .. } => {
            output.note(format_args!(
                "{what}: it was undone, the layout before it is there again"
            ));
            Ok("rolled-back")
        }
        stuck @ Ending::Stuck { .. } => match failure_of(&stuck) {
            Some(told) => Err(Failure::Told(told)),
            None => Ok("nothing"),
        },
    }
}

/// `slicewright host rollback`: undoes an open change, else goes back before the last apply.
///
/// # Errors
/// If there is nothing to go back to.
pub fn rollback(machine: &Machine, output: &mut Output<'_>) -> Result<u8, Failure> {
    if host::open_change(machine.storage())?.is_some() {
        return run(machine, output);
    }
    let state = machine.lock()?;
    let (wish, intent) = machine.host(&state).rollback_wish()?;
    let change = Change {
        intent,
        policy: plan::Policy::default(),
        wish: Box::new(move |_| Ok(wish.clone())),
    };
    carry_out(machine, &state, &change, &Hooks::default(), output)
}
