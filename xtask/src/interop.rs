// SPDX-License-Identifier: Apache-2.0
//! The simulated driver under NVML clients that others wrote: what they say is compared with what
//! is there. The structs that we share with NVML, under the C compiler. Our definitions of the
//! kubelet's protocols beside Kubernetes' own. And our CDI specifications under the code of runtimes.
//!
//! The clients are in `interop/`; they load the simulated library, built here, on a world file.

mod clients;
mod compare;
mod layout;
mod machine;
mod protocol;
mod runtime;

use std::path::Path;

use geometry::inventory::{ComputeInstance, GpuInstance};
use serde::Deserialize;

use crate::error::Error;
use crate::test::Counts;
use clients::{Client, Environment};
use machine::Machine;

/// What is wrong, a sentence each; none if all is well.
type Findings = Vec<String>;

/// What was tried, and what came of it.
type Outcome = (String, Result<Findings, Error>);

/// Runs every client that this machine can run; no counts if there is none.
///
/// # Errors
/// If the simulated driver cannot be built or set up; with `CI=true` also if a client cannot.
pub fn run(root: &Path) -> Result<Option<Counts>, Error> {
    let library = clients::build_library(root)?;
    let work = library.with_file_name("interop");
    let machine = Machine::set_up(&work)?;
    let environment = machine.environment(&library)?;
    let mut outcomes = Vec::new();
    if let Some([bindings, nvitop]) = clients::python(root, &work)? {
        outcomes.extend(exercise(&bindings, &machine, &environment));
        outcomes.push((
            "nvitop shows".into(),
            shows(&nvitop, &machine, &environment),
        ));
    }
    if let Some([client, cdi, schema]) = clients::go(root, &work)? {
        outcomes.extend(exercise(&client, &machine, &environment));
        outcomes.push((
            "container-device-interface takes".into(),
            runtime::check(&cdi, &machine, &work),
        ));
        outcomes.push((
            "the CDI project's schema takes".into(),
            runtime::check_schema(&schema, &machine, &work),
        ));
        outcomes.push(("nvml.h lays out".into(), layout::check(root, &work)));
        let protocol = protocol::check(root, &work).transpose();
        outcomes.extend(protocol.map(|outcome| ("k8s.io/kubelet speaks".into(), outcome)));
    }
    Ok(report(outcomes))
}

/// Prints what came out, and counts it.
fn report(outcomes: Vec<Outcome>) -> Option<Counts> {
    let mut counts = Counts::default();
    let any = !outcomes.is_empty();
    for (what, outcome) in outcomes {
        let findings = outcome.unwrap_or_else(|error| vec![error.to_string()]);
        let ok = findings.is_empty();
        println!("{what} ... {}", if ok { "ok" } else { "FAILED" });
        for finding in findings {
            println!("  {finding}");
        }
        let Counts { passed, failed } = Counts::one(ok);
        counts.passed += passed;
        counts.failed += failed;
    }
    any.then_some(counts)
}

/// A client that prints JSON reads the machine and changes it.
fn exercise(client: &Client, machine: &Machine, environment: &Environment) -> [Outcome; 2] {
    let read = || -> Result<Findings, Error> {
        let said = client.run(&["read".to_owned()], environment)?;
        Ok(compare::inventory(&said, &machine.inventory()?))
    };
    let name = client.name;
    [
        (format!("{name} reads"), read()),
        (
            format!("{name} changes"),
            changes(client, machine, environment),
        ),
    ]
}

/// `nvitop` shows all GPUs and slices.
fn shows(nvitop: &Client, machine: &Machine, environment: &Environment) -> Result<Findings, Error> {
    let said = nvitop.run(&[], environment)?;
    Ok(compare::table(&said, &machine.inventory()?))
}

#[derive(Deserialize)]
struct Created {
    gpu_instance: u32,
    compute_instance: u32,
}

/// A client creates an instance at a free place, and destroys it again.
fn changes(
    client: &Client,
    machine: &Machine,
    environment: &Environment,
) -> Result<Findings, Error> {
    let (gpu, freed) = machine.make_room()?;
    let run = |command: &str, numbers: &[u32]| {
        let numbers = numbers.iter().map(u32::to_string);
        let arguments: Vec<String> = std::iter::once(command.to_owned()).chain(numbers).collect();
        client.run(&arguments, environment)
    };
    let (start, size) = (freed.placement.start.into(), freed.placement.size.into());
    let said = run("create", &[gpu.index, freed.driver_id, start, size])?;
    let created: Created = match serde_json::from_str(&said) {
        Ok(created) => created,
        Err(error) => return Ok(vec![format!("it printed no ids: {error}")]),
    };
    let (gi, ci) = (created.gpu_instance, created.compute_instance);
    let mut findings = Findings::new();
    let whole = |compute: &ComputeInstance| compute.id == ci && compute.profile == freed.profile;
    let there = machine.at(&gpu, &freed)?;
    let is_it = |new: &GpuInstance| new.id == gi && new.compute.iter().all(whole);
    if !there.as_ref().is_some_and(is_it) {
        findings.push(format!("it created {said}, there is {there:?}"));
    }
    run("destroy", &[gpu.index, gi, ci])?;
    if let Some(left) = machine.at(&gpu, &freed)? {
        findings.push(format!("it destroyed what is still there: {left:?}"));
    }
    Ok(findings)
}
