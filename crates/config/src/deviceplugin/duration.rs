// SPDX-License-Identifier: Apache-2.0
//! Durations in Go's notation: `60s`, `1h30m`, `1.5s`.

use std::time::Duration;

/// Units with their nanoseconds; longer names first where one begins another.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
];

/// Reads a duration that is not negative and at most 292 years, as Go's; `None` if it is none.
pub fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    let mut nanoseconds: u64 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(end);
        let (unit, scale) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        nanoseconds = nanoseconds.checked_add(scaled(number, *scale)?)?;
        rest = &tail[unit.len()..];
    }
    let is_some = !text.is_empty() && i64::try_from(nanoseconds).is_ok();
    is_some.then(|| Duration::from_nanos(nanoseconds))
}

/// A decimal number times a scale, cut to whole.
fn scaled(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return None;
    }
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut part = 0;
    let mut place = scale;
    for digit in fraction.bytes() {
        place /= 10;
        part += u64::from(digit - b'0') * place;
    }
    whole.checked_mul(scale)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_those_of_go() {
        for (text, seconds) in [
            ("60s", 60.0),
            ("1h30m", 5400.0),
            ("1.5s", 1.5),
            (".5s", 0.5),
            ("100ms", 0.1),
            ("0", 0.0),
            ("+2m0s", 120.0),
        ] {
            assert_eq!(parse(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for text in [
            "",
            "abc",
            "60",
            "s",
            ".s",
            "-1s",
            "1x",
            "1.2.3s",
            "1s ",
            "9999999h9999999h",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
