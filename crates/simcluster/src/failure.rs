// SPDX-License-Identifier: Apache-2.0
//! Refusals of the API server: a `Status` with the reason, code and words of the real one
//! (`apimachinery/pkg/api/errors` of Kubernetes 1.37), since clients branch on them.

use serde_json::{Value, json};

use crate::kind::Kind;

/// A request that is not done, as the `Status` that the client gets.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// HTTP status code.
    pub code: u16,
    /// Kubernetes' word for the cause, such as `NotFound`; empty for none.
    pub reason: &'static str,
    /// For people.
    pub message: String,
    /// The object that is meant, and causes; null for none.
    pub details: Value,
}

/// One thing that is wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// Kubernetes' word for it: `FieldValueInvalid`.
    pub reason: &'static str,
    /// Path of the field: `spec.replicas`.
    pub field: String,
    /// For people, without the path.
    pub message: String,
}

impl Cause {
    fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }

    /// A value that is none of those that there are.
    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        Self {
            reason: "FieldValueNotSupported",
            field: field.into(),
            message: format!(
                "Unsupported value: {value}: supported values: {}",
                supported.join(", ")
            ),
        }
    }

    /// A value that cannot be: `Invalid value: "x": why`.
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            field: field.into(),
            message: format!("Invalid value: {value}: {why}"),
        }
    }

    /// A value that may not be there or change.
    pub fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self {
            reason: "FieldValueForbidden",
            field: field.into(),
            message: format!("Forbidden: {why}"),
        }
    }

    /// A value that is missing; `why` may be empty.
    pub fn required(field: impl Into<String>, why: &str) -> Self {
        let message = match why {
            "" => "Required value".to_owned(),
            why => format!("Required value: {why}"),
        };
        Self {
            reason: "FieldValueRequired",
            field: field.into(),
            message,
        }
    }
}

/// What is invalid, as the message and the details have it.
struct Invalid<'a> {
    qualified: String,
    group: &'a str,
    kind: &'a str,
    name: &'a str,
}

impl Failure {
    fn new(code: u16, reason: &'static str, message: impl Into<String>, details: Value) -> Self {
        Self {
            code,
            reason,
            message: message.into(),
            details,
        }
    }

    fn of_object(
        code: u16,
        reason: &'static str,
        kind: &Kind,
        name: &str,
        message: String,
    ) -> Self {
        let mut details = json!({"kind": kind.plural});
        if !name.is_empty() {
            details["name"] = json!(name);
        }
        if !kind.group.is_empty() {
            details["group"] = json!(kind.group);
        }
        Self::new(code, reason, message, details)
    }

