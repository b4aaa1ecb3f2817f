// SPDX-License-Identifier: Apache-2.0
//! Profile names.

use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The attribute part of a profile name: nothing, `+a,b` or `-a`.
///
/// An attribute is `[A-Za-z][A-Za-z0-9.]*` without a trailing dot (source: mig-parted's parser).
/// Known to drivers are `+me` (media engines), `+me.all`, `+gfx` (graphics) and `-me` (no media
/// engines); others are legal in the grammar. Their order has no meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attributes {
    /// None.
    #[default]
    None,
    /// Extras.
    Plus(BTreeSet<String>),
    /// Omissions.
    Minus(BTreeSet<String>),
}

impl Attributes {
    /// Exactly one extra, such as `me`.
    pub fn plus(name: &str) -> Self {
        Self::Plus(BTreeSet::from([name.to_owned()]))
    }

    /// Exactly one omission, such as `me`.
    pub fn minus(name: &str) -> Self {
        Self::Minus(BTreeSet::from([name.to_owned()]))
    }
}

impl fmt::Display for Attributes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, names) = match self {
            Self::None => return Ok(()),
            Self::Plus(names) => ('+', names),
            Self::Minus(names) => ('-', names),
        };
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        write!(f, "{sign}{}", names.join(","))
    }
}

/// What a slice is called: `1g.10gb`, `1c.3g.40gb`, `1g.10gb+me`, `1g.24gb-me`.
///
/// Grammar: `[<C>c.]<G>g.<GB>gb[+attr[,attr...] | -attr[,attr...]]` (source: mig-parted). The
/// value is always canonical: `1c.1g.5gb` is `1g.5gb`, since a compute instance of full size has
/// no prefix, and leading zeros are dropped. Whether a board offers it is for `geometry` to say.
///
/// Order is the one in which profiles are printed: fewest slices first, then least memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProfileName {
    gpu_slices: u8,
    memory_gb: u16,
    attributes: Attributes,
    /// Compute slices, at least 1 and at most `gpu_slices`.
    compute_slices: u8,
}

/// Why a text is not a profile name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a profile name: {reason} \
     (a profile looks like 1g.10gb, 1c.3g.40gb, 1g.10gb+me or 1g.24gb-me)"
)]
pub struct ParseProfileError {
    /// The text found.
    pub text: String,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl ProfileName {
    /// The profile of a whole GPU instance with `gpu_slices` (at least 1) and `memory_gb`.
    pub fn whole(gpu_slices: u8, memory_gb: u16, attributes: Attributes) -> Self {
        Self {
            gpu_slices,
            memory_gb,
            attributes,
            compute_slices: gpu_slices,
        }
    }

    /// The same GPU instance with a compute instance of `compute_slices`; `None` if that is 0 or
    /// more than the GPU instance has.
    pub fn with_compute(&self, compute_slices: u8) -> Option<Self> {
        let fits = (1..=self.gpu_slices).contains(&compute_slices);
        fits.then(|| Self {
            compute_slices,
            ..self.clone()
        })
    }

    /// The profile that somebody meant who wrote it in capitals, as in a label or as in a resource
    /// name: `1G.10GB`, `1g.10gb.me`, `mig-1g.10gb`.
    pub fn meant_by(text: &str) -> Option<Self> {
        let usual = text.trim().to_lowercase();
        let usual = usual.trim_start_matches("mig-").replacen("gb.", "gb+", 1);
        usual.parse().ok()
    }

    /// The profile of the GPU instance: without the compute prefix.
    pub fn gpu_instance(&self) -> Self {
        Self {
            compute_slices: self.gpu_slices,
            ..self.clone()
        }
    }

    /// Compute slices of the GPU instance: the `3` of `1c.3g.40gb`.
    pub fn gpu_slices(&self) -> u8 {
        self.gpu_slices
    }

    /// Compute slices of the compute instance: the `1` of `1c.3g.40gb`, the `3` of `3g.40gb`.
    pub fn compute_slices(&self) -> u8 {
        self.compute_slices
    }

    /// Whether the compute instance is smaller than its GPU instance.
    pub fn is_partial(&self) -> bool {
        self.compute_slices != self.gpu_slices
    }

    /// The memory that the name says, in rounded GB: a label, not a measure. The same profile has
    /// had different figures on different drivers.
    pub fn memory_gb(&self) -> u16 {
        self.memory_gb
    }

    /// The attributes.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// The form for label values, resource names and config names, which cannot hold `+` or `,`:
    /// `1g.10gb.me`. A `-` stays.
    pub fn label_form(&self) -> String {
        self.to_string().replace(['+', ','], ".")
    }
}

impl fmt::Display for ProfileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_partial() {
            write!(f, "{}c.", self.compute_slices)?;
        }
        write!(
            f,
            "{}g.{}gb{}",
            self.gpu_slices, self.memory_gb, self.attributes
        )
    }
}

