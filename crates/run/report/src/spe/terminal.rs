//! An evaluation in a terminal.

use std::path::Path;

use super::document::Evaluation;
use super::views;
use crate::compare::terminal::TerminalPage;
use crate::compare::views::TextTable;
use crate::document::Mood;
use crate::format::{self, count};
use crate::terminal::{BOLD, DIM, GREEN, RED, Style, YELLOW, clean};

/// Groups of differing responses that are shown.
const MOST_GROUPS: usize = 12;

/// The evaluation as text, with a newline at its end.
pub(super) fn render(evaluation: &Evaluation, report: Option<&Path>, style: &Style) -> String {
    let mut page = TerminalPage::new(style);
    let title = page.paint(BOLD, &format!("Evaluation of {}", clean(&evaluation.evaluation)));
    page.line(&title);
    page.line("");
    for conclusion in &evaluation.verdict {
        let (mark, code) = match conclusion.mood {
            Mood::Good => ("✓", GREEN),
            Mood::Plain => ("·", DIM),
            Mood::Doubtful => ("!", YELLOW),
            Mood::Bad => ("✗", RED),
        };
        page.paragraph(mark, code, &format!("{} {}", conclusion.question, conclusion.text));
    }
    page.line("");
    for table in views::tables(evaluation) {
        let heads = std::iter::once(table.first).chain(table.heads).map(str::to_owned).collect();
        let rows = table.rows.into_iter().map(|(name, cells)| std::iter::once(name).chain(cells).collect());
        page.section(table.title, &TextTable { heads, rows: rows.collect() });
    }
    differing(&mut page, evaluation);
    for warning in &evaluation.warnings {
        page.paragraph("!", YELLOW, warning);
    }
    let legend = "Response time is connection, first byte and transfer. Brackets hold 95 % intervals, from stretches of \
                  consecutive requests; differences are taken request by request.";
    page.paragraph("", "", legend);
    if let Some(report) = report {
        page.paragraph("", "", &format!("report      {}", report.display()));
    }
    page.text
}

fn differing(page: &mut TerminalPage, evaluation: &Evaluation) {
    if evaluation.differing.is_empty() {
        return;
    }
    let heading = page.paint(BOLD, "What was not the Collector's response");
    page.line(&heading);
    for group in evaluation.differing.iter().take(MOST_GROUPS) {
        let share = format::percent(Some(group.share));
        let name = views::name_of(group);
        let text =
            format!("{}: {name}, {} times ({share} % of its requests)", group.target, count(group.count));
        page.paragraph("✗", RED, &text);
        if let Some(example) = group.examples.first() {
            let line = clean(&format!("  {} {} (request {})", example.method, example.url, example.request));
            page.line(&line);
        }
    }
    if evaluation.differing.len() > MOST_GROUPS {
        let more = evaluation.differing.len() - MOST_GROUPS;
        page.paragraph("·", DIM, &format!("{more} more kinds are in the HTML page and the JSON document."));
    }
    page.line("");
}
