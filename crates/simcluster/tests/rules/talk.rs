// SPDX-License-Identifier: Apache-2.0
//! Holding a conversation with a server, and writing down what it says so that two servers can be
//! compared: versions and uids by the order in which they come, times and names of namespaces not.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use kube::Client;
use serde_json::Value;

use crate::ask::{Ask, find};

/// The custom resource that rules use.
const DEFINITION: &str = include_str!("definition.json");
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/rules.slicewright.dev/v1/widgets";

/// How often and how long something is asked again.
const PAUSE: Duration = Duration::from_millis(100);
const ATTEMPTS: usize = 200;

/// A server that is asked.
pub struct Server {
    client: Client,
    run: u32,
    rules: AtomicU32,
}

/// What was said in one rule.
#[derive(Default)]
struct Names {
    namespace: String,
    versions: Vec<String>,
    uids: Vec<String>,
    tokens: Vec<String>,
}

impl Server {
    pub async fn new(client: Client) -> Self {
        let server = Self {
            client,
            run: std::process::id(),
            rules: AtomicU32::new(0),
        };
        let none = Names::default();
        let post = Ask::parse(&[&format!("POST {DEFINITIONS}"), DEFINITION]);
        server.ask(&post, &none).await;
        let get = Ask {
            until: Some(200),
            ..Ask::parse(&[&format!("GET {WIDGETS}")])
        };
        assert_eq!(
            server.ask(&get, &none).await.0,
            200,
            "widgets are not served"
        );
        server
    }

    /// Takes away what is not in a rule's own namespace.
    pub async fn leave(&self) {
        let name = "widgets.rules.slicewright.dev";
        let delete = Ask::parse(&[&format!("DELETE {DEFINITIONS}/{name}")]);
        self.ask(&delete, &Names::default()).await;
    }

    /// Holds the conversation of a file: the text again, with what this server says.
    pub async fn hold(&self, recorded: &str) -> String {
        let mut said = String::new();
        let mut question: Vec<&str> = Vec::new();
        let mut names = Names::default();
        for line in recorded.lines().chain([""]) {
            let is_answer = line.starts_with("=> ");
            if !question.is_empty() && (is_answer || line.is_empty()) {
                said.push_str(&self.answer(&question, &mut names).await);
                question.clear();
            }
            if is_answer {
                continue;
            }
            said.push_str(line);
            said.push('\n');
            if line.starts_with("## ") {
                names = self.begin(std::mem::take(&mut names)).await;
            } else if Ask::begins(line) || !question.is_empty() {
                question.push(line);
            }
        }
        self.end(&names).await;
        said.pop();
        said
    }

    async fn begin(&self, last: Names) -> Names {
        self.end(&last).await;
        let number = self.rules.fetch_add(1, Ordering::Relaxed);
        let names = Names {
            namespace: format!("rule-{}-{number}", self.run),
            ..Names::default()
        };
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}}"#,
            names.namespace
        );
        let post = Ask::parse(&["POST /api/v1/namespaces", &body]);
        assert_eq!(self.ask(&post, &names).await.0, 201, "no namespace");
        names
    }

    async fn end(&self, names: &Names) {
        if !names.namespace.is_empty() {
            let delete = Ask::parse(&["DELETE /api/v1/namespaces/$ns"]);
            self.ask(&delete, names).await;
        }
    }

    async fn answer(&self, lines: &[&str], names: &mut Names) -> String {
        let ask = Ask::parse(lines);
        let (code, body, warnings) = self.ask(&ask, names).await;
        let mut said = format!("=> {code}");
        if !ask.is_watch() || code != 200 {
            let answer = serde_json::from_str(&body).unwrap_or(Value::Null);
            if answer["status"] == "Failure" {
                let text = |at: &str| answer[at].as_str().unwrap_or_default().to_owned();
                let _ = write!(said, " {}", text("reason"));
                if !ask.is_brief() {
                    let _ = write!(said, ": {}", names.neutral(&text("message")));
                }
            }
            said.push('\n');
            for pointer in &ask.show {
                let found = match pointer.as_str() {
                    "/warning" => warnings.clone(),
                    _ => find(&answer, pointer),
                };
                let value = names.shown(&found, pointer);
                let _ = writeln!(said, "=> {pointer} {value}");
            }
            return said;
        }
        said.push('\n');
        for line in body.lines() {
            let event: Value = serde_json::from_str(line).unwrap();
            // Others come when they like.
            if event["type"] == "BOOKMARK" && event["object"]["metadata"]["annotations"].is_null() {
                continue;
            }
            let _ = write!(said, "=> {}", event["type"].as_str().unwrap());
            for pointer in &ask.show {
                let value = names.shown(&find(&event["object"], pointer), pointer);
                let _ = write!(said, " {value}");
            }
            said.push('\n');
        }
        said
    }

    /// Status code, body and warnings of an answer.
    async fn ask(&self, ask: &Ask, names: &Names) -> (u16, String, Value) {
        let mut pause = tokio::time::interval(PAUSE);
        for attempt in 1.. {
            let request = axum::http::Request::builder()
                .method(ask.method.as_str())
                .uri(names.filled(&ask.path))
                .header("accept", ask.accept())
                .header("user-agent", "rules/1")
                .header("content-type", ask.content_type())
                .body(kube::client::Body::from(
                    names.filled(&ask.body).into_bytes(),
                ))
                .unwrap();
            let response = self.client.send(request).await.unwrap();
            let code = response.status().as_u16();
            let warnings = response.headers().get_all("warning");
            let warnings: Value = warnings
                .iter()
                .map(|value| value.to_str().unwrap())
                .collect();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let answer = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let is_all = || {
                ask.show
                    .iter()
                    .all(|pointer| !find(&answer, pointer).is_null())
            };
            let is_enough =
                ask.until.is_none_or(|until| code == until) && (!ask.waits_for_all() || is_all());
            if is_enough || attempt == ATTEMPTS {
                return (code, String::from_utf8(body.to_vec()).unwrap(), warnings);
            }
            pause.tick().await;
        }
        unreachable!("the last attempt returns");
    }
}

