// SPDX-License-Identifier: Apache-2.0
//! `slicewright config check`: every fault of configuration files, with the text around it.

use std::fmt::Write;

use config::check::{Report, check};
use config::manifest::Kind;
use config::{Diagnostic, Severity};
use serde::Serialize;
use units::Code;

use crate::args::CheckArgs;
use crate::failure::{Failure, Told};
use crate::files;
use crate::output::Output;

/// Longer lines are not shown: the place says where to look.
const LONGEST_LINE: usize = 160;

/// What programs get. Version 1.
#[derive(Serialize)]
struct CheckReport {
    version: &'static str,
    files: Vec<FileReport>,
}

/// One file: what is in it, or why it cannot be read.
#[derive(Serialize)]
struct FileReport {
    file: String,
    valid: bool,
    parts: Vec<PartReport>,
    diagnostics: Vec<Diagnostic>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Told>,
}

/// One configuration: the key in a ConfigMap, and what it is.
#[derive(Serialize)]
struct PartReport {
    key: Option<String>,
    kind: Kind,
}

impl FileReport {
    fn new(file: &str, checked: Result<Report, Told>) -> Self {
        let valid = checked.as_ref().is_ok_and(|report| !report.has_errors());
        let (parts, diagnostics, error) = match checked {
            Ok(report) => (report.parts, report.diagnostics, None),
            Err(told) => (Vec::new(), Vec::new(), Some(told)),
        };
        let parts = parts
            .into_iter()
            .map(|(key, kind)| PartReport { key, kind })
            .collect();
        Self {
            file: file.to_owned(),
            valid,
            parts,
            diagnostics,
            error,
        }
    }
}

/// Checks the files: 0 valid, perhaps with warnings; 2 one has errors.
///
/// # Errors
/// If the result cannot be written.
pub fn run(args: &CheckArgs, output: &mut Output<'_>) -> Result<u8, Failure> {
    let mut checked = CheckReport {
        version: "v1",
        files: Vec::new(),
    };
    for file in &args.files {
        let name = files::shown(file);
        let result = match files::read(file, Code::ConfigInvalid) {
            Ok(text) => {
                let report = check(name, &text);
                if !output.is_machine() {
                    output.text(shown(name, &report, &text))?;
                }
                Ok(report)
            }
            Err(Failure::Told(told)) => {
                output.tell(&told);
                Err(told)
            }
            Err(failure) => return Err(failure),
        };
        checked.files.push(FileReport::new(name, result));
    }
    if output.is_machine() {
        output.machine(&checked)?;
    }
    let valid = checked.files.iter().all(|file| file.valid);
    Ok(if valid {
        0
    } else {
        Code::ConfigInvalid.exit_status()
    })
}

fn shown(file: &str, report: &Report, text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown: String = report
        .diagnostics
        .iter()
        .map(|diagnostic| of_diagnostic(diagnostic, &lines))
        .collect();
    let kinds: Vec<String> = report
        .parts
        .iter()
        .map(|(key, kind)| match key {
            None => kind.to_string(),
            Some(key) => format!("{kind} in {key}"),
        })
        .collect();
    let kinds = kinds.join(", ");
    let count = |severity| {
        report
            .diagnostics
            .iter()
            .filter(|d| d.severity == severity)
            .count()
    };
    let _ = match (count(Severity::Error), count(Severity::Warning)) {
        (0, 0) => writeln!(shown, "{file}: valid ({kinds})"),
        (0, warnings) => writeln!(shown, "{file}: valid ({kinds}), warnings: {warnings}"),
        (errors, warnings) => {
            writeln!(
                shown,
                "{file}: not valid ({kinds}), errors: {errors}, warnings: {warnings}"
            )
        }
    };
    shown
}

/// The place, the fault, and the line with a mark below it.
fn of_diagnostic(diagnostic: &Diagnostic, lines: &[&str]) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let path = match diagnostic.path.as_str() {
        "" => String::new(),
        path => format!("{path}: "),
    };
    let mut shown = format!(
        "{}:{}: {severity}[{}]: {path}{}\n",
        diagnostic.file,
        diagnostic.at,
        diagnostic.code,
        diagnostic.message()
    );
    let number = diagnostic.at.line;
    let line = number.checked_sub(1).and_then(|at| lines.get(at));
    if let Some(line) = line.filter(|line| line.len() <= LONGEST_LINE) {
        // A tab stays one, so that the mark stands below its character.
        let blank = |character: char| if character == '\t' { '\t' } else { ' ' };
        let before = diagnostic.at.column.saturating_sub(1);
        let indent: String = line.chars().take(before).map(blank).collect();
        let _ = writeln!(shown, "{number:>5} | {line}\n      | {indent}^");
    }
    shown
}
