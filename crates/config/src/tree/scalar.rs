// SPDX-License-Identifier: Apache-2.0
//! What a plain scalar means (YAML 1.1 as go-yaml v2 reads it, which the original programs use).

use super::Value;

/// Resolves a scalar without quotes.
pub fn resolve(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" | "yes" | "Yes" | "YES" | "y" | "Y" | "on" | "On" | "ON" => {
            return Value::Bool(true);
        }
        "false" | "False" | "FALSE" | "no" | "No" | "NO" | "n" | "N" | "off" | "Off" | "OFF" => {
            return Value::Bool(false);
        }
        _ => {}
    }
    let numeric = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    if !numeric {
        return Value::String(text.to_owned());
    }
    let digits = text.replace('_', "");
    int(&digits)
        .map(Value::Int)
        .or_else(|| float(&digits).map(Value::Float))
        .unwrap_or_else(|| Value::String(text.to_owned()))
}

/// A whole number: decimal, `0x`, `0o`, `0b`, or octal with a leading zero.
fn int(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let magnitude = unsigned(digits)?;
    let value = i128::from(magnitude);
    i64::try_from(if negative { -value } else { value }).ok()
}

/// An unsigned number in the notations of Go's `ParseUint` with base 0: decimal, `0x`, `0o`, `0b`,
/// or octal with a leading zero; underscores are already gone.
pub fn unsigned(digits: &str) -> Option<u64> {
    let prefixed = |prefixes: [&str; 2]| prefixes.iter().find_map(|p| digits.strip_prefix(p));
    let (radix, digits) = if let Some(hex) = prefixed(["0x", "0X"]) {
        (16, hex)
    } else if let Some(octal) = prefixed(["0o", "0O"]) {
        (8, octal)
    } else if let Some(binary) = prefixed(["0b", "0B"]) {
        (2, binary)
    } else if digits.len() > 1 && digits.starts_with('0') {
        (8, &digits[1..])
    } else {
        (10, digits)
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_alphanumeric());
    u64::from_str_radix(digits, radix).ok().filter(|_| plain)
}

/// A decimal fraction or exponent, or `.inf` and `.nan`.
fn float(text: &str) -> Option<f64> {
    let bare = text.trim_start_matches(['+', '-']);
    match bare {
        ".inf" | ".Inf" | ".INF" => {
            let negative = text.starts_with('-');
            return Some(if negative {
                f64::NEG_INFINITY
            } else {
                f64::INFINITY
            });
        }
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let decimal = text
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    decimal.then(|| text.parse().ok()).flatten()
}
