// SPDX-License-Identifier: Apache-2.0
//! The protobuf bodies that kubectl sends, read into JSON by a table of fields
//! (`generated.proto` of `k8s.io/api` and `k8s.io/apimachinery` 0.37). Answers are always JSON, which
//! its clients take too.

use serde_json::{Map, Value, json};

use crate::failure::Failure;

/// Before the envelope.
const MAGIC: &[u8] = b"k8s\0";

/// What stands in a field.
#[derive(Clone, Copy)]
enum Field {
    Text,
    Texts,
    Number,
    Claim,
    Message(Fields),
    Messages(Fields),
    /// From texts to texts.
    Map,
    /// From texts to bytes, which JSON has in base64.
    BytesMap,
    /// From texts to quantities.
    QuantityMap,
    /// A number or a text.
    Either,
}

/// Numbers, names and contents of a message's fields.
type Fields = &'static [(u32, &'static str, Field)];

use Field::{BytesMap, Claim, Either, Message, Messages, Number, QuantityMap, Text, Texts};

const OWNER: Fields = &[
    (1, "kind", Text),
    (3, "name", Text),
    (4, "uid", Text),
    (5, "apiVersion", Text),
    (6, "controller", Claim),
    (7, "blockOwnerDeletion", Claim),
];
const METADATA: Fields = &[
    (1, "name", Text),
    (2, "generateName", Text),
    (3, "namespace", Text),
    (5, "uid", Text),
    (6, "resourceVersion", Text),
    (11, "labels", Field::Map),
    (12, "annotations", Field::Map),
    (13, "ownerReferences", Messages(OWNER)),
    (14, "finalizers", Texts),
];
const DELETE_OPTIONS: Fields = &[
    (1, "gracePeriodSeconds", Number),
    (
        2,
        "preconditions",
        Message(&[(1, "uid", Text), (2, "resourceVersion", Text)]),
    ),
    (3, "orphanDependents", Claim),
    (4, "propagationPolicy", Text),
    (5, "dryRun", Texts),
];
const RESOURCE_ATTRIBUTES: Fields = &[
    (1, "namespace", Text),
    (2, "verb", Text),
    (3, "group", Text),
    (4, "version", Text),
    (5, "resource", Text),
    (6, "subresource", Text),
    (7, "name", Text),
];
const ACCESS: Fields = &[
    (1, "resourceAttributes", Message(RESOURCE_ATTRIBUTES)),
    (
        2,
        "nonResourceAttributes",
        Message(&[(1, "path", Text), (2, "verb", Text)]),
    ),
];
const SELECTOR: Fields = &[(1, "matchLabels", Field::Map)];
const BUDGET: Fields = &[
    (1, "minAvailable", Either),
    (2, "selector", Message(SELECTOR)),
    (3, "maxUnavailable", Either),
];

const RULE: Fields = &[
    (1, "verbs", Texts),
    (2, "apiGroups", Texts),
    (3, "resources", Texts),
    (4, "resourceNames", Texts),
    (5, "nonResourceURLs", Texts),
];
const ROLE: Fields = &[
    (1, "metadata", Message(METADATA)),
    (2, "rules", Messages(RULE)),
];
const SUBJECT: Fields = &[
    (1, "kind", Text),
    (2, "apiGroup", Text),
    (3, "name", Text),
    (4, "namespace", Text),
];
const BINDING: Fields = &[
    (1, "metadata", Message(METADATA)),
    (2, "subjects", Messages(SUBJECT)),
    (
        3,
        "roleRef",
        Message(&[(1, "apiGroup", Text), (2, "kind", Text), (3, "name", Text)]),
    ),
];

/// The kinds that are read.
const KINDS: &[(&str, Fields)] = &[
    ("ClusterRole", ROLE),
    ("ClusterRoleBinding", BINDING),
    ("Role", ROLE),
    ("RoleBinding", BINDING),
    (
        "ConfigMap",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "data", Field::Map),
            (3, "binaryData", BytesMap),
            (4, "immutable", Claim),
        ],
    ),
    ("DeleteOptions", DELETE_OPTIONS),
    (
        "Eviction",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "deleteOptions", Message(DELETE_OPTIONS)),
        ],
    ),
    ("Namespace", &[(1, "metadata", Message(METADATA))]),
    (
        "PodDisruptionBudget",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "spec", Message(BUDGET)),
        ],
    ),
    (
        "PriorityClass",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "value", Number),
            (3, "globalDefault", Claim),
            (4, "description", Text),
            (5, "preemptionPolicy", Text),
        ],
    ),
    (
        "ResourceQuota",
        &[
            (1, "metadata", Message(METADATA)),
            (
                2,
                "spec",
                Message(&[(1, "hard", QuantityMap), (2, "scopes", Texts)]),
            ),
        ],
    ),
    (
        "Secret",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "data", BytesMap),
            (3, "type", Text),
            (5, "immutable", Claim),
        ],
    ),
    (
        "SelfSubjectAccessReview",
        &[
            (1, "metadata", Message(METADATA)),
            (2, "spec", Message(ACCESS)),
        ],
    ),
    ("SelfSubjectReview", &[(1, "metadata", Message(METADATA))]),
    ("ServiceAccount", &[(1, "metadata", Message(METADATA))]),
];

const ENVELOPE: Fields = &[(
    1,
    "type",
    Message(&[(1, "apiVersion", Text), (2, "kind", Text)]),
)];
/// The field of the envelope with the message itself.
const RAW: u32 = 2;

