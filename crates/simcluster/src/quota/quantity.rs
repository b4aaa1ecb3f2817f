// SPDX-License-Identifier: Apache-2.0
//! Quantities such as `500m`, `1Gi` and `2`: read, added, and written in the canonical form
//! (`apimachinery/pkg/api/resource`).

use std::cmp::Ordering;
use std::fmt;

/// An amount, exact to the thousandth.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    thousandths: i128,
    /// Whether it is written with `Ki`, `Mi` and so on.
    is_binary: bool,
}

const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
const DECIMAL: [&str; 6] = ["k", "M", "G", "T", "P", "E"];

impl Quantity {
    /// A whole number.
    pub fn whole(number: i64) -> Self {
        Self {
            thousandths: i128::from(number) * 1000,
            is_binary: false,
        }
    }

    /// Reads a text; `None` if it is no quantity.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim_start_matches(['+', '-']);
        let end = digits
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(digits.len());
        let (number, suffix) = digits.split_at(end);
        let (factor, is_binary) = factor(suffix)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let amount: i128 = format!("{whole}{fraction}").parse().ok()?;
        // What is smaller than a thousandth counts as one, as the real server rounds up.
        let product = amount.checked_mul(factor)?;
        let thousandths = product.div_euclid(scale) + i128::from(product.rem_euclid(scale) > 0);
        Some(Self {
            thousandths: if text.starts_with('-') {
                -thousandths
            } else {
                thousandths
            },
            is_binary,
        })
    }

    /// The sum, written as the first of them that is not zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            thousandths: self.thousandths.saturating_add(other.thousandths),
            is_binary: if self.thousandths == 0 {
                other.is_binary
            } else {
                self.is_binary
            },
        }
    }

    /// The difference.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self {
            thousandths: -other.thousandths,
            ..other
        })
    }

    /// Whether it is more than nothing.
    pub fn is_positive(self) -> bool {
        self.thousandths > 0
    }
}

/// Thousandths in one of a unit, and whether it is a binary one.
fn factor(suffix: &str) -> Option<(i128, bool)> {
    let power = |list: &[&str]| {
        let at = list.iter().position(|known| *known == suffix)?;
        u32::try_from(at + 1).ok()
    };
    if let Some(power) = power(&BINARY) {
        return Some((1024_i128.pow(power) * 1000, true));
    }
    if let Some(power) = power(&DECIMAL) {
        return Some((1000_i128.pow(power + 1), false));
    }
    match suffix {
        "" => Some((1000, false)),
        "m" => Some((1, false)),
        _ => {
            let exponent: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            Some((10_i128.checked_pow(exponent.checked_add(3)?)?, false))
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.thousandths == other.thousandths
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.thousandths.cmp(&other.thousandths)
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.thousandths % 1000 != 0 {
            return write!(f, "{}m", self.thousandths);
        }
        let (mut whole, base, units) = match self.is_binary {
            true => (self.thousandths / 1000, 1024, BINARY),
            false => (self.thousandths / 1000, 1000, DECIMAL),
        };
        let mut unit = "";
        for larger in units {
            if whole == 0 || whole % base != 0 {
                break;
            }
            whole /= base;
            unit = larger;
        }
        write!(f, "{whole}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::Quantity;

    #[test]
    fn quantities_are_read_and_written() {
        let table = [
            ("0", "0"),
            ("2", "2"),
            ("2000m", "2"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("-1", "-1"),
            ("0.0001", "1m"),
        ];
        for (text, expected) in table {
            assert_eq!(
                Quantity::parse(text).unwrap().to_string(),
                expected,
                "{text}"
            );
        }
        for text in ["", "x", "1x", "1.2.3", "1ee"] {
            assert!(Quantity::parse(text).is_none(), "{text}");
        }
    }
}
