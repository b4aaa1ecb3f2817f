// SPDX-License-Identifier: Apache-2.0
//! What there is to ask for: versions, groups and resources.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde_json::{Value, json};

use super::{answer, openapi};
use crate::failure::Failure;
use crate::kind::{Kind, Kinds};
use crate::request::{Form, Target};

/// The version of Kubernetes whose behaviour is kept.
const VERSION: (&str, &str, &str) = ("1", "37", "v1.37.2");

/// By which clients know that a server answers with all groups at once.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

const VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];

/// Answers a request that is not about objects.
///
/// # Errors
/// 404 for groups and documents that there are none.
pub fn answer(kinds: &Kinds, target: &Target, form: Form) -> Result<Response, Failure> {
    let body = match target {
        Target::Health => return Ok(Response::new(Body::from("ok"))),
        Target::Version => version(),
        Target::Core | Target::Groups if form == Form::Discovery => {
            let body = aggregated(kinds, *target == Target::Core);
            let mut response = answer::json(200, &body);
            let media = HeaderValue::from_static(AGGREGATED);
            response.headers_mut().insert(header::CONTENT_TYPE, media);
            return Ok(response);
        }
        Target::Core => json!({"kind": "APIVersions", "versions": ["v1"]}),
        Target::Groups => {
            let groups: Vec<Value> = groups(kinds)
                .iter()
                .map(|name| group(kinds, name))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Target::Group(name) if groups(kinds).contains(name) => {
            let mut group = group(kinds, name);
            group["kind"] = json!("APIGroup");
            group["apiVersion"] = json!("v1");
            group
        }
        Target::Resources(group, version) => resources(kinds, group, version)?,
        Target::OpenApi(document) => openapi::answer(kinds, document)?,
        _ => return Err(Failure::unknown_resource()),
    };
    Ok(answer::json(200, &body))
}

fn version() -> Value {
    let (major, minor, full) = VERSION;
    json!({
        "major": major,
        "minor": minor,
        "gitVersion": format!("{full}-simulated"),
        "platform": "linux/amd64",
    })
}

/// Names of the groups, without the core group.
fn groups(kinds: &Kinds) -> Vec<String> {
    let mut names: Vec<String> = kinds.all().map(|kind| kind.group.clone()).collect();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names
}

/// The versions of a group, the preferred one first.
fn versions(kinds: &Kinds, group: &str) -> Vec<String> {
    let of_group = kinds.all().filter(|kind| kind.group == group);
    let mut names: Vec<String> = of_group.map(|kind| kind.version.clone()).collect();
    names.sort_by_key(|name| rank(name));
    names.dedup();
    names
}

/// Kubernetes' order of versions: stable before beta before alpha, the highest number first.
fn rank(version: &str) -> (u8, std::cmp::Reverse<u64>, std::cmp::Reverse<u64>, String) {
    let number = |text: &str| std::cmp::Reverse(text.parse().unwrap_or(0));
    let rest = version.strip_prefix('v').unwrap_or_default();
    let (stage, major, minor) = match (rest.split_once("beta"), rest.split_once("alpha")) {
        (Some((major, minor)), _) => (1, major, minor),
        (_, Some((major, minor))) => (2, major, minor),
        _ if rest.parse::<u64>().is_ok() => (0, rest, ""),
        _ => (3, "", ""),
    };
    (stage, number(major), number(minor), version.to_owned())
}

fn group(kinds: &Kinds, name: &str) -> Value {
    let versions: Vec<Value> = versions(kinds, name)
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"name": name, "preferredVersion": versions.first(), "versions": versions})
}

