// SPDX-License-Identifier: Apache-2.0
//! Our definitions of the kubelet's protocols against those in Kubernetes' own Go module.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use prost_types::field_descriptor_proto::Label;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet,
    MethodDescriptorProto,
};
use protox::prost::Message;

use super::Findings;
use super::clients::unavailable;
use crate::codegen;
use crate::error::Error;
use crate::process::stream;

/// Each difference. Names, numbers, types and calls are compared; file names and comments are our
/// own. None if their program cannot be built.
///
/// # Errors
/// If ours are wrong, or their program fails; with `CI=true`, if it cannot be built.
pub fn check(root: &Path, work: &Path) -> Result<Option<Findings>, Error> {
    let program = work.join("descriptors");
    let program = program.to_string_lossy();
    // The module that the test cluster is built from.
    let module = ["go", "-C", "tools/kubernetes", "build", "-o"];
    let build = [&module[..], &[&program, "./descriptors"]].concat();
    if !stream(root, &build, |_| {})? {
        let what = "the kubelet's descriptors cannot be built";
        return unavailable(what, &build.join(" "));
    }
    let printed = Command::new(&*program).output();
    let printed =
        printed.map_err(|error| Error::interop("print Kubernetes' descriptors", error))?;
    let theirs = FileDescriptorSet::decode(printed.stdout.as_slice());
    let theirs = theirs.map_err(|error| Error::interop("read Kubernetes' descriptors", error))?;
    let ours = codegen::descriptors().map_err(Error::Codegen)?;
    Ok(Some(differences(&facts(&ours), &facts(&theirs))))
}

/// What is on the wire: a line for each field and each call, by its full name.
type Facts = BTreeMap<String, String>;

fn differences(ours: &Facts, theirs: &Facts) -> Findings {
    let mut findings = Findings::new();
    for name in ours.keys().chain(theirs.keys()) {
        let (our, their) = (ours.get(name), theirs.get(name));
        if our != their {
            let text = |fact: Option<&String>| fact.map_or("not there", String::as_str).to_owned();
            let finding = format!("{name}: ours {}, Kubernetes' {}", text(our), text(their));
            findings.push(finding);
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

fn facts(files: &FileDescriptorSet) -> Facts {
    let mut facts = Facts::new();
    for file in &files.file {
        let package = file.package();
        facts.insert(format!("package {package}"), file.syntax().to_owned());
        for message in &file.message_type {
            add_message(package, message, &mut facts);
        }
        add_calls(package, file, &mut facts);
    }
    facts
}

fn add_message(parent: &str, message: &DescriptorProto, facts: &mut Facts) {
    let name = format!("{parent}.{}", message.name());
    facts.insert(format!("message {name}"), String::new());
    for field in &message.field {
        facts.insert(format!("{name}.{}", field.name()), field_fact(field));
    }
    // The entries of maps.
    for nested in &message.nested_type {
        add_message(&name, nested, facts);
    }
}

fn field_fact(field: &FieldDescriptorProto) -> String {
    let kind = match field.type_name() {
        "" => format!("{:?}", field.r#type()),
        name => name.to_owned(),
    };
    let optional = if field.proto3_optional() {
        " optional"
    } else {
        ""
    };
    let repeated = match field.label() {
        Label::Repeated => " repeated",
        _ => "",
    };
    format!("{} {kind}{optional}{repeated}", field.number())
}

fn add_calls(package: &str, file: &FileDescriptorProto, facts: &mut Facts) {
    let stream = |yes: bool| if yes { "stream " } else { "" };
    let fact = |method: &MethodDescriptorProto| {
        format!(
            "{}{} to {}{}",
            stream(method.client_streaming()),
            method.input_type(),
            stream(method.server_streaming()),
            method.output_type(),
        )
    };
    for service in &file.service {
        for method in &service.method {
            let name = format!("{package}.{}/{}", service.name(), method.name());
            facts.insert(name, fact(method));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_definitions_have_what_is_known_of_the_wire() {
        let facts = facts(&codegen::descriptors().unwrap());
        for (name, fact) in [
            (
                "v1beta1.Registration/Register",
                ".v1beta1.RegisterRequest to .v1beta1.Empty",
            ),
            (
                "v1beta1.DevicePlugin/ListAndWatch",
                ".v1beta1.Empty to stream .v1beta1.ListAndWatchResponse",
            ),
            ("v1beta1.Device.ID", "1 String"),
            ("v1.ClaimResource.share_id", "5 String optional"),
        ] {
            assert_eq!(facts.get(name).map(String::as_str), Some(fact), "{name}");
        }
    }

    #[test]
    fn a_difference_is_found() {
        let of = |facts: &[(&str, &str)]| -> Facts {
            let owned = |(name, fact): &(&str, &str)| ((*name).to_owned(), (*fact).to_owned());
            facts.iter().map(owned).collect()
        };
        let ours = of(&[
            ("a.B.c", "1 String"),
            ("a.B.d", "2 Bool"),
            ("a.B.e", "3 Bool"),
        ]);
        let theirs = of(&[("a.B.c", "1 String"), ("a.B.d", "4 Bool")]);
        assert_eq!(
            differences(&ours, &theirs),
            [
                "a.B.d: ours 2 Bool, Kubernetes' 4 Bool",
                "a.B.e: ours 3 Bool, Kubernetes' not there",
            ]
        );
    }
}
