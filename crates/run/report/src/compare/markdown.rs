//! The comparison as Markdown: for a pull request, or a page.

use super::document::{Comparison, MetricRow, MetricTable};
use super::gate::GateOutcome;
use super::views::{self, Detail, TextTable};
use assay_base::quote::markdown::{escaped, in_element};

/// The comparison as Markdown: what matters first, everything else folded.
pub fn render(comparison: &Comparison) -> String {
    let mut text = format!("## {}\n\n", escaped(&comparison.name));
    if !comparison.title.is_empty() {
        text.push_str(&format!("{}\n\n", escaped(&comparison.title)));
    }
    gate(&mut text, comparison);
    if !comparison.incomparable.is_empty() {
        text.push_str("> [!CAUTION]\n> **Not comparable.** ");
        text.push_str(&escaped(&comparison.incomparable.join(" ")));
        text.push_str("\n\n");
    }
    section(&mut text, "What differs", &views::differences(comparison));
    for conclusion in &comparison.verdict {
        text.push_str(&format!("- **{}** {}\n", escaped(&conclusion.question), escaped(&conclusion.text)));
    }
    text.push('\n');
    section(&mut text, "The better performer of each scenario", &views::scenarios(comparison));
    section(&mut text, "Headlines", &views::headlines(comparison));
    folded(
        &mut text,
        "Each against each",
        |text| grid(text, &views::pairs(comparison)),
        comparison.subjects.len() > 2,
    );
    for table in comparison.tables.iter().filter(|table| table.judged) {
        let rows: Vec<&MetricRow> = table.rows.iter().collect();
        let name = format!("Every metric of {}", views::table_name(comparison, table));
        let fill = |text: &mut String| {
            grid(text, &views::metrics(comparison, &rows, Detail::Full));
            for line in within(table) {
                text.push_str(&format!("{}\n\n", escaped(&line)));
            }
            if !table.errors.is_empty() {
                grid(text, &views::errors(comparison, table));
            }
        };
        folded(&mut text, &name, fill, !rows.is_empty());
    }
    left_out(&mut text, comparison);
    for warning in &comparison.warnings {
        text.push_str(&format!("> {}\n\n", escaped(warning)));
    }
    text.push_str(&format!(
        "↑ more is better, ↓ less is better. Values are means over runs (with ± standard deviation where folded); brackets \
         hold 95 % intervals of one difference alone; verdicts hold together for a table, with an error probability of {} % \
         (Holm).\n",
        comparison.error_probability * 100.0
    ));
    text
}

/// Result of the tolerances: a sentence, the violations, and all checks folded.
fn gate(text: &mut String, comparison: &Comparison) {
    let Some(gate) = &comparison.gate else { return };
    let (kind, word) = match gate.outcome {
        GateOutcome::Held => ("NOTE", "Within the tolerance."),
        GateOutcome::Regressed => ("CAUTION", "Regressed."),
        GateOutcome::Invalid => ("CAUTION", "Not known."),
        GateOutcome::NotCompared => ("WARNING", "Not compared."),
    };
    text.push_str(&format!("> [!{kind}]\n> **{word}** {}\n\n", escaped(&gate.why)));
    let shown = views::gate(comparison, gate, false);
    let all = views::gate(comparison, gate, true);
    if !shown.rows.is_empty() {
        grid(text, &shown);
    }
    let rest = all.rows.len() > shown.rows.len();
    folded(text, "Everything that was held against a tolerance", |text| grid(text, &all), rest);
}

fn within(table: &MetricTable) -> Vec<String> {
    let rows = table.rows.iter().flat_map(|row| row.contrasts.iter().map(move |contrast| (row, contrast)));
    rows.filter_map(|(row, contrast)| {
        let words = views::within(views::unit(&row.metric), contrast)?;
        Some(format!("{}, {} against {}: {words}.", row.title, contrast.subject, contrast.base))
    })
    .collect()
}

fn left_out(text: &mut String, comparison: &Comparison) {
    let cells = &comparison.left_out;
    let fill = |text: &mut String| {
        for cell in cells {
            text.push_str(&format!("- {}: {}\n", escaped(&cell.cell), escaped(&cell.why)));
        }
        text.push('\n');
    };
    folded(text, &format!("Left out: {}", cells.len()), fill, !cells.is_empty());
}

/// Section that opens on a click; Markdown inside needs the empty lines around it.
fn folded(text: &mut String, heading: &str, fill: impl FnOnce(&mut String), wanted: bool) {
    if wanted {
        text.push_str(&format!("<details><summary>{}</summary>\n\n", in_element(heading)));
        fill(text);
        text.push_str("</details>\n\n");
    }
}

fn section(text: &mut String, heading: &str, table: &TextTable) {
    if table.rows.is_empty() {
        return;
    }
    text.push_str(&format!("### {}\n\n", escaped(heading)));
    grid(text, table);
}

fn grid(text: &mut String, table: &TextTable) {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| escaped(cell)).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    text.push_str(&line(&table.heads));
    text.push_str(&format!("|{}\n", "---|".repeat(table.heads.len())));
    for row in &table.rows {
        text.push_str(&line(row));
    }
    text.push('\n');
}
