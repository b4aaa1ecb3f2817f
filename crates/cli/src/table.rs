// SPDX-License-Identifier: Apache-2.0
//! Aligned columns, as `kubectl` prints them.

use std::fmt;

/// A table: a header and rows of as many cells.
#[derive(Clone, Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
    indent: usize,
}

impl Table {
    /// A table with these column names and no rows.
    pub fn new(header: &[&str]) -> Self {
        Self {
            rows: vec![header.iter().map(|&name| name.to_owned()).collect()],
            indent: 0,
        }
    }

    /// The same, every line indented by so many blanks.
    pub fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    /// Adds a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.to_vec());
    }

    /// Whether there are no rows below the header.
    pub fn is_empty(&self) -> bool {
        self.rows.len() <= 1
    }

    /// Takes a column away.
    pub fn without(mut self, column: &str) -> Self {
        let at = self
            .rows
            .first()
            .and_then(|header| header.iter().position(|name| name == column));
        if let Some(at) = at {
            for row in &mut self.rows {
                row.remove(at);
            }
        }
        self
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &self.rows {
            let cells = row
                .iter()
                .zip(&widths)
                .map(|(cell, &width)| format!("{cell:width$}"));
            let line = " ".repeat(self.indent) + &cells.collect::<Vec<_>>().join("   ");
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let mut table = Table::new(&["GPU", "NAME"]);
        table.row(["0".into(), "H100".into()]);
        table.row(["long one".into(), String::new()]);
        assert_eq!(
            table.to_string(),
            "GPU        NAME\n0          H100\nlong one\n"
        );
        assert_eq!(
            table.without("GPU").indented(2).to_string(),
            "  NAME\n  H100\n\n"
        );
    }
}
