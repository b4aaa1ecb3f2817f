// SPDX-License-Identifier: Apache-2.0
//! What a mistyped name may have meant.

/// The choices that are most like `text`, best first, at most three; none that is entirely unlike.
pub fn nearest<'a>(text: &str, choices: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let text = text.to_lowercase();
    let distance = |choice: &str| edits(&text, &choice.to_lowercase());
    let mut near: Vec<(usize, &str)> = choices
        .into_iter()
        .map(|choice| (distance(choice), choice))
        .filter(|(distance, choice)| *distance <= choice.len().max(text.len()) / 2)
        .collect();
    near.sort_unstable();
    near.into_iter()
        .take(3)
        .map(|(_, choice)| choice.to_owned())
        .collect()
}

/// Number of characters to insert, delete or replace to get from one text to the other.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typos_find_what_was_meant_and_nonsense_finds_nothing() {
        let names = ["all-1g.10gb", "all-2g.20gb", "all-balanced", "all-disabled"];
        assert_eq!(nearest("all-balnced", names)[0], "all-balanced");
        assert_eq!(nearest("ALL-1G.10GB", names)[0], "all-1g.10gb");
        assert_eq!(nearest("zzzzzz", names), [""; 0]);
        assert_eq!(edits("kitten", "sitting"), 3);
    }
}
