// SPDX-License-Identifier: Apache-2.0
//! `slicewright host apply`, and what every change has in common.

use std::time::Instant;

use config::hooks::Point;
use geometry::inventory::Inventory;
use host::{Ending, Intent, Kind, Outcome, StateDir};
use plan::{Plan, Policy, Report, Wish};
use serde::Serialize;

use super::hooks::Hooks;
use super::plan_text::{counted, states};
use super::planning;
use super::recover;
use super::wish::Wanted;
use crate::args::ApplyArgs;
use crate::env::Env;
use crate::failure::{Failure, Told};
use crate::machine::{Calls, Machine};
use crate::output::Output;

/// Plans what is wanted and does it.
///
/// # Errors
/// If nothing was done.
pub fn run(
    machine: &Machine,
    args: &ApplyArgs,
    env: &Env,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    if args.dry_run {
        return planning::run(machine, &args.wish, env, output);
    }
    let wanted = Wanted::read(&args.wish, env)?;
    let variables = wanted.variables.clone();
    let hooks = Hooks::read(args.hooks_file.as_ref(), args.debug, env, variables, output)?;
    let change = Change {
        intent: Intent::apply(&wanted.text),
        policy: wanted.policy,
        wish: Box::new(move |inventory| wanted.resolve(inventory)),
    };
    carry_out(machine, &machine.lock()?, &change, &hooks, output)
}

/// A change to make.
pub struct Change<'a> {
    /// Who wants it, and why.
    pub intent: Intent,
    /// What it may do.
    pub policy: Policy,
    /// What is wanted of the hardware as it is.
    pub wish: WishOf<'a>,
}

/// From the hardware as it is to what is wanted of it.
pub type WishOf<'a> = Box<dyn Fn(&Inventory) -> Result<Wish, Failure> + 'a>;

/// Makes a change with its hooks, after an open journal was resolved.
///
/// # Errors
/// If nothing was done.
pub fn carry_out(
    machine: &Machine,
    state: &StateDir,
    change: &Change<'_>,
    hooks: &Hooks,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let result = hooks
        .run(Point::ApplyStart, output)
        .and_then(|()| act(machine, state, change, hooks, output));
    let exit = hooks.run(Point::ApplyExit, output);
    match (result, exit) {
        (Ok(0), Err(failure)) => Err(failure),
        (result, Err(Failure::Told(told))) => {
            output.tell(&told);
            result
        }
        (result, _) => result,
    }
}

fn act(
    machine: &Machine,
    state: &StateDir,
    change: &Change<'_>,
    hooks: &Hooks,
    output: &mut Output<'_>,
) -> Result<u8, Failure> {
    let begun = Instant::now();
    let calls = machine.calls();
    let host = machine.host(state);
    let mut inventory = machine.inventory()?;
    let mut wish = (change.wish)(&inventory);
    // A wish that means nothing here leaves an open change as it is, too.
    if let (Ok(wanted), Some(open)) = (&wish, host::open_change(state.storage())?) {
        recover::resolve(&host, &open, open.leads_to(wanted), output)?;
        inventory = machine.inventory()?;
        wish = (change.wish)(&inventory);
    }
    let planned = wish.and_then(|wish| Ok(plan::plan(&inventory, &wish, &change.policy)?));
    let plan = match planned {
        Ok(plan) => plan,
        Err(failure) => return planning::refused(failure, output),
    };
    if !output.is_machine() {
        planning::show(&plan, &inventory, output)?;
    }
    before(&plan, hooks, output)?;
    let outcome = machine.apply(state, &plan, &change.intent, output)?;
    // How it ended is told even if the driver cannot be read any more.
    let after = match outcome.ending {
        Ending::Nothing => None,
        _ => machine.inventory().ok(),
    };
    let done = Done {
        plan,
        outcome,
        after,
        calls: machine.calls().since(calls),
        begun,
        // After a rollback this would go one change further back.
        way_back: (!is_rollback(&change.intent)).then(|| machine.way_back()),
    };
    done.tell(output)
}

fn is_rollback(intent: &Intent) -> bool {
    matches!(intent.kind, Kind::Rollback { .. })
}

/// Runs the hooks that come before what the plan does.
fn before(plan: &Plan, hooks: &Hooks, output: &mut Output<'_>) -> Result<(), Failure> {
    let changes_mode = |gpu: &plan::GpuPlan| gpu.mode_before != gpu.mode_after || gpu.resets();
    if plan.gpus.iter().any(changes_mode) {
        hooks.run(Point::PreApplyMode, output)?;
    }
    if plan.gpus.iter().any(|gpu| gpu.before != gpu.after) {
        hooks.run(Point::PreApplyConfig, output)?;
    }
    Ok(())
}

/// A change that has ended.
struct Done<'a> {
    plan: Plan,
    outcome: Outcome,
    after: Option<Inventory>,
    calls: Calls,
    begun: Instant,
    way_back: Option<&'a str>,
}

/// What programs get. Version 1: the report of the plan, and what became of it.
#[derive(Serialize)]
struct ApplyReport<'a> {
    #[serde(flatten)]
    report: Report,
    result: &'static str,
    calls: Calls,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Told>,
}

impl Done<'_> {
    fn tell(&self, output: &mut Output<'_>) -> Result<u8, Failure> {
        let failed = failure_of(&self.outcome.ending);
        if output.is_machine() {
            output.machine(&ApplyReport {
                report: Report::planned(&self.plan),
                result: match self.outcome.ending {
                    Ending::Nothing => "nothing",
                    Ending::Done => "applied",
                    Ending::PutBack { .. } => "rolled-back",
                    Ending::Stuck { .. } => "stuck",
                },
                calls: self.calls,
                error: failed.as_ref(),
            })?;
        } else {
            self.tell_person(output)?;
        }
        if let Some(told) = &failed {
            output.tell(told);
        }
        Ok(failed.map_or(0, |told| told.code.exit_status()))
    }

    fn tell_person(&self, output: &mut Output<'_>) -> Result<(), Failure> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let mutating = usize::try_from(self.calls.mutating).unwrap_or(usize::MAX);
        let calls = format!(
            "{} and {} reads",
            counted(mutating, "driver call"),
            self.calls.reading
        );
        if self.outcome.ending == Ending::Nothing {
            let line = format!("\nNothing to do: all is as wanted ({seconds:.3}s).\n");
            return output.text(line);
        }
        if let Some(after) = &self.after {
            output.text(format_args!("\nAfter\n{}", states(&self.plan, after)))?;
        }
        if self.outcome.ending != Ending::Done {
            return output.text(format_args!("\nFailed after {seconds:.3}s: {calls}.\n"));
        }
        output.text(format_args!(
            "\nDone and read back in {seconds:.3}s: {calls}.\n"
        ))?;
        self.way_back
            .map_or(Ok(()), |line| output.text(format_args!("{line}\n")))
    }
}

/// What is told of a change that did not end well.
pub fn failure_of(ending: &Ending) -> Option<Told> {
    Some(Told {
        code: ending.code()?,
        message: ending.message()?,
        choices: Vec::new(),
    })
}
