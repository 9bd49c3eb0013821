//! A comparison in a terminal.

use std::path::Path;

use super::document::{Comparison, MetricGroup, MetricRow, MetricTable, Weight};
use super::gate::GateOutcome;
use super::views::{self, Detail, TextTable};
use crate::document::Mood;
use crate::terminal::{BOLD, CYAN, DIM, GREEN, RED, Style, YELLOW, clean, wrapped};

/// The comparison as text, with a newline at its end.
pub fn render(comparison: &Comparison, report: Option<&Path>, style: &Style) -> String {
    let mut page = TerminalPage::new(style);
    let title = page.paint(BOLD, &clean(&comparison.name));
    page.line(&title);
    if !comparison.title.is_empty() {
        page.paragraph("", "", &comparison.title);
    }
    page.line("");
    page.section("What differs", &views::differences(comparison));
    if comparison.differences.iter().any(|difference| difference.weight == Weight::Meaningless) {
        page.paragraph(
            "!",
            YELLOW,
            "Marked with !: runs were not sent the same requests, and that makes a comparison meaningless.",
        );
        page.line("");
    }
    page.gate(comparison);
    for conclusion in &comparison.verdict {
        let (mark, code) = match conclusion.mood {
            Mood::Good => ("✓", GREEN),
            Mood::Plain => ("·", DIM),
            Mood::Doubtful => ("!", YELLOW),
            Mood::Bad => ("✗", RED),
        };
        page.paragraph(mark, code, &format!("{} {}", conclusion.question, conclusion.text));
    }
    page.line("");
    page.section("The better performer of each scenario", &views::scenarios(comparison));
    page.section("Each against each", &views::pairs(comparison));
    for table in comparison.tables.iter().filter(|table| table.judged) {
        page.metrics(comparison, table);
    }
    page.rest(comparison);
    page.line("");
    if !comparison.experiment.is_empty() {
        page.paragraph("", "", &format!("experiment  {}", comparison.experiment));
    }
    if let Some(report) = report {
        page.paragraph("", "", &format!("report      {}", report.display()));
    }
    page.text
}

/// A page of text that grows.
pub struct TerminalPage {
    style: Style,
    /// Text so far.
    pub text: String,
}

impl TerminalPage {
    pub fn new(style: &Style) -> Self {
        Self { style: Style { width: style.width.max(40), ..*style }, text: String::new() }
    }

