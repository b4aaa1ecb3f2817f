// SPDX-License-Identifier: Apache-2.0
//! A figure, its budget, and how both are printed.

use std::time::Duration;

use serde_json::{Value, json};

/// What a figure is held against.
#[derive(Clone, Copy)]
pub enum Budget {
    /// At most so many.
    AtMost(f64),
    /// Exactly so many.
    Exactly(f64),
}

/// One measured figure.
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// What it should be.
    pub budget: Budget,
    /// What it is: of times, the median.
    pub measured: f64,
    /// Unit of both.
    pub unit: &'static str,
    /// How often it was measured.
    pub runs: usize,
    /// What the original program takes, where that is known.
    pub original: &'static str,
}

impl Figure {
    fn is_within(&self) -> bool {
        match self.budget {
            Budget::AtMost(most) => self.measured <= most,
            Budget::Exactly(wanted) => self.measured == wanted,
        }
    }

    fn budget(&self) -> String {
        match self.budget {
            Budget::AtMost(most) => format!("<= {most} {}", self.unit),
            Budget::Exactly(wanted) => format!("{wanted} {}", self.unit),
        }
    }

    fn measured(&self) -> String {
        let digits = if self.measured.fract() == 0.0 { 0 } else { 2 };
        format!("{:.digits$} {}", self.measured, self.unit)
    }

    fn verdict(&self) -> &'static str {
        if self.is_within() { "ok" } else { "OVER" }
    }
}

/// The middle one of the times, the slower of two middle ones.
pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

/// The figures as aligned columns.
pub fn table(figures: &[Figure]) -> String {
    let heads = [
        "figure", "budget", "measured", "runs", "verdict", "original",
    ]
    .map(str::to_owned);
    let mut rows = vec![heads];
    rows.extend(figures.iter().map(|figure| {
        [
            figure.name.clone(),
            figure.budget(),
            figure.measured(),
            figure.runs.to_string(),
            figure.verdict().to_owned(),
            figure.original.to_owned(),
        ]
    }));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..6).map(width).collect();
    let line = |row: &[String; 6]| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The figures for programs.
pub fn json(figures: &[Figure]) -> Value {
    let entry = |figure: &Figure| {
        let (kind, budget) = match figure.budget {
            Budget::AtMost(most) => ("at_most", most),
            Budget::Exactly(wanted) => ("exactly", wanted),
        };
        json!({
            "figure": figure.name,
            "budget": { kind: budget },
            "measured": figure.measured,
            "unit": figure.unit,
            "runs": figure.runs,
            "verdict": if figure.is_within() { "ok" } else { "over" },
            "original": figure.original,
        })
    };
    json!({ "version": "v1", "figures": figures.iter().map(entry).collect::<Vec<_>>() })
}