/// Reads a body.
///
/// # Errors
/// 400 if it is none, 415 for a kind that is not read in this format.
pub fn read(body: &[u8]) -> Result<Value, Failure> {
    let broken = || Failure::bad_request("the body is no protobuf of Kubernetes");
    let envelope = body.strip_prefix(MAGIC).ok_or_else(broken)?;
    let head = message(envelope, ENVELOPE).ok_or_else(broken)?;
    let raw = fields(envelope).ok_or_else(broken)?;
    let raw = raw.into_iter().find_map(|(number, value)| match value {
        Wire::Bytes(bytes) if number == RAW => Some(bytes),
        _ => None,
    });
    let kind = head["type"]["kind"].as_str().unwrap_or_default();
    let Some((_, known)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        return Err(Failure::unread_protobuf(kind));
    };
    let mut object = message(raw.unwrap_or_default(), known).ok_or_else(broken)?;
    for member in ["apiVersion", "kind"] {
        object[member] = head["type"][member].clone();
    }
    Ok(object)
}

/// A value on the wire.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message in their order; `None` if it is none.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u32, Wire<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let number = u32::try_from(tag >> 3).ok()?;
        let value = match tag & 7 {
            0 => Wire::Number(varint(&mut bytes)?),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let (value, rest) = bytes.split_at_checked(length)?;
                bytes = rest;
                Wire::Bytes(value)
            }
            _ => return None,
        };
        found.push((number, value));
    }
    Some(found)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn message(bytes: &[u8], known: Fields) -> Option<Value> {
    let mut members = Map::new();
    for (number, wire) in fields(bytes)? {
        let Some((_, name, field)) = known.iter().find(|(known, ..)| *known == number) else {
            continue;
        };
        match (field, wire) {
            (Number, Wire::Number(value)) => {
                members.insert((*name).to_owned(), json!(value.cast_signed()));
            }
            (Claim, Wire::Number(value)) => {
                members.insert((*name).to_owned(), json!(value != 0));
            }
            (Text, Wire::Bytes(b"")) => {}
            (Text, Wire::Bytes(bytes)) => {
                members.insert((*name).to_owned(), json!(text(bytes)?));
            }
            (Message(inner), Wire::Bytes(bytes)) => {
                members.insert((*name).to_owned(), message(bytes, inner)?);
            }
            (Either, Wire::Bytes(bytes)) => {
                members.insert((*name).to_owned(), either(bytes)?);
            }
            (Texts, Wire::Bytes(bytes)) => push(&mut members, name, json!(text(bytes)?)),
            (Messages(inner), Wire::Bytes(bytes)) => {
                push(&mut members, name, message(bytes, inner)?);
            }
            (Field::Map | BytesMap | QuantityMap, Wire::Bytes(bytes)) => {
                let (key, value) = entry(bytes, *field)?;
                let map = members.entry(*name).or_insert_with(|| json!({}));
                map[key] = value;
            }
            _ => return None,
        }
    }
    Some(Value::Object(members))
}

fn push(members: &mut Map<String, Value>, name: &str, value: Value) {
    let list = members.entry(name).or_insert_with(|| json!([]));
    if let Some(list) = list.as_array_mut() {
        list.push(value);
    }
}

/// Key and value of a map's entry.
fn entry(bytes: &[u8], field: Field) -> Option<(String, Value)> {
    let (mut key, mut value) = (String::new(), json!(""));
    for (number, wire) in fields(bytes)? {
        match (number, wire, field) {
            (1, Wire::Bytes(bytes), _) => key = text(bytes)?,
            (2, Wire::Bytes(bytes), Field::Map) => value = json!(text(bytes)?),
            (2, Wire::Bytes(bytes), BytesMap) => value = json!(base64(bytes)),
            (2, Wire::Bytes(bytes), _) => {
                value = message(bytes, &[(1, "string", Text)])?["string"].take();
            }
            _ => return None,
        }
    }
    Some((key, value))
}

/// An `IntOrString`.
fn either(bytes: &[u8]) -> Option<Value> {
    let fields = message(
        bytes,
        &[(1, "type", Number), (2, "int", Number), (3, "text", Text)],
    )?;
    Some(match fields["type"].as_i64() {
        Some(1) => fields["text"].clone(),
        _ => json!(fields["int"].as_i64().unwrap_or(0)),
    })
}

fn text(bytes: &[u8]) -> Option<String> {
    String::from_utf8(bytes.to_vec()).ok()
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize];
            text.push(if at <= chunk.len() {
                char::from(letter)
            } else {
                '='
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tagged(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2, u8::try_from(bytes.len()).unwrap()];
        field.extend(bytes);
        field
    }

    fn body(kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [tagged(1, b"v1"), tagged(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), tagged(1, &types), tagged(2, raw)].concat()
    }

    #[test]
    fn a_config_map_is_read() {
        let entry = [tagged(1, b"k"), tagged(2, b"v")].concat();
        let bytes = [tagged(1, b"b"), tagged(2, b"\x00\x01\xff\x02")].concat();
        let raw = [
            tagged(1, &tagged(1, b"a")),
            tagged(2, &entry),
            tagged(3, &bytes),
        ]
        .concat();
        assert_eq!(
            read(&body("ConfigMap", &raw)).unwrap(),
            json!({
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a"},
                "data": {"k": "v"},
                "binaryData": {"b": "AAH/Ag=="},
            })
        );
    }

    #[test]
    fn what_is_not_read_says_so() {
        assert_eq!(read(&body("Pod", b"")).unwrap_err().code, 415);
        assert_eq!(read(b"{}").unwrap_err().code, 400);
        let cut = &body("ConfigMap", &tagged(1, b"abc"))[..18];
        assert_eq!(read(cut).unwrap_err().code, 400);
    }
}
