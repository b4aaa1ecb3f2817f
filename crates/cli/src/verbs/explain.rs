// SPDX-License-Identifier: Apache-2.0
//! `slicewright explain`: the texts of `docs/codes.md`.

use config::nearest::nearest;
use units::Code;

use crate::args::ExplainArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::table::Table;

const CODES: &str = include_str!("../../../../docs/codes.md");

/// Prints the section of a code, or a line for each.
///
/// # Errors
/// If there is no such code.
pub fn run(args: &ExplainArgs, output: &mut Output<'_>) -> Result<u8, Failure> {
    let Some(text) = &args.code else {
        let mut table = Table::new(&["CODE", "EXIT", "MEANING"]);
        for &code in Code::ALL {
            let meaning = section(code)
                .lines()
                .find(|line| !line.is_empty())
                .unwrap_or_default();
            table.row([
                code.to_string(),
                code.exit_status().to_string(),
                meaning.to_owned(),
            ]);
        }
        output.text(table)?;
        return Ok(0);
    };
    let code: Code = text.parse().map_err(|_| {
        let names: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let near = nearest(text, &names).map(str::to_owned);
        let message = format!("there is no code {text:?}; `slicewright explain` lists all");
        Failure::with_choices(Code::Usage, message, near.into_iter().collect())
    })?;
    output.text(format_args!("{code}\n\n{}\n", section(code)))?;
    Ok(0)
}

/// The text under a code's heading, without blank lines around.
fn section(code: Code) -> &'static str {
    let mut sections = CODES.split("\n## ").skip(1);
    let found =
        sections.find_map(|section| section.strip_prefix(code.as_str())?.strip_prefix('\n'));
    found.unwrap_or_default().trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_section_with_meaning_remedy_and_exit_code() {
        let headings: Vec<&str> = CODES
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
        let mut sorted = codes.clone();
        sorted.sort_unstable();
        assert_eq!(
            headings, sorted,
            "docs/codes.md has a section per code, by name"
        );
        for &code in Code::ALL {
            let text = section(code);
            let first = text.lines().next().unwrap_or_default();
            assert!(first.ends_with('.'), "{code}: starts with its meaning");
            assert!(text.contains("\nWhat to do: "), "{code}: says what to do");
            assert!(
                text.ends_with(&format!("Exit code: {}", code.exit_status())),
                "{code}"
            );
        }
    }
}