    /// 400: the request itself is no request.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message, Value::Null)
    }

    /// 403: an admission rule says no.
    pub fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        let named = match name {
            "" => String::new(),
            name => format!(" {name:?}"),
        };
        let message = format!("{}{named} is forbidden: {why}", kind.resource());
        Self::of_object(403, "Forbidden", kind, name, message)
    }

    /// 404: no such object.
    pub fn not_found(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} not found", kind.resource());
        Self::of_object(404, "NotFound", kind, name, message)
    }

    /// 404 as a plain text, where nothing knows the path.
    pub fn no_page() -> Self {
        Self::new(404, "", "404 page not found", Value::Null)
    }

    /// 404: no such resource, or nothing that this server offers for it.
    pub fn unknown_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message, json!({}))
    }

    /// 405: the verb does not go with what the URL means.
    pub fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message, json!({}))
    }

    /// 406: no media type that the client takes can be served.
    pub fn not_acceptable() -> Self {
        let message = "406: Not Acceptable\n\nAvailable representations: application/json, \
                       application/yaml, application/vnd.kubernetes.protobuf, \
                       application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch";
        Self::new(406, "NotAcceptable", message, Value::Null)
    }

    /// 409: there is one of that name.
    pub fn already_exists(kind: &Kind, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", kind.resource());
        Self::of_object(409, "AlreadyExists", kind, name, message)
    }

    /// 409: somebody else wrote in between, or a precondition does not hold.
    pub fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.resource()
        );
        Self::of_object(409, "Conflict", kind, name, message)
    }

    /// 409: a deletion means another object than there is.
    pub fn other_meant(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!(
            "Operation cannot be fulfilled on {} {name:?}: {why}",
            kind.qualified()
        );
        let mut failure = Self::of_object(409, "Conflict", kind, name, message);
        failure.details["kind"] = json!(kind.kind);
        failure
    }

    /// 409: the version that the client read is not the newest.
    pub fn stale(kind: &Kind, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    /// 410: the history before that version is forgotten.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message, Value::Null)
    }

    /// 413: the body is larger than the server reads.
    pub fn too_large() -> Self {
        let message = "Request entity too large: limit is 3145728";
        Self::new(413, "RequestEntityTooLarge", message, Value::Null)
    }

    /// 415: a body in a format that is not read here.
    pub fn unsupported_media_type() -> Self {
        let message = "415: Unsupported Media Type";
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 415: a kind that is read in JSON only.
    pub fn unread_protobuf(kind: &str) -> Self {
        let message = format!(
            "this simulated API server does not read a {kind} in protobuf: send JSON, as kubectl apply does"
        );
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 400: something that the real server does and this one does not.
    pub fn not_simulated(what: &str) -> Self {
        let message = format!("this simulated API server has no {what}");
        Self::new(400, "BadRequest", message, Value::Null)
    }

    /// 429: later perhaps.
    pub fn too_many_requests(message: &str, causes: &Value) -> Self {
        Self::new(429, "TooManyRequests", message, json!({ "causes": causes }))
    }

    /// 415: built-in kinds alone take strategic merge patches.
    pub fn no_strategic_merge() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
        Self::new(415, "UnsupportedMediaType", message, Value::Null)
    }

    /// 422: the object is not as its kind demands. In the order of `causes`.
    pub fn invalid(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let what = Invalid {
            qualified: kind.qualified(),
            group: &kind.group,
            kind: &kind.kind,
            name,
        };
        Self::invalid_by(&what, causes)
    }

    /// 422 from where the real server knows the resource and not the kind.
    pub fn invalid_resource(kind: &Kind, name: &str, causes: &[Cause]) -> Self {
        let what = Invalid {
            qualified: kind.resource(),
            group: &kind.group,
            kind: &kind.plural,
            name,
        };
        Self::invalid_by(&what, causes)
    }

    fn invalid_by(what: &Invalid, causes: &[Cause]) -> Self {
        let mut lines: Vec<String> = Vec::new();
        for cause in causes {
            let line = match cause.field.as_str() {
                "" => cause.message.clone(),
                field => format!("{field}: {}", cause.message),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let why = match lines.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes: Vec<Value> = causes.iter().map(Cause::to_json).collect();
        let mut details = json!({"kind": what.kind, "causes": causes});
        if !what.name.is_empty() {
            details["name"] = json!(what.name);
        }
        if !what.group.is_empty() {
            details["group"] = json!(what.group);
        }
        let message = format!("{} {:?} is invalid: {why}", what.qualified, what.name);
        Self::new(422, "Invalid", message, details)
    }

    /// 422: parameters that there are not; `options` is their type, such as `ListOptions`.
    pub fn invalid_options(options: &str, causes: &[Cause]) -> Self {
        let what = Invalid {
            qualified: format!("{options}.meta.k8s.io"),
            group: "meta.k8s.io",
            kind: options,
            name: "",
        };
        Self::invalid_by(&what, causes)
    }

    /// 422: a JSON patch that does not go with the object.
    pub fn patch_refused(message: impl Into<String>) -> Self {
        Self::new(422, "Invalid", message, Value::Null)
    }

    /// 500 without a reason, which the real server gives for some faults of the client.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(500, "", message, Value::Null)
    }

    /// 500: a webhook that is needed cannot be asked.
    pub fn webhook_failed(name: &str, why: &str) -> Self {
        let what = format!("failed calling webhook {name:?}: failed to call webhook: {why}");
        let message = format!("Internal error occurred: {what}");
        let details = json!({"causes": [{"message": what}]});
        Self::new(500, "InternalError", message, details)
    }

    /// 504: a version that this server has not reached.
    pub fn too_large_version(asked: u64, current: u64) -> Self {
        let message = format!("Timeout: Too large resource version: {asked}, current: {current}");
        let details = json!({
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        });
        Self::new(504, "Timeout", message, details)
    }

    /// The body that the client gets.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = json!(self.reason);
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        status
    }
}
