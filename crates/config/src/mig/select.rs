// SPDX-License-Identifier: Apache-2.0
//! One configuration out of a file.

use units::Code;

use super::{Entry, MigConfigFile};
use crate::diagnostic::{Diagnostic, Problems, Severity};
use crate::nearest::nearest;
use crate::tree::{quoted, shown};

/// So many names are listed when one is not found.
const MOST_NAMES: usize = 100;

/// A MIG config file with all its faults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    name: String,
    file: MigConfigFile,
    diagnostics: Vec<Diagnostic>,
}

/// The configuration to apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Its name.
    pub name: String,
    /// Its entries, at least one.
    pub entries: Vec<Entry>,
    /// What is worth knowing: its own warnings and the file's, and errors of other configurations
    /// as warnings with the code `unselected-config-fault`.
    pub warnings: Vec<Diagnostic>,
}

impl Parsed {
    pub(super) fn new(name: &str, file: MigConfigFile, diagnostics: Vec<Diagnostic>) -> Self {
        Self {
            name: name.to_owned(),
            file,
            diagnostics,
        }
    }

    /// Every fault, in the order of the file. Errors of single configurations know which.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The names of all configurations, faulty or not, in the order of the file.
    pub fn names(&self) -> Vec<&str> {
        self.file.names()
    }

    /// The whole file.
    ///
    /// # Errors
    /// Any configuration has an error.
    pub fn into_file(self) -> Result<MigConfigFile, Problems> {
        match Problems::of(&self.name, &self.diagnostics) {
            Some(problems) => Err(problems),
            None => Ok(self.file),
        }
    }

    /// The configuration of that name; without a name the only one that there is.
    ///
    /// An error of another configuration is a warning here. The original program refuses the whole
    /// file for it.
    ///
    /// # Errors
    /// The file or this configuration has an error, there is no such configuration, or there are
    /// several and none is named.
    pub fn select(&self, name: Option<&str>) -> Result<Selected, Problems> {
        let of_file: Vec<Diagnostic> = self.of_config(None).cloned().collect();
        if let Some(problems) = Problems::of(&self.name, &of_file) {
            return Err(problems);
        }
        let config = match (name, self.file.configs.as_slice()) {
            (Some(name), _) => self.file.get(name).ok_or_else(|| self.not_found(name))?,
            (None, [only]) => only,
            (None, _) => return Err(self.which()),
        };
        let mut relevant: Vec<Diagnostic> = Vec::new();
        for diagnostic in &self.diagnostics {
            let other = diagnostic
                .config
                .as_ref()
                .is_some_and(|of| *of != config.name);
            match (other, diagnostic.is_error()) {
                (false, _) => relevant.push(diagnostic.clone()),
                (true, true) => relevant.push(Diagnostic {
                    severity: Severity::Warning,
                    code: Code::UnselectedConfigFault,
                    ..diagnostic.clone()
                }),
                (true, false) => {}
            }
        }
        let subject = format!("{}: configuration {}", self.name, quoted(&config.name));
        match Problems::of(&subject, &relevant) {
            Some(problems) => Err(problems),
            None => Ok(Selected {
                name: config.name.clone(),
                entries: config.entries.clone(),
                warnings: relevant,
            }),
        }
    }

    fn of_config<'a>(&'a self, config: Option<&'a str>) -> impl Iterator<Item = &'a Diagnostic> {
        self.diagnostics
            .iter()
            .filter(move |diagnostic| diagnostic.config.as_deref() == config)
    }

    fn not_found(&self, name: &str) -> Problems {
        let names = self.names();
        let near = nearest(name, &names).map(|near| format!("; did you mean {}?", shown(near)));
        self.no_config(format!(
            "{} has no configuration {}{} {}",
            self.name,
            quoted(name),
            near.unwrap_or_else(|| ".".to_owned()),
            listed(&names)
        ))
    }

    fn which(&self) -> Problems {
        let names = self.names();
        let why = if names.is_empty() {
            "nothing to apply"
        } else {
            "say which to apply"
        };
        self.no_config(format!("{}: {why}. {}", self.name, listed(&names)))
    }

    fn no_config(&self, message: String) -> Problems {
        Problems {
            code: Code::ConfigNotFound,
            message,
            diagnostics: Vec::new(),
        }
    }
}

fn listed(names: &[&str]) -> String {
    let first: Vec<String> = names
        .iter()
        .take(MOST_NAMES)
        .map(|name| shown(name))
        .collect();
    let more = names.len() - first.len();
    match (first.is_empty(), more) {
        (true, _) => "The file has no configurations.".to_owned(),
        (false, 0) => format!("There are: {}", first.join(", ")),
        (false, _) => format!("There are: {}, and {more} more", first.join(", ")),
    }
}
