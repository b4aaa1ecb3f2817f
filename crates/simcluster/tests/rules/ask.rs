// SPDX-License-Identifier: Apache-2.0
//! One question of a conversation: how it is written, and what is shown of the answer.
//!
//! ```text
//! PATCH /api/v1/namespaces/$ns/configmaps/a merge     method, path, media type of the body
//! {"data": {"k": "w"}}                                body, if any, up to the next line
//! show /data /metadata/resourceVersion                what is shown; `*` stands for every item
//! until 404                                           asked again until it is so
//! => 200                                              what the server says: not read, but compared
//! => /data {"k":"w"}
//! ```

use serde_json::Value;

/// A question.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ask {
    pub method: String,
    pub path: String,
    pub words: Vec<String>,
    pub body: String,
    pub show: Vec<String>,
    pub until: Option<u16>,
}

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];

impl Ask {
    /// Reads the lines of one question, without those of the answer.
    pub fn parse(lines: &[&str]) -> Self {
        let mut ask = Self::default();
        for (number, line) in lines.iter().enumerate() {
            if number == 0 {
                let mut words = line.split(' ').map(str::to_owned);
                ask.method = words.next().unwrap();
                ask.path = words.next().unwrap();
                ask.words = words.collect();
            } else if let Some(pointers) = line.strip_prefix("show ") {
                ask.show = pointers.split(' ').map(str::to_owned).collect();
            } else if let Some(code) = line.strip_prefix("until ") {
                ask.until = Some(code.parse().unwrap());
            } else {
                ask.body.push_str(line);
            }
        }
        ask
    }

    /// Whether a line begins a question.
    pub fn begins(line: &str) -> bool {
        let method = line.split(' ').next().unwrap_or_default();
        METHODS.contains(&method)
    }

    /// Whether it is asked again until everything that is shown is there.
    pub fn waits_for_all(&self) -> bool {
        self.words.iter().any(|word| word == "all")
    }

    /// Whether the words of a refusal are of no interest.
    pub fn is_brief(&self) -> bool {
        self.words.iter().any(|word| word == "brief")
    }

    pub fn is_watch(&self) -> bool {
        self.path.contains("watch=true")
    }

    pub fn content_type(&self) -> &'static str {
        match self.words.first().map(String::as_str) {
            Some("merge") => "application/merge-patch+json",
            Some("jsonpatch") => "application/json-patch+json",
            Some("strategic") => "application/strategic-merge-patch+json",
            Some("apply") => "application/apply-patch+yaml",
            Some("yaml") => "application/yaml",
            Some("strange") => "application/strange",
            _ => "application/json",
        }
    }

    pub fn accept(&self) -> &'static str {
        match self.words.first().map(String::as_str) {
            Some("table") => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            Some("metadata") => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            Some("metadatalist") => {
                "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
            Some("aggregated") => {
                "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
            }
            Some("unacceptable") => "text/html",
            _ => "application/json",
        }
    }
}

/// The values at a pointer, in which `*` stands for every item.
pub fn find(value: &Value, pointer: &str) -> Value {
    match pointer.split_once("/*") {
        None => value.pointer(pointer).cloned().unwrap_or(Value::Null),
        Some((list, rest)) => {
            let list = value.pointer(list).and_then(Value::as_array);
            list.into_iter()
                .flatten()
                .map(|item| find(item, rest))
                .collect()
        }
    }
}