    /// In a colour, where there are colours.
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.style.colour && !text.is_empty() {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    pub fn line(&mut self, text: &str) {
        self.text.push_str(text.trim_end());
        self.text.push('\n');
    }

    /// A marked paragraph with a hanging indent.
    pub fn paragraph(&mut self, mark: &str, code: &str, text: &str) {
        let indent = if mark.is_empty() { 0 } else { 2 };
        let head = self.paint(code, mark);
        for (index, line) in wrapped(&clean(text), self.style.width - indent).into_iter().enumerate() {
            match (indent, index) {
                (0, _) => self.line(&line),
                (_, 0) => self.line(&format!("{head} {line}")),
                _ => self.line(&format!("  {line}")),
            }
        }
    }

    /// A heading and a table; nothing, where it has no rows.
    pub fn section(&mut self, heading: &str, grid: &TextTable) {
        if grid.rows.is_empty() {
            return;
        }
        let heading = self.paint(BOLD, &clean(heading));
        self.line(&heading);
        self.grid(grid);
    }

    /// Result of the tolerances: a sentence, and the violations.
    fn gate(&mut self, comparison: &Comparison) {
        let Some(gate) = &comparison.gate else { return };
        let (mark, code) = match gate.outcome {
            GateOutcome::Held => ("✓", GREEN),
            GateOutcome::Regressed | GateOutcome::Invalid => ("✗", RED),
            GateOutcome::NotCompared => ("!", YELLOW),
        };
        self.paragraph(mark, code, &gate.why);
        self.line("");
        let grid = views::gate(comparison, gate, false);
        if !grid.rows.is_empty() {
            self.grid(&grid);
        }
    }

    /// Interval of the difference between two runs, where each side has one that logged its xacts.
    fn within(&mut self, table: &MetricTable) {
        for row in &table.rows {
            for contrast in &row.contrasts {
                if let Some(words) = views::within(views::unit(&row.metric), contrast) {
                    let text =
                        format!("{}, {} against {}: {words}.", row.title, contrast.subject, contrast.base);
                    self.paragraph("·", DIM, &text);
                    self.line("");
                }
            }
        }
    }

    fn metrics(&mut self, comparison: &Comparison, table: &MetricTable) {
        let heading = self.paint(BOLD, &clean(&views::table_name(comparison, table)));
        self.line(&heading);
        for group in [MetricGroup::Speed, MetricGroup::Savings, MetricGroup::Correctness, MetricGroup::Cost] {
            let rows: Vec<&MetricRow> = table.rows.iter().filter(|row| row.group == group).collect();
            if !rows.is_empty() {
                let name = self.paint(CYAN, views::group_name(group));
                self.line(&name);
                let brief = views::metrics(comparison, &rows, Detail::Brief);
                match widths(&brief).iter().sum::<usize>() + 2 * (brief.heads.len() - 1) <= self.style.width {
                    true => self.grid(&brief),
                    false => self.grid(&views::metrics(comparison, &rows, Detail::Terse)),
                }
            }
        }
        self.within(table);
        if !table.errors.is_empty() {
            self.grid(&views::errors(comparison, table));
        }
    }

    /// A table; columns that do not fit go to a block of their own below, with the names before them again.
    fn grid(&mut self, grid: &TextTable) {
        let widths = widths(grid);
        let (mut block, mut used) = (Vec::new(), widths[0]);
        for column in 1..widths.len() {
            if !block.is_empty() && used + 2 + widths[column] > self.style.width {
                self.block(grid, &widths, &std::mem::take(&mut block));
                used = widths[0];
            }
            used += 2 + widths[column];
            block.push(column);
        }
        self.block(grid, &widths, &block);
    }

    fn block(&mut self, grid: &TextTable, widths: &[usize], columns: &[usize]) {
        let row = |cells: &[String]| {
            let mut line = format!("{:<1$}", clean(&cells[0]), widths[0]);
            for column in columns {
                line.push_str(&format!("  {:<1$}", clean(&cells[*column]), widths[*column]));
            }
            line
        };
        let heads = self.paint(DIM, row(&grid.heads).trim_end());
        self.line(&heads);
        for cells in &grid.rows {
            self.line(&row(cells));
        }
        self.line("");
    }

    fn rest(&mut self, comparison: &Comparison) {
        if !comparison.left_out.is_empty() {
            let heading = self.paint(BOLD, "Left out");
            self.line(&heading);
            for cell in &comparison.left_out {
                self.paragraph("✗", RED, &format!("{}: {}", cell.cell, cell.why));
            }
            self.line("");
        }
        for warning in &comparison.warnings {
            self.paragraph("!", YELLOW, warning);
        }
        let legend = format!(
            "↑ more is better, ↓ less is better. Values are means over runs, brackets 95 % \
             intervals of one difference alone. Verdicts of a table hold together: the \
             chance of even one false one is at most {} % (Holm). Effect sizes, intervals of ratios and further phases are in the HTML page.",
            comparison.error_probability * 100.0
        );
        for line in wrapped(&legend, self.style.width) {
            let line = self.paint(DIM, &line);
            self.line(&line);
        }
    }
}

/// Width of each column of a table.
fn widths(grid: &TextTable) -> Vec<usize> {
    let width = |column: usize| {
        let cells = grid.rows.iter().map(|row| row[column].chars().count());
        cells.chain([grid.heads[column].chars().count()]).max().unwrap_or(0)
    };
    (0..grid.heads.len()).map(width).collect()
}
