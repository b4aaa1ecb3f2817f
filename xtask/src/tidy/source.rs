// SPDX-License-Identifier: Apache-2.0
//! Just enough of Rust's grammar to look at code without its comments and strings.

use std::ops::Range;

/// The text with comments, strings and characters blanked out: same length, same lines.
pub fn code_only(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = skip(text.as_bytes(), at);
        if end == at {
            at += 1;
            continue;
        }
        for byte in &mut bytes[at..end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
        at = end;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Where the comment, string or character that starts at `at` ends; `at` if none starts there.
fn skip(text: &[u8], at: usize) -> usize {
    let rest = &text[at..];
    let in_word = at > 0 && is_word(text[at - 1]);
    match rest {
        [b'/', b'/', ..] => at + find(rest, b"\n").unwrap_or(rest.len()),
        [b'/', b'*', ..] => at + block_comment(rest),
        [b'"', ..] => at + string(rest),
        [b'r', b'"' | b'#', ..] if !in_word => at + raw_string(rest),
        [b'\'', ..] => at + character(rest),
        _ => at,
    }
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `r"..."` and `r#"..."#`; a raw identifier such as `r#type` is no string.
fn raw_string(rest: &[u8]) -> usize {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    if rest.get(1 + hashes) != Some(&b'"') {
        return 0;
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = 2 + hashes;
    find(&rest[body..], &close).map_or(rest.len(), |end| body + end + close.len())
}

/// `'x'` and `'\n'`; a lifetime is no character.
fn character(rest: &[u8]) -> usize {
    let length = match rest.get(1) {
        Some(b'\\') => rest
            .iter()
            .skip(3)
            .position(|byte| *byte == b'\'')
            .map(|end| end + 4),
        _ => (2..=5)
            .find(|end| rest.get(*end) == Some(&b'\''))
            .map(|end| end + 1),
    };
    let is_one = |length: &usize| {
        let inside = std::str::from_utf8(&rest[1..length - 1]);
        inside.is_ok_and(|inside| inside.starts_with('\\') || inside.chars().count() == 1)
    };
    length.filter(is_one).unwrap_or(0)
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len())
        .position(|window| window == wanted)
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Where `word` stands in `code` as a whole word, so that `sleep` is not found in `asleep`. The
/// word may contain other characters, `std::fs`.
pub fn words(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let whole = |at: &usize| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at));
        let after = bytes.get(at + word.len());
        !before.is_some_and(|byte| is_word(*byte)) && !after.is_some_and(|byte| is_word(*byte))
    };
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(whole)
        .collect()
}

/// The line of an offset, from 1.
pub fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes()[..offset]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
        + 1
}

/// Where the item that starts at `from` has its body, braces included; `None` if it ends in `;`.
pub fn body(code: &str, from: usize) -> Option<Range<usize>> {
    let mut depth = 0_usize;
    let mut start = None;
    for (at, byte) in code.bytes().enumerate().skip(from) {
        match byte {
            b'(' | b'[' | b'{' => {
                if byte == b'{' && depth == 0 {
                    start = Some(at);
                }
                depth += 1;
            }
            b')' | b']' | b'}' => {
                depth = depth.saturating_sub(1);
                if let (0, b'}', Some(start)) = (depth, byte, start) {
                    return Some(start..at + 1);
                }
            }
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

/// The items that are compiled for tests only.
pub fn test_items(code: &str) -> Vec<Range<usize>> {
    let attribute = "#[cfg(test)]";
    code.match_indices(attribute)
        .filter_map(|(at, _)| Some(at..body(code, at + attribute.len())?.end))
        .collect()
}

/// The names of the modules in files of their own that are compiled for tests only.
pub fn test_modules<'a>(code: &'a str) -> Vec<&'a str> {
    let items = code.split("#[cfg(test)]").skip(1);
    let module = |item: &'a str| -> Option<&'a str> {
        let (head, _) = item.split_once(';')?;
        let (visibility, name) = head.rsplit_once("mod ")?;
        let visibility = visibility.trim();
        (visibility.is_empty() || visibility.starts_with("pub")).then(|| name.trim())
    };
    let is_name = |name: &&str| name.bytes().all(is_word);
    items.filter_map(module).filter(is_name).collect()
}

/// Every path that the code's `use` items name, braces spread out, with its offset.
pub fn uses(code: &str) -> Vec<(usize, String)> {
    let mut paths = Vec::new();
    for at in words(code, "use") {
        let rest = &code[at + "use".len()..];
        if let Some((tree, _)) = rest.split_once(';') {
            let tree: String = tree.split_whitespace().collect();
            spread("", &tree, &mut |path| paths.push((at, path)));
        }
    }
    paths
}

fn spread(prefix: &str, tree: &str, found: &mut impl FnMut(String)) {
    let Some((head, rest)) = tree.split_once('{') else {
        return found(format!("{prefix}{tree}"));
    };
    let prefix = format!("{prefix}{head}");
    let inside = rest.strip_suffix('}').unwrap_or(rest);
    let (mut depth, mut start) = (0_usize, 0);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                spread(&prefix, &inside[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if start < inside.len() {
        spread(&prefix, &inside[start..], found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"a "b\"c" d"#, r"a        d"),
            (r##"a r#"b"c"# d"##, "a          d"),
            (r"'x' '\'' '{' 'é' a", "a"),
            ("fn f<'a>(x: &'a str)", "fn f<'a>(x: &'a str)"),
            ("r#type for", "r#type for"),
        ] {
            let found = code_only(text);
            assert_eq!(found.trim(), code.trim(), "{text}");
            assert_eq!(found.len(), text.len());
        }
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(words("asleep sleep(sleep_ms) x.sleep", "sleep"), [7, 25]);
    }

    #[test]
    fn bodies_are_matched() {
        let code = "fn f(a: [u8; 4]) { { } } fn g();";
        assert_eq!(body(code, 0), Some(17..24));
        assert_eq!(body(code, 25), None);
    }

    #[test]
    fn modules_for_tests_are_named() {
        let code = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub(crate) mod testing;\n\
                    #[cfg(test)]\nmod inline { mod other; }\nmod shipped;";
        assert_eq!(test_modules(code), ["tests", "testing"]);
    }

    #[test]
    fn use_trees_are_spread() {
        let paths: Vec<String> = uses("use std::{fs, io::{self, Read}}; use units::Code;")
            .into_iter()
            .map(|(_, path)| path)
            .collect();
        assert_eq!(
            paths,
            ["std::fs", "std::io::self", "std::io::Read", "units::Code"]
        );
    }
}