impl Names {
    /// A question with the names of this run in it.
    fn filled(&self, text: &str) -> String {
        let mut text = text.replace("$ns", &self.namespace);
        for (mark, known) in [
            ("$version", &self.versions),
            ("$uid", &self.uids),
            ("$continue", &self.tokens),
        ] {
            for (number, value) in known.iter().enumerate().rev() {
                text = text.replace(&format!("{mark}{}", number + 1), value);
            }
        }
        text
    }

    /// An answer without the names of this run.
    fn neutral(&self, text: &str) -> String {
        // An answer is one line.
        let mut text = text.replace('\n', "\\n");
        if !self.namespace.is_empty() {
            text = text.replace(&self.namespace, "$ns");
        }
        for (number, uid) in self.uids.iter().enumerate() {
            text = text.replace(uid, &format!("$uid{}", number + 1));
        }
        for (number, version) in self.versions.iter().enumerate() {
            text = text.replace(
                &format!("({version})"),
                &format!("($version{})", number + 1),
            );
        }
        text
    }

    /// A value as it is written down.
    fn shown(&mut self, value: &Value, pointer: &str) -> String {
        let mut value = value.clone();
        let last = pointer.rsplit('/').next().unwrap_or_default();
        self.name(&mut value, last);
        self.neutral(&value.to_string())
    }

    fn name(&mut self, value: &mut Value, member: &str) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.name(item, member)),
            Value::Object(members) => {
                members
                    .iter_mut()
                    .for_each(|(member, value)| self.name(value, member));
            }
            Value::String(text) => {
                let (mark, known) = match member {
                    "resourceVersion" => ("$version", &mut self.versions),
                    "uid" => ("$uid", &mut self.uids),
                    "continue" => ("$continue", &mut self.tokens),
                    _ if text.parse::<jiff::Timestamp>().is_ok() => {
                        *text = "$time".to_owned();
                        return;
                    }
                    _ => return,
                };
                if text.is_empty() {
                    return;
                }
                if !known.contains(text) {
                    known.push(text.clone());
                }
                let number = known.iter().position(|known| known == text).unwrap() + 1;
                *text = format!("{mark}{number}");
            }
            _ => {}
        }
    }
}

/// The lines in which two conversations differ, each rule under its name.
pub fn difference(recorded: &str, said: &str) -> String {
    let blocks = |text: &str| -> Vec<String> { text.split("\n\n").map(str::to_owned).collect() };
    let mut rule = String::new();
    let mut found = String::new();
    for (recorded, said) in blocks(recorded).iter().zip(blocks(said)) {
        if recorded.starts_with("## ") {
            rule = recorded.lines().next().unwrap_or_default().to_owned();
        }
        if *recorded != said {
            let _ = writeln!(
                found,
                "{rule}\n--- recorded\n{recorded}\n+++ said\n{said}\n"
            );
        }
    }
    found
}
