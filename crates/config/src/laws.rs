// SPDX-License-Identifier: Apache-2.0
//! What holds for every text, however hostile: the bodies of property tests and fuzz targets.

use crate::check::check;
use crate::diagnostic::Diagnostic;
use crate::mig::{Format, MigConfigFile};
use crate::{checkpoint, deviceplugin, hooks, mig};

/// Longest message, in bytes, that any input brings about.
const LONGEST_MESSAGE: usize = 2000;

/// Whether the laws hold for a text: nothing panics, places are within the text, messages are short
/// single lines, and what is accepted prints and reads back the same.
///
/// # Errors
/// The law that does not hold.
pub fn of_text(text: &str) -> Result<(), String> {
    let report = check("file", text);
    report
        .diagnostics
        .iter()
        .try_for_each(|fault| fault_is_sane(fault, text))?;
    let parsed = mig::parse("file", text);
    parsed
        .diagnostics()
        .iter()
        .try_for_each(|fault| fault_is_sane(fault, text))?;
    for name in parsed
        .names()
        .into_iter()
        .take(4)
        .map(Some)
        .chain([None, Some("x")])
    {
        match parsed.select(name) {
            Ok(selected) if selected.entries.is_empty() => {
                return Err(format!("{name:?} is selected and has no entries"));
            }
            Ok(selected) if selected.warnings.iter().any(Diagnostic::is_error) => {
                return Err(format!("{name:?} is selected in spite of an error"));
            }
            Err(problems) if problems.message.chars().any(char::is_control) => {
                return Err(format!("control characters in {:?}", problems.message));
            }
            _ => {}
        }
    }
    if let Ok(file) = parsed.into_file() {
        of_mig_config(&file)?;
    }
    if let Ok(state) = checkpoint::parse("file", text) {
        of_checkpoint(&state)?;
    }
    let _ = hooks::parse("file", text);
    let _ = deviceplugin::parse("file", text);
    Ok(())
}

fn fault_is_sane(fault: &Diagnostic, text: &str) -> Result<(), String> {
    let line = fault.to_string();
    if line.len() > LONGEST_MESSAGE || line.chars().any(char::is_control) {
        return Err(format!(
            "a message is long or has control characters: {line:?}"
        ));
    }
    let lines = text.split(['\n', '\r']).count();
    if fault.at.line == 0 || fault.at.column == 0 || fault.at.line > lines + 1 {
        return Err(format!("{line} is not in the text of {lines} lines"));
    }
    Ok(())
}

/// Whether a MIG config prints and reads back the same in both notations.
///
/// # Errors
/// What differs.
pub fn of_mig_config(file: &MigConfigFile) -> Result<(), String> {
    for format in [Format::Yaml, Format::Json] {
        let text = mig::print(file, format);
        let again = mig::parse("printed", &text).into_file();
        if again.as_ref() != Ok(file) {
            return Err(format!("printed as\n{text}\nand read back as {again:?}"));
        }
    }
    Ok(())
}

/// Whether a checkpoint prints and reads back the same.
///
/// # Errors
/// What differs.
pub fn of_checkpoint(state: &checkpoint::Checkpoint) -> Result<(), String> {
    let text = state.print();
    let again = checkpoint::parse("printed", &text);
    if again.as_ref() != Ok(state) {
        return Err(format!("printed as {text} and read back as {again:?}"));
    }
    Ok(())
}
