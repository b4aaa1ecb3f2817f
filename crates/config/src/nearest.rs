// SPDX-License-Identifier: Apache-2.0
//! Did you mean: the nearest of some known names.

/// Longer names are not compared: nobody types them wrong by a letter.
const LONGEST: usize = 64;

/// The name in `known` that is nearest to `text` by edits, ignoring letter case; `None` if all are
/// farther than a third of the text.
pub fn nearest<'a>(text: &str, known: &[&'a str]) -> Option<&'a str> {
    if text.len() > LONGEST {
        return None;
    }
    let text = text.to_lowercase();
    let most = (text.chars().count() / 3).max(1);
    known
        .iter()
        .filter(|name| name.len() <= LONGEST)
        .map(|name| (edits(&text, &name.to_lowercase()), *name))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Insertions, deletions, replacements and swaps of neighbours between two texts.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replace = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replace.min(last[j] + 1).min(row[j - 1] + 1);
            let swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if swapped {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_finds_its_name() {
        let known = ["devices", "device-filter", "mig-enabled", "mig-devices"];
        assert_eq!(nearest("devcies", &known), Some("devices"));
        assert_eq!(nearest("Device-Filter", &known), Some("device-filter"));
        assert_eq!(nearest("mig_enabled", &known), Some("mig-enabled"));
        assert_eq!(nearest("gpus", &known), None);
        assert_eq!(nearest("", &known), None);
    }
}