fn resources(kinds: &Kinds, group: &str, version: &str) -> Result<Value, Failure> {
    let mut resources = Vec::new();
    let of_version = |kind: &&std::sync::Arc<Kind>| kind.group == group && kind.version == version;
    for kind in kinds.all().filter(of_version) {
        let mut resource = json!({
            "name": kind.plural,
            "singularName": kind.singular,
            "namespaced": kind.is_namespaced,
            "kind": kind.kind,
            "verbs": verbs(kind),
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        resources.push(resource);
        for name in &kind.subresources {
            let (group, version, shown) = shown_by(kind, name);
            let mut resource = json!({
                "name": format!("{}/{name}", kind.plural),
                "singularName": "",
                "namespaced": kind.is_namespaced,
                "kind": shown,
                "verbs": subresource_verbs(name),
            });
            if (&group, &version) != (&kind.group, &kind.version) {
                resource["group"] = json!(group);
                resource["version"] = json!(version);
            }
            resources.push(resource);
        }
    }
    if resources.is_empty() {
        return Err(Failure::unknown_resource());
    }
    let group_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    Ok(json!({
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": group_version,
        "resources": resources,
    }))
}

fn verbs(kind: &Kind) -> &'static [&'static str] {
    match kind.is_review {
        true => &["create"],
        false if kind.deletes_many() => VERBS,
        false => &[
            "create", "delete", "get", "list", "patch", "update", "watch",
        ],
    }
}

/// Group, version and kind of what a subresource takes.
fn shown_by(kind: &Kind, subresource: &str) -> (String, String, String) {
    let (group, version, name) = match subresource {
        "eviction" => ("policy", "v1", "Eviction"),
        "scale" => ("autoscaling", "v1", "Scale"),
        "binding" => ("", "v1", "Binding"),
        "exec" => ("", "v1", "PodExecOptions"),
        _ => (
            kind.group.as_str(),
            kind.version.as_str(),
            kind.kind.as_str(),
        ),
    };
    (group.to_owned(), version.to_owned(), name.to_owned())
}

fn subresource_verbs(name: &str) -> &'static [&'static str] {
    match name {
        "binding" | "eviction" => &["create"],
        "exec" => &["create", "get"],
        "finalize" => &["update"],
        "log" => &["get"],
        _ => &["get", "patch", "update"],
    }
}

/// All groups with all resources, as `apidiscovery.k8s.io/v2` has them.
fn aggregated(kinds: &Kinds, is_core: bool) -> Value {
    let names = if is_core {
        vec![String::new()]
    } else {
        groups(kinds)
    };
    let items: Vec<Value> = names
        .iter()
        .map(|group| {
            let versions: Vec<Value> = versions(kinds, group)
                .iter()
                .map(|version| aggregated_version(kinds, group, version))
                .collect();
            let metadata = if is_core {
                json!({})
            } else {
                json!({"name": group})
            };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": "apidiscovery.k8s.io/v2",
        "metadata": {},
        "items": items,
    })
}

fn aggregated_version(kinds: &Kinds, group: &str, version: &str) -> Value {
    let mut resources = Vec::new();
    for kind in kinds
        .all()
        .filter(|kind| kind.group == group && kind.version == version)
    {
        let mut resource = json!({
            "resource": kind.plural,
            "responseKind": {"group": group, "version": version, "kind": kind.kind},
            "scope": if kind.is_namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": kind.singular,
            "verbs": verbs(kind),
        });
        if !kind.short_names.is_empty() {
            resource["shortNames"] = json!(kind.short_names);
        }
        if !kind.categories.is_empty() {
            resource["categories"] = json!(kind.categories);
        }
        let subresources: Vec<Value> = kind
            .subresources
            .iter()
            .map(|name| {
                let (group, version, shown) = shown_by(kind, name);
                json!({
                    "subresource": name,
                    "responseKind": {"group": group, "version": version, "kind": shown},
                    "verbs": subresource_verbs(name),
                })
            })
            .collect();
        if !subresources.is_empty() {
            resource["subresources"] = json!(subresources);
        }
        resources.push(resource);
    }
    json!({"version": version, "freshness": "Current", "resources": resources})
}
