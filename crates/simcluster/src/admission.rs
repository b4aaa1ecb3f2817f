// SPDX-License-Identifier: Apache-2.0
//! Admission webhooks, the pure half: which of them want to see a write, what they are asked, and what
//! their answer means (`apiserver/pkg/admission/plugin/webhook` of Kubernetes 1.37).

use std::sync::Arc;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::kind::{Kind, Place};
use crate::list::selects;
use crate::patch;
use crate::state::{Ask, State};

/// The two kinds of webhook, in the order in which they are asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// They may change the object.
    Mutating,
    /// They may only refuse it.
    Validating,
}

/// A write that webhooks look at.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// `CREATE`, `UPDATE` or `DELETE`.
    pub operation: &'static str,
    /// As the kind shows it; null for a deletion.
    pub object: Value,
    /// As it was; null for a creation.
    pub old: Value,
}

/// One webhook that wants to see a write.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Its name in the configuration.
    pub name: String,
    /// Where it is.
    pub target: Target,
    /// Its certificate authority, base64 of PEM; empty for those of the machine.
    pub authority: String,
    /// Whether a write goes on if it cannot be asked.
    pub may_fail: bool,
    /// Seconds until it counts as failed.
    pub timeout: u64,
}

/// Where a webhook is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// At an address.
    Url(String),
    /// Behind a service: namespace, name, path.
    Service(String, String, String),
}

impl State {
    /// The webhooks that want to see a write, in the order in which they are asked.
    pub fn webhooks(&self, ask: &Ask, phase: Phase, attempt: &Attempt) -> Vec<Webhook> {
        // The real server asks none about those that decide, so that a broken one can be removed.
        if ask.kind.group == "admissionregistration.k8s.io" {
            return Vec::new();
        }
        let plural = match phase {
            Phase::Mutating => "mutatingwebhookconfigurations",
            Phase::Validating => "validatingwebhookconfigurations",
        };
        let place: Place = ("admissionregistration.k8s.io".to_owned(), plural.to_owned());
        let configurations = self.store.list(&place, "").map(|(_, it)| Arc::clone(it));
        let mut found = Vec::new();
        for configuration in configurations {
            let webhooks = configuration["webhooks"].as_array().into_iter().flatten();
            let wanting = webhooks.filter(|webhook| self.wants(webhook, ask, attempt));
            found.extend(wanting.map(webhook));
        }
        found
    }

    fn wants(&self, webhook: &Value, ask: &Ask, attempt: &Attempt) -> bool {
        let rules = webhook["rules"].as_array().into_iter().flatten();
        let is_covered = { rules }.any(|rule| covers(rule, ask, attempt.operation));
        let is_meant = |selector: &Value, object: &Value| {
            selector.is_null() || !object.is_null() && selects(selector, object)
        };
        let selector = &webhook["objectSelector"];
        let is_object_meant =
            is_meant(selector, &attempt.object) || is_meant(selector, &attempt.old);
        is_covered && is_object_meant && self.is_namespace_meant(webhook, ask, attempt)
    }

    /// A namespace is looked at with its own labels; what has none is always meant.
    fn is_namespace_meant(&self, webhook: &Value, ask: &Ask, attempt: &Attempt) -> bool {
        let selector = &webhook["namespaceSelector"];
        let is_namespace = ask.kind.group.is_empty() && ask.kind.kind == "Namespace";
        if selector.is_null() || !ask.kind.is_namespaced && !is_namespace {
            return true;
        }
        if is_namespace {
            let object = if attempt.object.is_null() {
                &attempt.old
            } else {
                &attempt.object
            };
            return selects(selector, object);
        }
        let place = (String::new(), "namespaces".to_owned());
        let namespace = self.store.get(&place, &ask.namespace);
        namespace.is_some_and(|namespace| selects(selector, namespace))
    }
}

/// What this server does not heed of an admission configuration, as a warning.
///
/// # Errors
/// 400 for what would change which writes are let through, if it were passed over.
pub fn check_configuration(kind: &Kind, object: &Value) -> Result<Option<String>, Failure> {
    let webhooks = object["webhooks"].as_array().into_iter().flatten();
    let has_conditions = |webhook: &Value| {
        let conditions = webhook["matchConditions"].as_array();
        conditions.is_some_and(|conditions| !conditions.is_empty())
    };
    if kind.group == "admissionregistration.k8s.io" && { webhooks }.any(has_conditions) {
        return Err(Failure::not_simulated("webhooks with matchConditions"));
    }
    Ok((kind.kind == "ValidatingAdmissionPolicy").then(|| {
        "this simulated API server keeps ValidatingAdmissionPolicies and does not evaluate them"
            .to_owned()
    }))
}