impl Ord for ProfileName {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |p: &Self| (p.gpu_slices, p.memory_gb, p.compute_slices);
        key(self)
            .cmp(&key(other))
            .then_with(|| self.attributes.cmp(&other.attributes))
    }
}

impl PartialOrd for ProfileName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl FromStr for ProfileName {
    type Err = ParseProfileError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map_err(|reason| ParseProfileError {
            text: text.to_owned(),
            reason,
        })
    }
}

impl TryFrom<String> for ProfileName {
    type Error = ParseProfileError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ProfileName> for String {
    fn from(name: ProfileName) -> Self {
        name.to_string()
    }
}

fn parse(text: &str) -> Result<ProfileName, &'static str> {
    let (sizes, attributes) = match text.find(['+', '-']) {
        None => (text, Attributes::None),
        Some(at) => {
            let names = parse_attributes(&text[at + 1..])?;
            let plus = text.as_bytes()[at] == b'+';
            let attributes = if plus {
                Attributes::Plus(names)
            } else {
                Attributes::Minus(names)
            };
            (&text[..at], attributes)
        }
    };
    let mut parts: Vec<&str> = sizes.split('.').collect();
    let memory_gb = parts.pop().and_then(|part| part.strip_suffix("gb"));
    let memory_gb = number(memory_gb.ok_or("it does not end in a memory size such as 10gb")?)?;
    let gpu_slices = parts.pop().and_then(|part| part.strip_suffix('g'));
    let gpu_slices = number(gpu_slices.ok_or("it has no slice count such as 1g")?)?;
    let compute_slices = match parts.pop() {
        None => gpu_slices,
        Some(part) => number(
            part.strip_suffix('c')
                .ok_or("only a compute part such as 1c may come first")?,
        )?,
    };
    if !parts.is_empty() {
        return Err("it has too many parts");
    }
    let gpu_slices = u8::try_from(gpu_slices).map_err(|_| "the slice count is too large")?;
    let compute_slices =
        u8::try_from(compute_slices).map_err(|_| "the compute part is too large")?;
    if gpu_slices == 0 || compute_slices == 0 {
        return Err("a slice count of 0 is nothing");
    }
    if compute_slices > gpu_slices {
        return Err("its compute part is larger than its GPU instance");
    }
    Ok(ProfileName {
        gpu_slices,
        memory_gb,
        attributes,
        compute_slices,
    })
}

fn number(digits: &str) -> Result<u16, &'static str> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a count or size is not a whole number");
    }
    digits.parse().map_err(|_| "a count or size is too large")
}

fn parse_attributes(text: &str) -> Result<BTreeSet<String>, &'static str> {
    let mut names = BTreeSet::new();
    for name in text.split(',') {
        let well_formed = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '.')
            && !name.ends_with('.');
        if !well_formed {
            return Err("an attribute is not a word such as me, me.all or gfx");
        }
        if !names.insert(name.to_owned()) {
            return Err("an attribute stands twice");
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_canonical() {
        for (text, canonical) in [
            ("1g.10gb", "1g.10gb"),
            ("1c.1g.5gb", "1g.5gb"),
            ("01g.5gb", "1g.5gb"),
            ("1c.3g.40gb", "1c.3g.40gb"),
            ("1g.10gb+me", "1g.10gb+me"),
            ("1g.24gb+me.all", "1g.24gb+me.all"),
            ("1g.24gb+me,gfx", "1g.24gb+gfx,me"),
            ("2g.48gb-me", "2g.48gb-me"),
            ("1g.0gb", "1g.0gb"),
        ] {
            let name: ProfileName = text.parse().unwrap();
            assert_eq!(name.to_string(), canonical);
            assert_eq!(canonical.parse::<ProfileName>().unwrap(), name);
        }
    }

    #[test]
    fn malformed_names_are_refused_with_a_reason() {
        for text in [
            "",
            "1g",
            "g.5gb",
            "1G.5GB",
            "1g.5gb.me",
            "mig-1g.5gb",
            "5c.3g.20gb",
            "0g.0gb",
            "1g.5gb+",
            "1g.5gb+me,me",
            "1g.5gb+me-me",
            "1g.5gb+me.",
            "1g.5gb +me",
            " 1g.5gb",
            "1g.99999999gb",
            "300g.5gb",
            "1c.1c.1g.5gb",
            "1g.5gb+1",
            "1g.-5gb",
        ] {
            let error = text.parse::<ProfileName>().unwrap_err();
            assert!(
                error.to_string().contains("is not a profile name"),
                "{error}"
            );
        }
    }

    #[test]
    fn label_form_replaces_what_labels_cannot_hold() {
        let name: ProfileName = "1g.24gb+me.all".parse().unwrap();
        assert_eq!(name.label_form(), "1g.24gb.me.all");
        let name: ProfileName = "1g.24gb-me".parse().unwrap();
        assert_eq!(name.label_form(), "1g.24gb-me");
    }
}
