//! The parts that pages of the live view are made of. Boxes, curves, and cells of tables.

use assay_report::require::RequirementState;
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Paragraph, Row, Sparkline};

use crate::live::state::{LiveSecond, LiveState};

pub const OFFERED: Color = Color::Blue;
pub const MEASURED: Color = Color::Cyan;
pub const GOOD: Color = Color::Green;
pub const SLOW: Color = Color::Yellow;
pub const BAD: Color = Color::Red;
pub const QUIET: Color = Color::DarkGray;

/// A box with round corners and a title.
pub fn boxed(title: &str) -> Block<'_> {
    Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(Style::new().fg(QUIET))
        .title(Span::styled(format!(" {title} "), Style::new().add_modifier(Modifier::BOLD)))
}

/// A cell that is flush right.
pub fn right(text: String) -> Cell<'static> {
    Cell::from(Line::from(text).alignment(Alignment::Right))
}

/// The head of a table whose first column has no name.
pub fn head(names: &[&'static str]) -> Row<'static> {
    let cells = names.iter().map(|name| Cell::from(Line::from(*name).alignment(Alignment::Right)));
    Row::new([Cell::from("")].into_iter().chain(cells)).style(Style::new().fg(QUIET))
}

/// One curve over the last seconds, with its name and its last value beside it.
pub struct Curve<'a> {
    pub name: &'a str,
    /// Last value, as text.
    pub last: String,
    pub colour: Color,
    /// Oldest first, one for each column.
    pub values: Vec<u64>,
    /// The value that fills the height; none: the largest that is seen.
    pub top: Option<u64>,
}

/// Draws curves below each other, all as high as there is room.
pub fn draw_curves(frame: &mut Frame, area: Rect, curves: &[Curve]) {
    let rows = Layout::vertical(curves.iter().map(|_| Constraint::Fill(1))).split(area);
    for (curve, area) in curves.iter().zip(rows.iter()) {
        let [words, place] = Layout::horizontal([Constraint::Length(20), Constraint::Fill(1)]).areas(*area);
        let text = format!(" {:<9}{:>9}", curve.name, curve.last);
        frame.render_widget(Paragraph::new(text.fg(curve.colour)), words);
        let skip = curve.values.len().saturating_sub(usize::from(place.width));
        let values = &curve.values[skip..];
        let top = curve.top.unwrap_or_else(|| values.iter().copied().max().unwrap_or(0)).max(1);
        let line = Sparkline::default().data(values).max(top).style(Style::new().fg(curve.colour));
        frame.render_widget(line, place);
    }
}

/// A value of every second that was seen, oldest first.
pub fn of_seconds(state: &LiveState, value: impl Fn(&LiveSecond) -> u64) -> Vec<u64> {
    state.seconds.iter().map(value).collect()
}

/// Mark of a requirement's state, and its colour.
pub fn mark(stands: RequirementState) -> (&'static str, Color) {
    match stands {
        RequirementState::Held => ("✓", GOOD),
        RequirementState::Holding => ("✓", MEASURED),
        RequirementState::Early => ("·", QUIET),
        RequirementState::Undecided => ("?", SLOW),
        RequirementState::Failing => ("!", SLOW),
        RequirementState::Failed => ("✗", BAD),
    }
}

/// Lines for requirements, those that fail first.
pub fn requirement_lines(state: &LiveState) -> Vec<Line<'static>> {
    let mut all: Vec<_> = state.requirements.iter().collect();
    all.sort_by_key(|one| match one.state {
        RequirementState::Failed => 0,
        RequirementState::Failing => 1,
        _ => 2,
    });
    let width = all.iter().map(|one| one.text.chars().count()).max().unwrap_or(0).min(36);
    all.into_iter()
        .map(|one| {
            let (mark, colour) = mark(one.state);
            Line::from(vec![
                Span::styled(
                    format!(" {mark} {:<width$}  {:<16}  ", one.text, one.state.text()),
                    Style::new().fg(colour),
                ),
                Span::raw(one.seen.clone()),
            ])
        })
        .collect()
}
