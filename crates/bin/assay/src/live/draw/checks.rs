//! Page of requirements, errors and messages.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Stylize;
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Wrap};

use super::parts::{BAD, QUIET, boxed, requirement_lines};
use crate::live::state::LiveState;
use assay_base::settings::show::count;

pub fn draw(frame: &mut Frame, area: Rect, state: &LiveState, scrolled: usize) {
    let errors = state.errors();
    let lines_of = |all: usize| (all.max(1) as u16 + 2).min(area.height / 3);
    let [required, wrong, messages] = Layout::vertical([
        Constraint::Length(lines_of(state.requirements.len())),
        Constraint::Length(lines_of(errors.len())),
        Constraint::Fill(1),
    ])
    .areas(area);
    let lines = match state.requirements.is_empty() {
        true => vec![Line::from(" nothing is required; --require 'errors == 0' would").fg(QUIET)],
        false => requirement_lines(state),
    };
    frame.render_widget(Paragraph::new(lines).block(boxed("requirements")), required);

    let total: u64 = errors.iter().map(|(_, n)| n).sum();
    let lines: Vec<Line> = match errors.is_empty() {
        true => vec![Line::from(" no errors").fg(QUIET)],
        false => {
            errors.iter().map(|(name, n)| Line::from(format!(" {:>9}  {name}", count(*n))).fg(BAD)).collect()
        }
    };
    let title = if total > 0 { format!("{} errors", count(total)) } else { "errors".into() };
    frame.render_widget(Paragraph::new(lines).block(boxed(&title)), wrong);

    let mut lines: Vec<Line> =
        state.messages.iter().rev().map(|text| Line::from(format!(" {text}"))).collect();
    if lines.is_empty() {
        lines.push(Line::from(" nothing to report").fg(QUIET));
    }
    lines.push(Line::from(format!(" run directory {}", state.run_dir)).fg(QUIET));
    let text = Paragraph::new(lines).wrap(Wrap { trim: false });
    let scrolled = scrolled.min(usize::from(u16::MAX)) as u16;
    frame.render_widget(text.scroll((scrolled, 0)).block(boxed("messages, newest first")), messages);
}
