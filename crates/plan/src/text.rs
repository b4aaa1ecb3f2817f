// SPDX-License-Identifier: Apache-2.0
//! Layouts as a person types them.

use std::collections::BTreeMap;

use units::{Code, ProfileName};

use crate::refusal::Refusal;
use crate::wish::GpuWish;

/// `2x1g.10gb,1x3g.40gb`: what [`parse_layout`] reads; `empty` for no slices.
pub fn layout_text(counts: &BTreeMap<ProfileName, u32>) -> String {
    let parts: Vec<String> = counts
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(profile, count)| format!("{count}x{profile}"))
        .collect();
    if parts.is_empty() {
        return "empty".into();
    }
    parts.join(",")
}

/// Reads a layout as it is typed: `3g.40gb,2x1g.10gb` (slices, with a count where there are
/// several), `empty` (MIG on without slices) or `off` (MIG off).
///
/// # Errors
/// [`Code::Usage`] with the part that is wrong and what is allowed.
pub fn parse_layout(text: &str) -> Result<GpuWish, Refusal> {
    match text.trim() {
        "off" => return Ok(GpuWish::Off),
        "empty" => return Ok(GpuWish::Slices(BTreeMap::new())),
        _ => {}
    }
    let mut counts: BTreeMap<ProfileName, u32> = BTreeMap::new();
    for part in split(text) {
        let (count, profile) = parse_part(part)?;
        let sum = counts.entry(profile).or_insert(0);
        *sum = sum.saturating_add(count);
    }
    Ok(GpuWish::Slices(counts))
}

/// Splits at commas, but not at those within the attributes of a profile (`1g.24gb+gfx,me`).
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (comma, _) in text.match_indices(',') {
        let next = text[comma + 1..].trim_start();
        if next.starts_with(|first: char| first.is_ascii_alphabetic()) {
            continue;
        }
        parts.push(text[start..comma].trim());
        start = comma + 1;
    }
    parts.push(text[start..].trim());
    parts
}

fn parse_part(part: &str) -> Result<(u32, ProfileName), Refusal> {
    let wrong = |reason: &str| {
        Refusal::new(
            Code::Usage,
            format!(
                "{part:?} is not a part of a layout: {reason} \
                 (a layout looks like 3g.40gb,2x1g.10gb, or is the word off or empty)"
            ),
        )
    };
    // The x of a count, not that of `+gfx`: a profile has a dot before it.
    let counted = part.split_once('x');
    let (count, profile) = match counted.filter(|(count, _)| !count.contains('.')) {
        None => (1, part),
        Some((count, profile)) => {
            let count: Option<u32> = count.parse().ok();
            let count = count.filter(|count| (1..=64).contains(count));
            let count = count.ok_or_else(|| wrong("the count is not a number from 1 to 64"))?;
            (count, profile)
        }
    };
    let read = profile.parse::<ProfileName>();
    let profile = read.map_err(|error| match ProfileName::meant_by(profile) {
        Some(meant) => wrong(&format!("{}; did you mean {meant}?", error.reason)),
        None => wrong(error.reason),
    })?;
    Ok((count, profile))
}

/// `1 GPU is`, `2 GPUs are`.
pub(crate) fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// `1, 2, 3`.
pub(crate) fn list(items: &[impl ToString]) -> String {
    let items: Vec<String> = items.iter().map(ToString::to_string).collect();
    items.join(", ")
}
