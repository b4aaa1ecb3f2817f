// SPDX-License-Identifier: Apache-2.0
//! Ages as kubectl prints them: two units while young, one later
//! (`apimachinery/pkg/util/duration`).

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// From a time in RFC 3339 to now; `<unknown>` if it is none.
pub fn since(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Ok(then) => span(now.as_second() - then.as_second()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// Seconds as kubectl prints them.
pub fn span(seconds: i64) -> String {
    let two = |large: i64, unit: &str, small: i64, lesser: &str| {
        let rest = seconds % large / small;
        match rest {
            0 => format!("{}{unit}", seconds / large),
            rest => format!("{}{unit}{rest}{lesser}", seconds / large),
        }
    };
    match seconds {
        i64::MIN..0 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(MINUTE, "m", 1, "s"),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(HOUR, "h", MINUTE, "m"),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(DAY, "d", HOUR, "h"),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(YEAR, "y", DAY, "d"),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::span;

    #[test]
    fn ages_are_as_kubectl_prints_them() {
        let table = [
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (660, "11m"),
            (3 * 3600 + 60, "3h1m"),
            (9 * 3600, "9h"),
            (50 * 3600, "2d2h"),
            (9 * 86_400, "9d"),
            (3 * 365 * 86_400, "3y"),
        ];
        for (seconds, expected) in table {
            assert_eq!(span(seconds), expected);
        }
    }
}
