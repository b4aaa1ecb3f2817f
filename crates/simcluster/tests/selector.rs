// SPDX-License-Identifier: Apache-2.0
//! Selectors against what a real kube-apiserver answered: `selectors.json`, recorded by
//! `record.py` in the folder `vectors`.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use simcluster::selector::{Fields, Labels, Selectable, SelectorError};

/// What our selectors say: the names of the objects that are meant, or the error.
fn select(request: &Value, objects: &[(String, Value)]) -> Result<Vec<String>, String> {
    let path = request["do"].as_str().unwrap().split(' ').nth(1).unwrap();
    let asked = |key: &str| request["query"][key].as_str().unwrap_or_default();
    let message = |error: SelectorError| error.to_string();
    let labels = Labels::parse(asked("labelSelector")).map_err(message)?;
    let fields = Fields::parse(asked("fieldSelector"), &selectable(path)).map_err(message)?;
    let here = objects.iter().filter(|(folder, _)| folder == path);
    let meant = here.filter(|(_, object)| labels.matches(object) && fields.matches(object));
    let mut names: Vec<String> = meant
        .map(|(_, object)| object["metadata"]["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn selectable(path: &str) -> Selectable {
    let group = path
        .strip_prefix("/apis/")
        .and_then(|rest| rest.split('/').next());
    let kind = match path.rsplit('/').next().unwrap() {
        "pods" => "Pod",
        "nodes" => "Node",
        "namespaces" => "Namespace",
        "secrets" => "Secret",
        "services" => "Service",
        "events" => "Event",
        "jobs" => "Job",
        _ => "Other",
    };
    Selectable::built_in(group.unwrap_or_default(), kind)
}

/// An event as `events.k8s.io/v1` shows it.
fn as_new_event(event: &Value) -> Value {
    let mut event = event.clone();
    for (new, old) in [
        ("regarding", "involvedObject"),
        ("reportingController", "reportingComponent"),
    ] {
        event[new] = event[old].take();
    }
    event
}

#[test]
fn selectors_are_those_of_the_real_server() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("vectors/selectors.json")).unwrap();
    let mut differences = Vec::new();
    for case in &cases {
        let mut objects = Vec::new();
        for request in case["requests"].as_array().unwrap() {
            let (verb, path) = request["do"].as_str().unwrap().split_once(' ').unwrap();
            let answer = &request["answer"];
            if verb == "POST" {
                let object = &answer["body"];
                objects.push((path.to_owned(), object.clone()));
                if let Some(folder) = path
                    .strip_prefix("/api/v1")
                    .filter(|_| path.ends_with("/events"))
                {
                    objects.push((
                        format!("/apis/events.k8s.io/v1{folder}"),
                        as_new_event(object),
                    ));
                }
                continue;
            }
            let real = match &answer["names"] {
                Value::Array(names) => Ok(names
                    .iter()
                    .map(|name| name.as_str().unwrap().to_owned())
                    .collect()),
                _ => Err(answer["body"]["message"].as_str().unwrap().to_owned()),
            };
            let real: Result<Vec<String>, String> = real.map(|mut names: Vec<String>| {
                // Namespaces that the server brings.
                names.retain(|name| !name.starts_with("kube-") && name != "default");
                names.sort();
                names
            });
            let ours = select(request, &objects);
            if ours != real {
                differences.push(format!(
                    "{}\n  real {real:?}\n  ours {ours:?}",
                    request["query"]
                ));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn custom_resources_are_selected_by_the_fields_that_they_name() {
    let selectable = Selectable::custom(true, &[".spec.color", ".spec.hot"]);
    let fields = |text: &str| Fields::parse(text, &selectable);
    let red = serde_json::json!({"spec": {"color": "red", "hot": true}});
    assert!(
        fields("spec.color=red,spec.hot=true")
            .unwrap()
            .matches(&red)
    );
    assert!(!fields("spec.color!=red").unwrap().matches(&red));
    let error = fields("spec.size=1").unwrap_err().to_string();
    assert_eq!(error, "field label not supported: spec.size");
}
