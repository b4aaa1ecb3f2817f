// SPDX-License-Identifier: Apache-2.0
//! `slicewright host plan`.

use geometry::inventory::Inventory;
use plan::{Plan, Policy, Refusal, Report, Wish};
use units::Code;

use super::plan_text::{changes, cost, planned_states, states};
use super::wish::Wanted;
use crate::args::WishArgs;
use crate::env::Env;
use crate::failure::{Failure, Told};
use crate::machine::Machine;
use crate::output::Output;

/// Plans what is wanted and prints the plan: 0 nothing to do, 1 something, 3 refused.
///
/// # Errors
/// If nothing can be planned.
pub fn run(
    machine: &Machine,
    args: &WishArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let wanted = Wanted::read(args, env)?;
    let inventory = machine.inventory()?;
    let wish = wanted.resolve(&inventory);
    run_wish(machine, &inventory, wish, &wanted.policy, output)
}

/// The same for a wish that is already there, or why there is none.
///
/// # Errors
/// If nothing can be planned.
pub fn run_wish(
    machine: &Machine,
    inventory: &Inventory,
    wish: Result<Wish, Failure>,
    policy: &Policy,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let planned = wish.and_then(|wish| Ok(plan::plan(inventory, &wish, policy)?));
    let mut plan = match planned {
        Ok(plan) => plan,
        Err(failure) => return refused(failure, output),
    };
    if let Some(open) = host::open_change(machine.storage())? {
        let message = format!(
            "change {} ({}) was begun and not ended; `slicewright host recover` ends it, \
             and so does the next apply",
            open.id(),
            open.intent().text
        );
        plan.warnings.push(plan::Warning {
            code: Code::JournalOpen,
            message,
        });
    }
    let report = Report::planned(&plan);
    if output.is_machine() {
        output.machine(&report)?;
    } else {
        show(&plan, inventory, output)?;
        let after = planned_states(&plan, inventory);
        match plan.is_empty() {
            true => output.text("\nNothing to do: all is as wanted.\n")?,
            false => output.text(format_args!("\nAfter (planned)\n{after}"))?,
        }
    }
    Ok(u8::from(!plan.is_empty()))
}

/// Prints what is there and what would be done about it.
///
/// # Errors
/// If it cannot be written.
pub fn show(plan: &Plan, inventory: &Inventory, output: &mut Output<'_>) -> Result<(), Failure> {
    for warning in &plan.warnings {
        output.warn(warning.code, &warning.message);
    }
    output.text(format_args!("Before\n{}", states(plan, inventory)))?;
    output.text(format_args!("\nPlan\n{}", changes(plan)))?;
    output.text(format_args!("  {}\n", cost(&plan::impact(plan))))
}

/// Prints a refusal: as a report for programs.
///
/// # Errors
/// The failure itself if it is no refusal.
pub fn refused(failure: Failure, output: &mut Output<'_>) -> Result<u8, Failure> {
    match failure {
        Failure::Told(told) if told.code.exit_status() == 3 => {
            if output.is_machine() {
                let Told {
                    code,
                    message,
                    choices,
                } = told.clone();
                output.machine(&Report::refused(Refusal {
                    code,
                    message,
                    choices,
                }))?;
            }
            output.tell(&told);
            Ok(told.code.exit_status())
        }
        other => Err(other),
    }
}
