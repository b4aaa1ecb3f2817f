// SPDX-License-Identifier: Apache-2.0
//! Resource quotas: what an object uses, what a namespace uses, and whether a write may be
//! (`pkg/quota/v1` and `pkg/quota/v1/evaluator/core/pods.go` of Kubernetes 1.37). Scopes are not
//! looked at: a quota with one is refused when it is made.

mod quantity;

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

pub use quantity::Quantity;

use crate::failure::Failure;
use crate::kind::{Kind, Place};
use crate::state::{Ask, State};

/// Amounts by the names that quotas have for them.
type Amounts = BTreeMap<String, Quantity>;

/// Resources that a pod must name if a quota limits them.
const MUST_NAME: [&str; 6] = [
    "cpu",
    "limits.cpu",
    "limits.memory",
    "memory",
    "requests.cpu",
    "requests.memory",
];

/// Kinds that are counted under their plain name too.
const PLAIN_COUNTS: [&str; 5] = [
    "configmaps",
    "persistentvolumeclaims",
    "resourcequotas",
    "secrets",
    "services",
];

impl State {
    /// Whether the quotas of the namespace let an object become what it will be; `before` is none for
    /// a new one.
    ///
    /// # Errors
    /// 403 in the words of the real server.
    pub fn check_quotas(
        &self,
        ask: &Ask,
        before: Option<&Value>,
        after: &Value,
    ) -> Result<(), Failure> {
        let (kind, name) = (
            &ask.kind,
            after["metadata"]["name"].as_str().unwrap_or_default(),
        );
        if kind.kind == "ResourceQuota" && has_scope(after) {
            return Err(Failure::not_simulated("resource quotas with scopes"));
        }
        let used = before.map(|it| usage(kind, it)).unwrap_or_default();
        let wanted = usage(kind, after);
        for (_, quota) in self.store.list(&quotas(), &ask.namespace) {
            let hard = amounts(&quota["spec"]["hard"]);
            let title = quota["metadata"]["name"].as_str().unwrap_or_default();
            if before.is_none() && kind.kind == "Pod" {
                let missing = unnamed(&hard, after);
                if !missing.is_empty() {
                    let why = format!("failed quota: {title}: must specify {missing}");
                    return Err(Failure::forbidden(kind, name, &why));
                }
            }
            let counted = self.used(&ask.namespace, &hard);
            if let Some(why) = exceeded(title, &hard, &counted, &used, &wanted) {
                return Err(Failure::forbidden(kind, name, &why));
            }
        }
        Ok(())
    }

    /// What a namespace uses of what a quota limits.
    fn used(&self, namespace: &str, hard: &Amounts) -> Amounts {
        let mut sum: Amounts = hard
            .keys()
            .map(|name| (name.clone(), Quantity::default()))
            .collect();
        for kind in self
            .kinds
            .all()
            .filter(|kind| kind.is_namespaced && !kind.is_review)
        {
            if kind.group == "events.k8s.io" || !concerns(kind, hard) {
                continue;
            }
            for (_, object) in self.store.list(&kind.place(), namespace) {
                for (name, amount) in usage(kind, object) {
                    if let Some(total) = sum.get_mut(&name) {
                        *total = total.plus(amount);
                    }
                }
            }
        }
        sum
    }

    /// Brings the status of the quotas of a namespace up to date.
    pub fn count_quotas(&mut self, namespace: &str) {
        let quotas_there: Vec<(String, Value)> = self
            .store
            .list(&quotas(), namespace)
            .map(|(key, quota)| (key.clone(), Value::clone(quota)))
            .collect();
        for (key, mut quota) in quotas_there {
            let used = self.used(namespace, &amounts(&quota["spec"]["hard"]));
            let used: Map<String, Value> = used
                .into_iter()
                .map(|(name, amount)| (name, json!(amount.to_string())))
                .collect();
            let status = json!({"hard": quota["spec"]["hard"], "used": used});
            if quota["status"] != status {
                quota["status"] = status;
                self.put(&quotas(), &key, quota);
            }
        }
    }
}

fn quotas() -> Place {
    (String::new(), "resourcequotas".to_owned())
}

