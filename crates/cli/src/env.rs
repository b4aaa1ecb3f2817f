// SPDX-License-Identifier: Apache-2.0
//! The environment variables of the process, read once at its edge.

use std::collections::BTreeMap;

/// Environment variables by name. Those that are not UTF-8 are left out.
#[derive(Clone, Debug, Default)]
pub struct Env(BTreeMap<String, String>);

impl Env {
    /// Those of this process.
    pub fn of_process() -> Self {
        let text = |text: std::ffi::OsString| text.into_string().ok();
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((text(name)?, text(value)?)));
        Self(variables.collect())
    }

    /// The value of a variable that is set and not empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0
            .get(name)
            .map(String::as_str)
            .filter(|value| !value.is_empty())
    }

    /// Whether a variable says yes, in the words that mig-parted accepts (Go's `ParseBool`).
    pub fn is_true(&self, name: &str) -> bool {
        matches!(
            self.get(name),
            Some("1" | "t" | "T" | "true" | "TRUE" | "True")
        )
    }
}

impl<const N: usize> From<[(&str, &str); N]> for Env {
    fn from(variables: [(&str, &str); N]) -> Self {
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self(variables.into_iter().map(own).collect())
    }
}