/// Whether a rule of a webhook means a request.
fn covers(rule: &Value, ask: &Ask, operation: &str) -> bool {
    let has = |list: &str, wanted: &str| {
        let words = rule[list].as_array().into_iter().flatten();
        { words }.any(|word| word == "*" || word == wanted)
    };
    let kind = &ask.kind;
    let (resource, any) = match ask.subresource.as_str() {
        "" => (kind.plural.clone(), "*".to_owned()),
        sub => (format!("{}/{sub}", kind.plural), format!("*/{sub}")),
    };
    let resources = rule["resources"].as_array().into_iter().flatten();
    let all_of_it = format!("{}/*", kind.plural);
    let is_resource = { resources }
        .any(|word| word == "*/*" || *word == resource || *word == any || *word == all_of_it);
    let is_scope = match rule["scope"].as_str() {
        Some("Cluster") => !kind.is_namespaced,
        Some("Namespaced") => kind.is_namespaced,
        _ => true,
    };
    is_resource
        && is_scope
        && has("operations", operation)
        && has("apiGroups", &kind.group)
        && has("apiVersions", &kind.version)
}

fn webhook(value: &Value) -> Webhook {
    let config = &value["clientConfig"];
    let text = |at: &str| {
        config
            .pointer(at)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let target = match config["service"].is_object() {
        true => Target::Service(
            text("/service/namespace"),
            text("/service/name"),
            text("/service/path"),
        ),
        false => Target::Url(text("/url")),
    };
    Webhook {
        name: value["name"].as_str().unwrap_or_default().to_owned(),
        target,
        authority: text("/caBundle"),
        may_fail: value["failurePolicy"] == "Ignore",
        timeout: value["timeoutSeconds"].as_u64().unwrap_or(10),
    }
}

/// What a webhook is asked.
pub fn review(ask: &Ask, attempt: &Attempt, uid: &str, is_dry_run: bool) -> Value {
    let kind = &ask.kind;
    let what = json!({"group": kind.group, "version": kind.version, "kind": kind.kind});
    let resource = json!({"group": kind.group, "version": kind.version, "resource": kind.plural});
    let object = if attempt.object.is_null() {
        &attempt.old
    } else {
        &attempt.object
    };
    let mut request = json!({
        "uid": uid,
        "kind": what,
        "resource": resource,
        "requestKind": what,
        "requestResource": resource,
        "name": object["metadata"]["name"],
        "operation": attempt.operation,
        "userInfo": {"username": "simulated", "groups": ["system:masters"]},
        "object": attempt.object,
        "oldObject": attempt.old,
        "dryRun": is_dry_run,
        "options": null,
    });
    if kind.is_namespaced {
        request["namespace"] = json!(ask.namespace);
    }
    if !ask.subresource.is_empty() {
        request["subResource"] = json!(ask.subresource);
        request["requestSubResource"] = json!(ask.subresource);
    }
    json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request})
}

/// What a webhook's answer makes of the object: the object after its patch, and its warnings.
///
/// # Errors
/// The refusal of the webhook, or 500 for an answer that is none.
pub fn judge(
    webhook: &Webhook,
    phase: Phase,
    object: Value,
    answer: &Value,
) -> Result<(Value, Vec<String>), Failure> {
    let response = &answer["response"];
    if !response.is_object() {
        return Err(Failure::webhook_failed(
            &webhook.name,
            "the answer has no response",
        ));
    }
    if response["allowed"] != true {
        return Err(denial(&webhook.name, &response["status"]));
    }
    let warnings = response["warnings"].as_array().into_iter().flatten();
    let warnings = warnings
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let patch = response["patch"].as_str().unwrap_or_default();
    if phase == Phase::Validating || patch.is_empty() {
        return Ok((object, warnings));
    }
    let operations = decode(patch).and_then(|bytes| serde_json::from_slice(&bytes).ok());
    let operations: Value = operations
        .ok_or_else(|| Failure::webhook_failed(&webhook.name, "its patch cannot be read"))?;
    let object = patch::json(&object, &operations)
        .map_err(|error| Failure::webhook_failed(&webhook.name, &error.to_string()))?;
    Ok((object, warnings))
}

fn denial(name: &str, status: &Value) -> Failure {
    let text = |at: &str| status[at].as_str().unwrap_or_default();
    let message = match (text("message"), text("reason")) {
        ("", "") => " without explanation".to_owned(),
        ("", reason) => format!(": {reason}"),
        (message, _) => format!(": {message}"),
    };
    let code = status["code"]
        .as_u64()
        .and_then(|code| u16::try_from(code).ok());
    let mut failure = Failure::bad_request(format!(
        "admission webhook {name:?} denied the request{message}"
    ));
    failure.code = code.filter(|code| *code >= 400).unwrap_or(400);
    failure.reason = match text("reason") {
        "BadRequest" => "BadRequest",
        "Conflict" => "Conflict",
        "Forbidden" => "Forbidden",
        "Invalid" => "Invalid",
        "NotFound" => "NotFound",
        "TooManyRequests" => "TooManyRequests",
        "Unauthorized" => "Unauthorized",
        _ => "",
    };
    failure.details = status["details"].clone();
    failure
}

/// Base64 with padding; `None` if it is none.
fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter {
            b'A'..=b'Z' => letter - b'A',
            b'a'..=b'z' => letter - b'a' + 26,
            b'0'..=b'9' => letter - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
    }
    Some(bytes)
}
