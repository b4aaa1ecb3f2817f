// SPDX-License-Identifier: Apache-2.0
//! Names of resources, and texts that are legal in labels.

use units::ProfileName;

/// Prefix of NVIDIA's names.
pub(crate) const PREFIX: &str = "nvidia.com/";

/// Resource name of a whole GPU.
pub(crate) const GPU: &str = "nvidia.com/gpu";

/// Longest label value, in bytes (source: Kubernetes).
pub const LONGEST_VALUE: usize = 63;

/// The last part of a slice's resource name, and of its labels' keys: `mig-1g.10gb.me`.
pub(crate) fn slice(profile: &ProfileName) -> String {
    format!("mig-{}", profile.label_form())
}

/// A text without what labels cannot hold, words joined by `-` (as GPU Feature Discovery does it).
pub(crate) fn sanitise(text: &str) -> String {
    let legal = |c: &char| c.is_ascii_alphanumeric() || "-_. ".contains(*c);
    let kept: String = text.chars().filter(legal).collect();
    kept.split_ascii_whitespace().collect::<Vec<_>>().join("-")
}

/// A legal label value of a text and an ending. Where both do not fit, the text is shortened and
/// the ending kept.
pub(crate) fn label_value(text: &str, ending: &str) -> String {
    let text = sanitise(text);
    let room = LONGEST_VALUE.saturating_sub(ending.len());
    let text = trim(&text[..text.len().min(room)]);
    let whole = format!("{text}{ending}");
    trim(&whole[..whole.len().min(LONGEST_VALUE)]).to_owned()
}

/// Without the characters at both ends that may only stand inside.
fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric())
}

/// Whether Kubernetes accepts this as a label value.
pub(crate) fn is_label_value(text: &str) -> bool {
    let inside = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    text.len() <= LONGEST_VALUE && text.chars().all(inside) && trim(text) == text
}

/// Whether a pattern matches a whole text. `*` stands for any part of it.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let end = parts.pop().unwrap_or_default();
    for part in parts {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_become_label_values() {
        for (text, ending, value) in [
            ("NVIDIA A100-SXM4-80GB", "", "NVIDIA-A100-SXM4-80GB"),
            (
                "  Quadro\tRTX  (R) 6000/24Q ",
                "-SHARED",
                "QuadroRTX-R-600024Q-SHARED",
            ),
            ("-NVIDIA-", "-MIG-1g.5gb", "NVIDIA-MIG-1g.5gb"),
            ("", "-MIG-1g.5gb", "MIG-1g.5gb"),
            ("()", "", ""),
        ] {
            assert_eq!(label_value(text, ending), value);
        }
        let value = label_value(&"Long Name ".repeat(9), "-MIG-1g.24gb-me-SHARED");
        assert_eq!(
            value,
            "Long-Name-Long-Name-Long-Name-Long-Name-L-MIG-1g.24gb-me-SHARED"
        );
        assert_eq!(value.len(), LONGEST_VALUE);
    }

    #[test]
    fn patterns_match_whole_texts() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("A100", "A100", true),
            ("A100", "A100 ", false),
            ("*A100*", "NVIDIA A100-SXM4", true),
            ("NVIDIA *-80GB", "NVIDIA A100-SXM4-80GB", true),
            ("NVIDIA *-80GB", "NVIDIA A100-80GB-X", false),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("aa*aa", "aaa", false),
            ("1g.10gb", "1gx10gb", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }
}
