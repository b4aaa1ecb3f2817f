// SPDX-License-Identifier: Apache-2.0
//! The columns of built-in kinds behind the name (`pkg/printers/internalversion` of Kubernetes 1.37).
//! Kinds that are not here show their age only.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::age::{since, span};

/// One column.
pub struct Column {
    /// Its head.
    pub name: &'static str,
    /// `string`, `integer` or `boolean`.
    pub kind: &'static str,
    /// 0, or 1 for `-o wide` only.
    pub priority: i64,
    /// What stands in it.
    pub cell: fn(&Value, Timestamp) -> Value,
}

const fn text(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        name,
        kind: "string",
        priority: 0,
        cell,
    }
}

const fn wide(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        name,
        kind: "string",
        priority: 1,
        cell,
    }
}

const fn number(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column {
        name,
        kind: "integer",
        priority: 0,
        cell,
    }
}

const AGE: Column = text("Age", |it, now| {
    since(at(it, "/metadata/creationTimestamp"), now).into()
});

const OTHER: &[Column] = &[AGE];

const CONFIG_MAP: &[Column] = &[
    number("Data", |it, _| {
        json!(members(it, "/data") + members(it, "/binaryData"))
    }),
    AGE,
];

const SECRET: &[Column] = &[
    text("Type", |it, _| at(it, "/type").into()),
    number("Data", |it, _| json!(members(it, "/data"))),
    AGE,
];

const NAMESPACE: &[Column] = &[text("Status", |it, _| at(it, "/status/phase").into()), AGE];

const NODE: &[Column] = &[
    text("Status", |it, _| node_status(it).into()),
    text("Roles", |it, _| node_roles(it).into()),
    AGE,
    text("Version", |it, _| {
        at(it, "/status/nodeInfo/kubeletVersion").into()
    }),
];

const POD: &[Column] = &[
    text("Ready", |it, _| {
        let statuses = list(it, "/status/containerStatuses");
        let ready = statuses
            .iter()
            .filter(|status| status["ready"] == true)
            .count();
        format!("{ready}/{}", list(it, "/spec/containers").len()).into()
    }),
    text("Status", |it, _| pod_status(it).into()),
    text("Restarts", |it, _| {
        let statuses = list(it, "/status/containerStatuses").iter();
        let counts = statuses.filter_map(|status| status["restartCount"].as_u64());
        counts.sum::<u64>().to_string().into()
    }),
    AGE,
    wide("IP", |it, _| or_none(at(it, "/status/podIP"))),
    wide("Node", |it, _| or_none(at(it, "/spec/nodeName"))),
    wide("Nominated Node", |it, _| {
        or_none(at(it, "/status/nominatedNodeName"))
    }),
    wide("Readiness Gates", |_, _| or_none("")),
];

const DEPLOYMENT: &[Column] = &[
    text("Ready", |it, _| {
        let ready = count(it, "/status/readyReplicas");
        format!("{ready}/{}", count(it, "/spec/replicas")).into()
    }),
    text("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedReplicas"))
    }),
    text("Available", |it, _| {
        json!(count(it, "/status/availableReplicas"))
    }),
    AGE,
];

const REPLICA_SET: &[Column] = &[
    number("Desired", |it, _| json!(count(it, "/spec/replicas"))),
    number("Current", |it, _| json!(count(it, "/status/replicas"))),
    number("Ready", |it, _| json!(count(it, "/status/readyReplicas"))),
    AGE,
];

const DAEMON_SET: &[Column] = &[
    number("Desired", |it, _| {
        json!(count(it, "/status/desiredNumberScheduled"))
    }),
    number("Current", |it, _| {
        json!(count(it, "/status/currentNumberScheduled"))
    }),
    number("Ready", |it, _| json!(count(it, "/status/numberReady"))),
    number("Up-to-date", |it, _| {
        json!(count(it, "/status/updatedNumberScheduled"))
    }),
    number("Available", |it, _| {
        json!(count(it, "/status/numberAvailable"))
    }),
    text("Node Selector", |it, _| {
        let labels = it
            .pointer("/spec/template/spec/nodeSelector")
            .and_then(Value::as_object);
        let pairs = labels.into_iter().flatten();
        let pairs: Vec<String> = pairs
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        or_none(&pairs.join(","))
    }),
    AGE,
];

const JOB: &[Column] = &[
    text("Status", |it, _| job_status(it).into()),
    text("Completions", |it, _| {
        let wanted = it
            .pointer("/spec/completions")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        format!("{}/{wanted}", count(it, "/status/succeeded")).into()
    }),
    text("Duration", |it, now| {
        let start = at(it, "/status/startTime").parse::<Timestamp>();
        let end = at(it, "/status/completionTime")
            .parse::<Timestamp>()
            .unwrap_or(now);
        let lasted = start.map(|start| span(end.as_second() - start.as_second()));
        lasted.unwrap_or_default().into()
    }),
    AGE,
];

