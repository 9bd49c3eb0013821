//! The comparison as Markdown: for a pull request, or a page.

use super::document::{Comparison, MetricRow};
use super::views::{self, Detail, Grid};

/// The comparison as Markdown.
pub(crate) fn render(comparison: &Comparison) -> String {
    let mut text = format!("# {}\n\n", escaped(&comparison.name));
    if !comparison.title.is_empty() {
        text.push_str(&format!("{}\n\n", escaped(&comparison.title)));
    }
    for answer in &comparison.verdict {
        text.push_str(&format!("- **{}** {}\n", escaped(&answer.question), escaped(&answer.text)));
    }
    text.push('\n');
    section(&mut text, "What differs", &views::differences(comparison));
    section(&mut text, "The better performer of each scenario", &views::scenarios(comparison));
    section(&mut text, "Each against each", &views::pairs(comparison));
    for table in comparison.tables.iter().filter(|table| table.judged) {
        let rows: Vec<&MetricRow> = table.rows.iter().collect();
        section(
            &mut text,
            &views::table_name(comparison, table),
            &views::metrics(comparison, &rows, Detail::Full),
        );
        if !table.errors.is_empty() {
            grid(&mut text, &views::errors(comparison, table));
        }
    }
    if !comparison.left_out.is_empty() {
        text.push_str("## Left out\n\n");
        for cell in &comparison.left_out {
            text.push_str(&format!("- `{}`: {}\n", cell.cell.replace('`', "'"), escaped(&cell.why)));
        }
        text.push('\n');
    }
    for warning in &comparison.warnings {
        text.push_str(&format!("> {}\n\n", escaped(warning)));
    }
    text.push_str(&format!(
        "↑ more is better, ↓ less is better. Values are mean ± standard deviation over runs; brackets hold 95 % \
         intervals of one difference alone; verdicts hold together for a table, with an error probability of {} % \
         (Holm).\n",
        comparison.error_probability * 100.0
    ));
    text
}

fn section(text: &mut String, heading: &str, table: &Grid) {
    if table.rows.is_empty() {
        return;
    }
    text.push_str(&format!("## {}\n\n", escaped(heading)));
    grid(text, table);
}

fn grid(text: &mut String, table: &Grid) {
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

/// Text that Markdown and HTML leave as it is.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => {
                escaped.push('\\');
                escaped.push(c);
            }
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(escaped("<b>|a_b\n"), "&lt;b>\\|a\\_b ");
    }
}