fn has_scope(quota: &Value) -> bool {
    let spec = &quota["spec"];
    let has_scopes = spec["scopes"]
        .as_array()
        .is_some_and(|scopes| !scopes.is_empty());
    has_scopes || !spec["scopeSelector"].is_null()
}

fn amounts(value: &Value) -> Amounts {
    value
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(name, amount)| Some((name.clone(), quantity(amount)?)))
        .collect()
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => Quantity::parse(text),
        other => other.as_i64().map(Quantity::whole),
    }
}

/// Whether a quota limits anything that objects of a kind use.
fn concerns(kind: &Kind, hard: &Amounts) -> bool {
    kind.kind == "Pod"
        || PLAIN_COUNTS.contains(&kind.plural.as_str())
        || hard.contains_key(&format!("count/{}", kind.resource()))
}

/// What one object uses.
fn usage(kind: &Kind, object: &Value) -> Amounts {
    let mut used = Amounts::from([(format!("count/{}", kind.resource()), Quantity::whole(1))]);
    if kind.group.is_empty() && PLAIN_COUNTS.contains(&kind.plural.as_str()) {
        used.insert(kind.plural.clone(), Quantity::whole(1));
    }
    let is_over = matches!(
        object["status"]["phase"].as_str(),
        Some("Succeeded" | "Failed")
    );
    if kind.kind == "Pod" && !is_over {
        used.insert("pods".to_owned(), Quantity::whole(1));
        for (name, amount) in of_pod(object, "requests") {
            if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage")
                || name.starts_with("hugepages-")
            {
                used.insert(name.clone(), amount);
            }
            used.insert(format!("requests.{name}"), amount);
        }
        for (name, amount) in of_pod(object, "limits") {
            // Of extended resources only requests count.
            if matches!(name.as_str(), "cpu" | "memory" | "ephemeral-storage") {
                used.insert(format!("limits.{name}"), amount);
            }
        }
    }
    used
}

/// Requests or limits of a pod: the sum of its containers, or what one init container needs if that
/// is more.
fn of_pod(pod: &Value, side: &str) -> Amounts {
    let mut sum = Amounts::new();
    for container in containers(pod, "containers") {
        for (name, amount) in amounts(&container["resources"][side]) {
            let total = sum.entry(name).or_default();
            *total = total.plus(amount);
        }
    }
    for container in containers(pod, "initContainers") {
        for (name, amount) in amounts(&container["resources"][side]) {
            let total = sum.entry(name).or_default();
            *total = amount.max(*total);
        }
    }
    sum
}

fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    pod["spec"][list].as_array().into_iter().flatten()
}

/// What the containers of a pod must name and do not: `limits.cpu for: c,d; requests.cpu for: c`.
fn unnamed(hard: &Amounts, pod: &Value) -> String {
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in MUST_NAME.iter().filter(|name| hard.contains_key(**name)) {
        let (side, resource) = name.split_once('.').unwrap_or(("requests", name));
        for container in containers(pod, "containers").chain(containers(pod, "initContainers")) {
            if container["resources"][side][resource].is_null() {
                let container = container["name"].as_str().unwrap_or_default();
                missing.entry(name).or_default().push(container);
            }
        }
    }
    let parts: Vec<String> = missing
        .iter()
        .map(|(name, containers)| format!("{name} for: {}", containers.join(",")))
        .collect();
    parts.join("; ")
}

/// Why a quota refuses.
fn exceeded(
    quota: &str,
    hard: &Amounts,
    counted: &Amounts,
    before: &Amounts,
    wanted: &Amounts,
) -> Option<String> {
    let none = Quantity::default();
    let mut parts: [Vec<String>; 3] = Default::default();
    for (name, limit) in hard {
        let more = wanted
            .get(name)
            .copied()
            .unwrap_or(none)
            .minus(before.get(name).copied().unwrap_or(none));
        let used = counted.get(name).copied().unwrap_or(none);
        if more.is_positive() && used.plus(more) > *limit {
            for (part, amount) in parts.iter_mut().zip([more, used, *limit]) {
                part.push(format!("{name}={amount}"));
            }
        }
    }
    let [requested, used, limited] = parts.map(|part| part.join(","));
    (!requested.is_empty()).then(|| {
        format!("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")
    })
}