const EVENT: &[Column] = &[
    text("Last Seen", |it, now| {
        let times = ["/lastTimestamp", "/eventTime", "/firstTimestamp"];
        let time = times
            .iter()
            .map(|path| at(it, path))
            .find(|time| !time.is_empty());
        since(time.unwrap_or_default(), now).into()
    }),
    text("Type", |it, _| at(it, "/type").into()),
    text("Reason", |it, _| at(it, "/reason").into()),
    text("Object", |it, _| {
        let kind = at(it, "/involvedObject/kind").to_lowercase();
        format!("{kind}/{}", at(it, "/involvedObject/name")).into()
    }),
    text("Message", |it, _| at(it, "/message").trim().into()),
];

const BUDGET: &[Column] = &[
    text("Min Available", |it, _| {
        or_na(it.pointer("/spec/minAvailable"))
    }),
    text("Max Unavailable", |it, _| {
        or_na(it.pointer("/spec/maxUnavailable"))
    }),
    number("Allowed Disruptions", |it, _| {
        json!(count(it, "/status/disruptionsAllowed"))
    }),
    AGE,
];

const DEFINITION: &[Column] = &[text("Created At", |it, _| {
    at(it, "/metadata/creationTimestamp").into()
})];

/// The columns of a kind.
pub fn of(group: &str, kind: &str) -> &'static [Column] {
    match (group, kind) {
        ("", "ConfigMap") => CONFIG_MAP,
        ("", "Namespace") => NAMESPACE,
        ("", "Node") => NODE,
        ("", "Pod") => POD,
        ("", "Secret") => SECRET,
        ("", "Event") => EVENT,
        ("apps", "DaemonSet") => DAEMON_SET,
        ("apps", "Deployment") => DEPLOYMENT,
        ("apps", "ReplicaSet") => REPLICA_SET,
        ("batch", "Job") => JOB,
        ("policy", "PodDisruptionBudget") => BUDGET,
        ("apiextensions.k8s.io", _) => DEFINITION,
        _ => OTHER,
    }
}

fn at<'a>(object: &'a Value, path: &str) -> &'a str {
    object
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn count(object: &Value, path: &str) -> u64 {
    object.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

fn members(object: &Value, path: &str) -> usize {
    let members = object.pointer(path).and_then(Value::as_object);
    members.map_or(0, serde_json::Map::len)
}

fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    let list = object.pointer(path).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

fn or_none(text: &str) -> Value {
    if text.is_empty() {
        "<none>".into()
    } else {
        text.into()
    }
}

fn or_na(value: Option<&Value>) -> Value {
    match value {
        None | Some(Value::Null) => "N/A".into(),
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
    }
}

fn node_status(node: &Value) -> String {
    let conditions = list(node, "/status/conditions").iter();
    let ready = conditions
        .filter(|it| it["type"] == "Ready")
        .map(|it| &it["status"])
        .next();
    let mut words = vec![match ready.and_then(Value::as_str) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        words.push("SchedulingDisabled");
    }
    words.join(",")
}

fn node_roles(node: &Value) -> String {
    let labels = node.pointer("/metadata/labels").and_then(Value::as_object);
    let keys = labels.into_iter().flat_map(serde_json::Map::keys);
    let roles: Vec<&str> = keys
        .filter_map(|key| key.strip_prefix("node-role.kubernetes.io/"))
        .collect();
    if roles.is_empty() {
        "<none>".to_owned()
    } else {
        roles.join(",")
    }
}

/// The phase, or what says more: a reason, the state of a container, an end that is near.
fn pod_status(pod: &Value) -> String {
    let mut status = match at(pod, "/status/reason") {
        "" => at(pod, "/status/phase"),
        reason => reason,
    };
    for container in list(pod, "/status/containerStatuses").iter().rev() {
        for state in ["/state/waiting/reason", "/state/terminated/reason"] {
            if !at(container, state).is_empty() {
                status = at(container, state);
            }
        }
    }
    if !at(pod, "/metadata/deletionTimestamp").is_empty() {
        status = "Terminating";
    }
    status.to_owned()
}

fn job_status(job: &Value) -> &'static str {
    let has = |kind: &str| {
        let mut conditions = list(job, "/status/conditions").iter();
        conditions.any(|it| it["type"] == kind && it["status"] == "True")
    };
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if !at(job, "/metadata/deletionTimestamp").is_empty() => "Terminating",
        () if has("Suspended") => "Suspended",
        () => "Running",
    }
}
