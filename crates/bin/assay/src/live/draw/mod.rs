//! The live view, as it is drawn. A page at a time, made for 80 × 24 and better when larger.

mod checks;
mod machine;
mod overview;
mod parts;
mod phases;
mod times;

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Paragraph, Wrap};

use super::line::line;
use super::state::LiveState;
use super::ui::{Ui, ViewPage};
use assay_base::settings::show::count;
use parts::{QUIET, SLOW, boxed};

/// Smallest screen the boxes fit on.
const SMALLEST: (u16, u16) = (72, 22);
/// Columns from which on the footer names all keys beside the pages of an experiment.
const ROOMY: u16 = 90;

/// Draws the view of a run.
pub fn draw(frame: &mut Frame, state: &LiveState, ui: &Ui) {
    let state = ui.paused.as_deref().unwrap_or(state);
    let area = frame.area();
    if too_small(area) {
        let text = vec![Line::from(title_words(state).bold()), Line::from(line(state))];
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), area);
        return;
    }
    let [title, body, footer] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)]).areas(area);
    draw_title(frame, title, state);
    draw_page(frame, body, state, ui);
    draw_footer(frame, footer, state, ui);
    draw_help(frame, body, ui);
}

/// True where the boxes do not fit.
pub fn too_small(area: Rect) -> bool {
    area.width < SMALLEST.0 || area.height < SMALLEST.1
}

/// Draws a page of a run.
pub fn draw_page(frame: &mut Frame, area: Rect, state: &LiveState, ui: &Ui) {
    match ui.page() {
        ViewPage::Overview => overview::draw(frame, area, state),
        ViewPage::Phases => phases::draw(frame, area, state, ui.scrolled),
        ViewPage::Times => times::draw(frame, area, state),
        ViewPage::Machine => machine::draw(frame, area, state),
        ViewPage::Checks => checks::draw(frame, area, state, ui.scrolled),
        // That is no page of a run.
        ViewPage::Cells => {}
    }
}

fn title_words(state: &LiveState) -> String {
    let rehearsal = if state.header.rehearsal { ", rehearsal" } else { "" };
    format!("{} → {}{rehearsal}", state.header.workload, state.header.target)
}

fn draw_title(frame: &mut Frame, area: Rect, state: &LiveState) {
    let header = &state.header;
    let left = Line::from(vec![" Assay ".reversed().bold(), " ".into(), title_words(state).bold()]);
    let plural = |n: u32| if n == 1 { "" } else { "s" };
    let right = format!(
        "{} robot{}, {} origin{}, seed {} ",
        count(header.robots.into()),
        plural(header.robots),
        count(header.origins.into()),
        plural(header.origins),
        header.seed
    );
    frame.render_widget(Paragraph::new(left), area);
    frame.render_widget(Paragraph::new(right.fg(QUIET)).alignment(Alignment::Right), area);
}

/// Pages and keys; a question, when there is one.
pub fn draw_footer(frame: &mut Frame, area: Rect, state: &LiveState, ui: &Ui) {
    if ui.confirming {
        let words = " Stop the run and report what there is?  q or y: yes   any other key: no ";
        frame.render_widget(Paragraph::new(words.fg(SLOW).bold().reversed()), area);
        return;
    }
    let right = if state.draining {
        "Ctrl-C quits at once ".fg(SLOW)
    } else if ui.paused.is_some() {
        "PAUSED, the run goes on; p: go on ".fg(SLOW).bold()
    } else if !ui.keys {
        "Ctrl-C stops and reports ".fg(QUIET)
    } else if ui.pages().len() > 5 && area.width < ROOMY {
        "? help ".fg(QUIET)
    } else {
        "q stop  p pause  ? help ".fg(QUIET)
    };
    if ui.keys {
        let mut tabs = vec![Span::raw(" ")];
        for (index, page) in ui.pages().iter().enumerate() {
            let name = format!("{} {}", index + 1, page.name());
            let here = *page == ui.page();
            tabs.push(if here { name.fg(Color::Cyan).bold() } else { name.fg(QUIET) });
            tabs.push(Span::raw("  "));
        }
        frame.render_widget(Paragraph::new(Line::from(tabs)), area);
    } else {
        frame.render_widget(Paragraph::new(format!(" {}", state.run_dir).fg(QUIET)), area);
    }
    // On the right, over what is left of the tabs should they be too long.
    let width = (right.width() as u16).min(area.width);
    let area = Rect { x: area.x + area.width - width, width, ..area };
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(right).alignment(Alignment::Right), area);
}

/// Help on the keys, over the page.
pub fn draw_help(frame: &mut Frame, area: Rect, ui: &Ui) {
    if !ui.help {
        return;
    }
    let key = |keys: &'static str, what: &'static str| {
        Line::from(vec![Span::styled(format!("  {keys:<18}"), Style::new().bold()), Span::raw(what)])
    };
    let lines = vec![
        key("Tab, ← →, 1 to 6", "turn to another page"),
        key("↑ ↓", "scroll a long one"),
        key("p", "let the view stand still; the run goes on"),
        key("q", "stop the run and report what there is (asks first)"),
        key("Ctrl-C", "the same without asking; a second one quits at once"),
        key("?", "this"),
        Line::default(),
        Line::from("  Hit ratios thrice: offered by the stream, ideal for an infinite cache,").fg(QUIET),
        Line::from("  measured at the target. Response times run from when a request was due.").fg(QUIET),
    ];
    let (width, height) = (area.width.min(78), (lines.len() as u16 + 2).min(area.height));
    let place =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(boxed("keys")), place);
}
