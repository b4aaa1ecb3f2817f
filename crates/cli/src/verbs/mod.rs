// SPDX-License-Identifier: Apache-2.0
//! The verbs, one module each.

mod agent;
mod apply;
mod assert;
mod check;
mod checkpoint;
mod explain;
mod export;
mod history;
mod hooks;
mod install;
mod list;
mod plan_text;
mod planning;
mod profiles;
mod recover;
mod selftest;
mod wish;

use units::Code;

use crate::args::{Cli, ConfigVerb, Format, HostArgs, HostVerb, Verb};
use crate::env::Env;
use crate::failure::Failure;
use crate::machine::Machine;
use crate::output::Output;
use crate::sim;

/// Does what was asked and returns the exit status.
///
/// # Errors
/// If it could not be done.
pub fn run(cli: &Cli, env: &Env, output: &mut Output<'_>) -> Result<u8, Failure> {
    let lists = matches!(
        &cli.verb,
        Verb::Host(HostArgs {
            verb: HostVerb::List,
            ..
        })
    );
    if output.format == Some(Format::NvidiaSmi) && !lists {
        return Err(Failure::new(
            Code::Usage,
            "-o nvidia-smi is for `slicewright host list` only",
        ));
    }
    match &cli.verb {
        Verb::Host(args) => host(args, env, output),
        Verb::Agent(args) => agent::run(args, env, output),
        Verb::Install(args) => install::run(args, output),
        Verb::Config {
            verb: ConfigVerb::Check(args),
        } => check::run(args, output),
        Verb::Sim { verb } => sim::run(verb, output),
        Verb::OnNode { words } => {
            let error = ::agent::on_node::exec(words);
            Err(Failure::new(
                Code::NoPermission,
                format!("{}: {error}", words.join(" ")),
            ))
        }
        Verb::Explain(args) => explain::run(args, output),
    }
}

fn host(args: &HostArgs, env: &Env, output: &mut Output<'_>) -> Result<u8, Failure> {
    if let HostVerb::Assert(assert_args) = &args.verb
        && assert_args.valid_config
    {
        return assert::valid_config(assert_args, env, output);
    }
    let machine = Machine::open(args, env, output)?;
    match &args.verb {
        HostVerb::List => list::print(&machine.inventory()?, output).map(|()| 0),
        HostVerb::Profiles => profiles::print(&machine.inventory()?, output).map(|()| 0),
        HostVerb::Plan(args) => planning::run(&machine, &args.wish, env, output),
        HostVerb::Apply(args) => apply::run(&machine, args, env, output),
        HostVerb::Assert(args) => assert::run(&machine, args, env, output),
        HostVerb::GenerateConfig(args) => export::generate(&machine, args, env, output),
        HostVerb::Export(args) => export::export(&machine, args, env, output),
        HostVerb::Checkpoint(args) => checkpoint::checkpoint(&machine, args, env, output),
        HostVerb::Restore(args) => checkpoint::restore(&machine, args, env, output),
        HostVerb::Selftest(args) => selftest::run(&machine, args, output),
        HostVerb::Rollback => recover::rollback(&machine, output),
        HostVerb::Recover => recover::run(&machine, output),
        HostVerb::History => history::run(&machine, output),
    }
}
