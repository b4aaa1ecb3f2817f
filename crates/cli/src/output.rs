// SPDX-License-Identifier: Apache-2.0
//! Where a command prints, and in which form.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use serde::Serialize;
use units::Code;

use crate::args::Format;
use crate::failure::{Failure, Told};

/// Standard output and standard error with the form that was asked for.
pub struct Output<'a> {
    /// Results.
    pub out: &'a mut dyn Write,
    /// Errors, warnings and progress.
    pub err: &'a mut dyn Write,
    /// The form, if one was asked for.
    pub format: Option<Format>,
}

/// What a program gets where there is no report.
#[derive(Serialize)]
struct ErrorReport<'a> {
    version: &'static str,
    error: &'a Told,
}

impl Output<'_> {
    /// Whether a program reads the output.
    pub fn is_machine(&self) -> bool {
        matches!(self.format, Some(Format::Json | Format::Yaml))
    }

    /// Whether people asked for more columns.
    pub fn is_wide(&self) -> bool {
        self.format == Some(Format::Wide)
    }

    /// Prints a value for programs: YAML if that was asked for, else JSON.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn machine<T: Serialize>(&mut self, value: &T) -> Result<(), Failure> {
        let text = match self.format {
            Some(Format::Yaml) => serde_saphyr::to_string(value).map_err(io::Error::other)?,
            _ => serde_json::to_string_pretty(value).map_err(io::Error::other)? + "\n",
        };
        self.write(&text)
    }

    /// Prints text for people.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn text(&mut self, text: impl Display) -> Result<(), Failure> {
        self.write(&text.to_string())
    }

    /// That nobody reads any more stops nothing: a change goes on, and its exit status stays.
    fn write(&mut self, text: &str) -> Result<(), Failure> {
        match self.out.write_all(text.as_bytes()) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            written => Ok(written?),
        }
    }

    /// Prints a line beside the result. That nobody reads it stops nothing.
    pub fn note(&mut self, line: impl Display) {
        let _ = writeln!(self.err, "{line}");
    }

    /// Prints a warning beside the result.
    pub fn warn(&mut self, code: Code, message: impl Display) {
        self.note(format_args!("warning[{code}]: {message}"));
    }

    /// Prints a failure: text for people, and an object as the result for programs.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn failure(&mut self, told: &Told) -> Result<(), Failure> {
        if self.is_machine() {
            self.machine(&ErrorReport {
                version: "v1",
                error: told,
            })?;
        }
        self.tell(told);
        Ok(())
    }

    /// Prints a failure for people.
    pub fn tell(&mut self, told: &Told) {
        self.note(format_args!("error[{}]: {}", told.code, told.message));
        if !told.choices.is_empty() {
            self.note("possible instead:");
            for choice in &told.choices {
                self.note(format_args!("  {choice}"));
            }
        }
        self.note(format_args!("see: slicewright explain {}", told.code));
    }
}
