// SPDX-License-Identifier: Apache-2.0
//! What a request asks, read from its URL and headers.

use std::collections::BTreeMap;

use crate::failure::Failure;

/// What a path means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `/api`: the core group's versions.
    Core,
    /// `/apis`: the other groups.
    Groups,
    /// `/apis/apps`: one group.
    Group(String),
    /// `/apis/apps/v1` or `/api/v1`: the resources of a group's version.
    Resources(String, String),
    /// `/openapi/v3` with nothing, or the group version behind it, such as `apis/apps/v1`.
    OpenApi(String),
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz`.
    Health,
    /// Objects.
    Objects(Url),
    /// Nothing that is served.
    Unknown,
}

/// The path of objects. Parts that are not there are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// API group; empty for the core group.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace.
    pub namespace: String,
    /// Resource, as in the URL.
    pub plural: String,
    /// Object.
    pub name: String,
    /// What follows the name.
    pub subresource: String,
}

/// Reads a path, without its query.
pub fn target(path: &str) -> Target {
    let decoded: Vec<String> = path
        .split('/')
        .filter(|part| !part.is_empty())
        .map(decode)
        .collect();
    let parts: Vec<&str> = decoded.iter().map(String::as_str).collect();
    match parts.as_slice() {
        ["api"] => Target::Core,
        ["apis"] => Target::Groups,
        ["apis", group] => Target::Group((*group).to_owned()),
        ["api", version] => Target::Resources(String::new(), (*version).to_owned()),
        ["apis", group, version] => Target::Resources((*group).to_owned(), (*version).to_owned()),
        ["api", version, rest @ ..] => objects("", version, rest),
        ["apis", group, version, rest @ ..] => objects(group, version, rest),
        ["openapi", "v3", rest @ ..] => Target::OpenApi(rest.join("/")),
        ["version"] => Target::Version,
        ["healthz" | "livez" | "readyz", ..] => Target::Health,
        _ => Target::Unknown,
    }
}

fn objects(group: &str, version: &str, rest: &[&str]) -> Target {
    let (namespace, rest) = match rest {
        // A namespace's own subresources look like resources in it.
        ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, inside @ ..] if !inside.is_empty() => (*namespace, inside),
        _ => ("", rest),
    };
    let [plural, rest @ ..] = rest else {
        return Target::Unknown;
    };
    let (name, subresource) = match rest {
        [] => ("", String::new()),
        [name, subresource @ ..] => (*name, subresource.join("/")),
    };
    Target::Objects(Url {
        group: group.to_owned(),
        version: version.to_owned(),
        namespace: namespace.to_owned(),
        plural: (*plural).to_owned(),
        name: name.to_owned(),
        subresource,
    })
}

fn decode(part: &str) -> String {
    // A path keeps `+`, which a query's decoder would read as a blank.
    let part = part.replace('+', "%2B");
    form_urlencoded::parse(part.as_bytes())
        .next()
        .map_or_else(String::new, |(key, _)| key.into_owned())
}

/// The query of a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Reads what follows the `?`.
    pub fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        Self(pairs.into_owned().collect())
    }

    /// A parameter; empty if it is not there.
    pub fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether a parameter is there, empty or not.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// A parameter that is a claim.
    pub fn is(&self, name: &str) -> bool {
        matches!(self.get(name), "true" | "1" | "t" | "T" | "TRUE" | "True")
    }

    /// A parameter that is a number; `None` if it is not there.
    ///
    /// # Errors
    /// 400 if it is no number.
    pub fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        match self.get(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                Failure::bad_request(format!("invalid value {text:?} of the parameter {name}"))
            }),
        }
    }

    /// `resourceVersion`; `None` for the newest state.
    ///
    /// # Errors
    /// 500, as the real server says, if it is no version.
    pub fn resource_version(&self) -> Result<Option<u64>, Failure> {
        let text = self.get("resourceVersion");
        self.number("resourceVersion").map_err(|_| {
            Failure::internal(format!(
                "resourceVersion: Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: invalid syntax"
            ))
        })
    }
}

/// In which form objects are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As they are.
    Whole,
    /// Only their metadata.
    Metadata,
    /// As rows of a table.
    Table,
    /// Discovery in one answer, `apidiscovery.k8s.io/v2`.
    Discovery,
}

/// Reads an `Accept` header: the first form in it that this server has.
///
/// # Errors
/// 406 if there is none.
pub fn form(accept: &str) -> Result<Form, Failure> {
    if accept.trim().is_empty() {
        return Ok(Form::Whole);
    }
    for choice in accept.split(',') {
        let mut words = choice.split(';').map(str::trim);
        let media = words.next().unwrap_or_default();
        if !matches!(media, "application/json" | "application/*" | "*/*") {
            continue;
        }
        let parameter = |name: &str| {
            let pairs = choice
                .split(';')
                .filter_map(|word| word.trim().split_once('='));
            pairs
                .filter(|(key, _)| *key == name)
                .map(|(_, value)| value)
                .next()
        };
        match (parameter("as"), parameter("v")) {
            (None, _) => return Ok(Form::Whole),
            (Some("PartialObjectMetadata" | "PartialObjectMetadataList"), Some("v1")) => {
                return Ok(Form::Metadata);
            }
            (Some("Table"), Some("v1")) => return Ok(Form::Table),
            (Some("APIGroupDiscoveryList"), Some("v2")) => return Ok(Form::Discovery),
            _ => {}
        }
    }
    Err(Failure::not_acceptable())
}
