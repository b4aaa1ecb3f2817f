// SPDX-License-Identifier: Apache-2.0
//! Positions, scalars, aliases and limits.

use super::*;

fn root(text: &str) -> Node {
    parse(text).unwrap().root.unwrap()
}

fn at(line: usize, column: usize) -> Position {
    Position { line, column }
}

fn member<'a>(node: &'a Node, key: &str) -> &'a Member {
    node.as_mapping().unwrap().get(key).unwrap()
}

#[test]
fn positions_are_those_of_the_text() {
    let tree = root("a: 1\nb:\n  - x\n  - {c: [7]}\n");
    assert_eq!(member(&tree, "b").at, at(2, 1));
    let Value::Sequence(items) = &member(&tree, "b").value.value else {
        panic!("no list");
    };
    assert_eq!(items[0].at, at(3, 5));
    assert_eq!(member(&items[1], "c").value.at, at(4, 9));
}

#[test]
fn scalars_are_those_of_yaml_1_1() {
    for (text, value) in [
        ("yes", Value::Bool(true)),
        ("off", Value::Bool(false)),
        ("~", Value::Null),
        ("", Value::Null),
        ("0x10", Value::Int(16)),
        ("010", Value::Int(8)),
        ("1_000", Value::Int(1000)),
        ("-7", Value::Int(-7)),
        ("7.0", Value::Float(7.0)),
        ("1e3", Value::Float(1000.0)),
        ("1g.10gb", Value::String("1g.10gb".to_owned())),
        ("0x", Value::String("0x".to_owned())),
        ("+-7", Value::String("+-7".to_owned())),
        ("\"7\"", Value::String("7".to_owned())),
        ("'yes'", Value::String("yes".to_owned())),
        ("!!str 7", Value::String("7".to_owned())),
        (
            "9223372036854775808",
            Value::Float(9_223_372_036_854_775_808.0),
        ),
    ] {
        assert_eq!(
            member(&root(&format!("k: {text}")), "k").value.value,
            value,
            "{text}"
        );
    }
}

#[test]
fn duplicates_are_recorded_and_the_last_wins() {
    let tree = root("a: 1\nb: 2\na: 3\n");
    let mapping = tree.as_mapping().unwrap();
    assert_eq!(mapping.get("a").unwrap().value.value, Value::Int(3));
    assert_eq!(
        mapping.duplicates,
        [Duplicate {
            key: "a".to_owned(),
            first: at(1, 1),
            again: at(3, 1),
        }]
    );
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let tree =
        root("base: &b {x: 1, y: 2}\nz: &z {y: 9, w: 4}\nc:\n  <<: [*b, *z]\n  x: 5\nd: *b\n");
    let merged = &member(&tree, "c").value;
    assert_eq!(member(merged, "x").value.value, Value::Int(5));
    assert_eq!(member(merged, "y").value.value, Value::Int(2));
    assert_eq!(member(merged, "w").value.value, Value::Int(4));
    assert_eq!(member(&member(&tree, "d").value, "y").value.at, at(1, 20));
    assert!(merged.as_mapping().unwrap().duplicates.is_empty());
}

#[test]
fn json_is_read_too() {
    let filler = "x".repeat(3000);
    let text =
        format!("{{\"a\":\t{{\"b\": [1, \"\\u00e9\\/\\n\"]}},\r\n\t\"filler\": \"{filler}\"}}");
    let tree = root(&text);
    let Value::Sequence(items) = &member(&member(&tree, "a").value, "b").value.value else {
        panic!("no list");
    };
    assert_eq!(items[1].as_str(), Some("é/\n"));
    let flat: String = text.replace(['\r', '\n'], "");
    assert!(member(&root(&flat), "filler").value.as_str().is_some());
}

#[test]
fn only_the_first_document_is_read() {
    let tree = parse("a: 1\n---\nb: 2\n").unwrap();
    assert_eq!(tree.second_document, Some(at(2, 1)));
    assert!(tree.root.unwrap().as_mapping().unwrap().get("b").is_none());
    assert_eq!(parse("# nothing\n").unwrap().root, None);
    assert_eq!(parse("").unwrap().root, None);
}

#[test]
fn what_is_no_yaml_is_told_with_its_place() {
    for (text, place) in [
        ("version: v1\n  flags: [\n", at(2, 8)),
        ("a: *nowhere\n", at(1, 4)),
        ("[1, 2", at(1, 1)),
        ("? [a]\n: 1\n", at(1, 3)),
        ("a: &a [*a]\n", at(1, 8)),
        ("<<: 7\n", at(1, 5)),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.at, place, "{text:?}: {error}");
    }
}

#[test]
fn alias_bombs_deep_nesting_and_long_texts_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    let error = parse(&bomb).unwrap_err();
    assert!(error.message.contains("too many values"), "{error}");

    let mut chain = String::from("a0: &a0 [x]\n");
    for level in 1..100 {
        chain.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(parse(&chain).unwrap_err().message.contains("deep"));

    assert!(parse(&"[".repeat(1000)).is_err());
    assert!(parse(&"- ".repeat(1000)).is_err());
    assert!(parse(&"{a: ".repeat(1000)).is_err());
    assert!(
        parse(&" ".repeat(MAX_BYTES + 1))
            .unwrap_err()
            .message
            .contains("bytes")
    );
    assert!(
        parse(&"- x\n".repeat(1_000_000))
            .unwrap_err()
            .message
            .contains("too many")
    );
}
