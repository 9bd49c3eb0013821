//! The live view of an experiment. A table of its cells on a terminal, a line for each cell elsewhere.

use std::time::{Duration, Instant};

use assay_lab::experiment::cells::{CellActivity, CellEvent};
use assay_record::event::RunEvent;
use assay_record::experiment::{CellInfo, CellState, ExperimentInfo};
use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Color, Style as Paint, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Row, Table};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use super::draw::{draw_footer, draw_help, draw_page, too_small};
use super::keys::{Key, Keys};
use super::line::line;
use super::screen::Screen;
use super::state::LiveState;
use super::ui::{Ui, ViewPage};
use super::{FRAME, Header, Style, now_unix_ms};
use crate::output;
use crate::units::show_duration;

/// Shows an experiment until its events end.
pub async fn watch(
    mut events: UnboundedReceiver<CellEvent>,
    title: &str,
    style: Style,
    stop: UnboundedSender<()>,
) {
    let mut view = CellsView::new(title, style);
    let mut keys = Keys::listen(view.ui.keys);
    let mut tick = tokio::time::interval(FRAME);
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => view.apply(event),
                None => break,
            },
            pressed = keys.next() => {
                if view.press(&pressed) {
                    // When the receiver is gone, the experiment has just ended.
                    let _ = stop.send(());
                }
            }
            _ = tick.tick() => view.show(),
        }
    }
}

struct CellsView {
    cells: Cells,
    ui: Ui,
    /// None: lines, or the terminal went away.
    screen: Option<Screen>,
}

/// Everything that is known of an experiment on its way.
struct Cells {
    title: String,
    info: ExperimentInfo,
    /// Time left, and when that was said.
    left: (Duration, Instant),
    now: Option<(usize, CellActivity)>,
    run: LiveState,
    run_started_unix_ms: Option<u64>,
    took: Vec<Option<Duration>>,
    note: String,
}

impl CellsView {
    fn new(title: &str, style: Style) -> Self {
        // A terminal that cannot be had is no reason not to measure: lines do as well.
        let screen = (style == Style::Screen).then(Screen::open).and_then(Result::ok);
        let cells = Cells {
            title: title.to_owned(),
            info: ExperimentInfo::default(),
            left: (Duration::ZERO, Instant::now()),
            now: None,
            run: LiveState::new(Header::default()),
            run_started_unix_ms: None,
            took: Vec::new(),
            note: String::new(),
        };
        let ui = Ui::of_an_experiment(screen.as_ref().is_some_and(Screen::has_keys));
        Self { cells, ui, screen }
    }

    fn apply(&mut self, event: CellEvent) {
        if self.screen.is_none()
            && let Some(line) = self.cells.line(&event)
        {
            output::say(&line);
        }
        self.cells.apply(event);
    }

    /// Takes keys, and shows at once what they change; true when the experiment is to end.
    fn press(&mut self, pressed: &[Key]) -> bool {
        let stop = pressed.iter().any(|key| self.ui.handle(*key, &self.cells.run));
        self.show();
        stop
    }

    fn show(&mut self) {
        self.cells.run.now_ms =
            self.cells.run_started_unix_ms.map_or(0, |start| now_unix_ms().saturating_sub(start));
        let Some(screen) = &mut self.screen else { return };
        if screen.draw(|frame| draw(frame, &self.cells, &self.ui)).is_err() {
            self.screen = None;
        }
    }
}

impl Cells {
    fn apply(&mut self, event: CellEvent) {
        match event {
            CellEvent::Stands { info, left } => {
                self.info = *info;
                self.left = (left, Instant::now());
                self.took.resize(self.info.cells.len(), None);
            }
            CellEvent::Activity { cell, what } => {
                if what == CellActivity::Running {
                    self.run = LiveState::new(Header::default());
                    self.run_started_unix_ms = None;
                }
                self.now = Some((cell, what));
            }
            CellEvent::Tried { index, took, .. } => {
                self.now = None;
                if let Some(slot) = self.took.get_mut(index) {
                    *slot = Some(took);
                }
            }
            CellEvent::Lab(event) => {
                if let RunEvent::Started { started_unix_ms, .. } = event.as_ref() {
                    self.run_started_unix_ms = Some(*started_unix_ms);
                }
                self.run.apply(&event);
            }
            CellEvent::Note(words) => self.note = words,
        }
    }

    /// Text of an event on a line of its own; none for those that come all the time.
    fn line(&self, event: &CellEvent) -> Option<String> {
        let all = self.info.cells.len();
        match event {
            CellEvent::Activity { cell, what: CellActivity::Running } => {
                let id = &self.info.cells.get(*cell)?.id;
                Some(format!("{:>4}/{all}  {id}: runs; {}", cell + 1, self.left_words()))
            }
            CellEvent::Tried { cell, index, took } => {
                let mut result = match (cell.state, &cell.why) {
                    (CellState::Waiting, Some(why)) => format!("to be run again: {why}"),
                    (state, Some(why)) => format!("{}: {why}", word(state)),
                    (state, None) => word(state).into(),
                };
                cell.fault.iter().for_each(|fault| result += &format!("; {fault}"));
                let took = show_duration(*took);
                Some(format!("{:>4}/{all}  {}: {result} (after {took})", index + 1, cell.id))
            }
            CellEvent::Note(words) => Some(format!("note: {words}")),
            _ => None,
        }
    }

    fn left_words(&self) -> String {
        let (left, said) = self.left;
        match left.saturating_sub(said.elapsed()) {
            left if left < Duration::from_secs(1) => "nearly done".into(),
            left => format!("about {} left", show_duration(Duration::from_secs(left.as_secs()))),
        }
    }

    /// Current activity, in a line.
    fn doing_words(&self) -> String {
        let Some((index, what)) = self.now else { return String::new() };
        let id = self.info.cells.get(index).map_or("", |cell| cell.id.as_str());
        let what = match what {
            CellActivity::CoolingDown { left } => {
                format!("waits until {left} closed connections have expired")
            }
            CellActivity::Running => match self.run.current() {
                Some(phase) => self.run.name_and_done(phase),
                None => self.run.stage.clone(),
            },
        };
        format!(" {} of {}: {id}: {what}", index + 1, self.info.cells.len())
    }

    /// Activity for a cell, or its state.
    fn standing(&self, index: usize, cell: &CellInfo) -> String {
        match (self.now, cell.state) {
            (Some((now, CellActivity::CoolingDown { left })), _) if now == index => {
                format!("waits until {left} closed connections have expired")
            }
            (Some((now, CellActivity::Running)), _) if now == index => line(&self.run),
            (_, CellState::Done) => {
                let took = self.took.get(index).copied().flatten();
                let took = took.map(|took| format!("in {}", show_duration(took)));
                let parts: Vec<String> = took.into_iter().chain(cell.fault.clone()).collect();
                parts.join("; ")
            }
            _ => cell.why.as_deref().and_then(|why| why.lines().next()).unwrap_or_default().to_owned(),
        }
    }
}

fn word(state: CellState) -> &'static str {
    match state {
        CellState::Waiting => "waits",
        CellState::Running => "runs",
        CellState::Done => "done",
        CellState::Invalid => "not known",
        CellState::Failed => "failed",
    }
}

fn colour(cell: &CellInfo) -> Color {
    match cell.state {
        _ if cell.fault.is_some() => Color::Red,
        CellState::Waiting => Color::DarkGray,
        CellState::Running => Color::Cyan,
        CellState::Done => Color::Green,
        CellState::Invalid => Color::Yellow,
        CellState::Failed => Color::Red,
    }
}

fn draw(frame: &mut Frame, cells: &Cells, ui: &Ui) {
    let area = frame.area();
    // The pages of a run need all the room that there is on a small screen.
    let of_cells = ui.page() == ViewPage::Cells;
    let noted = of_cells && (!cells.note.is_empty() || cells.run.draining);
    let [title, bar, doing, body, note, footer] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(u16::from(of_cells)),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(u16::from(noted)),
        Constraint::Length(1),
    ])
    .areas(area);
    let all = &cells.info.cells;
    let over =
        all.iter().filter(|cell| !matches!(cell.state, CellState::Waiting | CellState::Running)).count();
    let left = Line::from(vec![" Assay ".reversed().bold(), " ".into(), cells.title.clone().bold()]);
    let right = format!("{over} of {} cells, {} ", all.len(), cells.left_words());
    frame.render_widget(Paragraph::new(left), title);
    frame.render_widget(Paragraph::new(right.bold()).alignment(Alignment::Right), title);
    draw_bar(frame, bar, all);
    frame.render_widget(Paragraph::new(cells.doing_words()), doing);
    if of_cells || too_small(Rect { height: body.height + 2, ..body }) {
        draw_table(frame, body, cells);
    } else {
        draw_page(frame, body, ui.paused.as_deref().unwrap_or(&cells.run), ui);
    }
    let words = if cells.run.draining { "stopping; Ctrl-C again quits at once" } else { &cells.note };
    frame.render_widget(Paragraph::new(format!(" {words}").fg(Color::Yellow)), note);
    draw_footer(frame, footer, &cells.run, ui);
    draw_help(frame, body, ui);
}

/// The cells as a bar, each in the colour of how it stands.
fn draw_bar(frame: &mut Frame, area: Rect, all: &[CellInfo]) {
    let width = usize::from(area.width.saturating_sub(2));
    let of_column = |column: usize| all.get(column * all.len() / width.max(1));
    let marks = (0..width).filter_map(of_column).map(|cell| {
        let waits = cell.state == CellState::Waiting;
        Span::styled(if waits { "░" } else { "█" }, Paint::new().fg(colour(cell)))
    });
    let bar = Line::from(marks.collect::<Vec<_>>());
    frame.render_widget(bar, Rect { x: area.x + u16::from(width > 0), width: width as u16, ..area });
}

/// As many cells as fit, around the one that runs.
fn draw_table(frame: &mut Frame, area: Rect, cells: &Cells) {
    let all = &cells.info.cells;
    let now = cells.now.map_or_else(
        || all.iter().position(|cell| cell.state == CellState::Waiting).unwrap_or(all.len()),
        |(index, _)| index,
    );
    let room = usize::from(area.height);
    let first = now.saturating_sub(room / 2).min(all.len().saturating_sub(room));
    let width = all.iter().map(|cell| cell.id.chars().count()).max().unwrap_or(0).min(60);
    let rows = all.iter().enumerate().skip(first).take(room).map(|(index, cell)| {
        let number = format!("{:>5}", index + 1);
        let words = [number, cell.id.clone(), word(cell.state).to_owned(), cells.standing(index, cell)];
        let row = Row::new(words).style(Paint::new().fg(colour(cell)));
        if index == now { row.bold() } else { row }
    });
    let widths = [
        Constraint::Length(5),
        Constraint::Length(u16::try_from(width).unwrap_or(60)),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    frame.render_widget(Table::new(rows, widths).column_spacing(2), area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;

    fn cells() -> Cells {
        let mut cells = CellsView::new("which-one", Style::Lines).cells;
        let cell = |id: &str, state, why: Option<&str>| CellInfo {
            id: id.into(),
            state,
            why: why.map(Into::into),
            ..CellInfo::default()
        };
        let info = ExperimentInfo {
            cells: vec![
                cell("r1-demo-builtin", CellState::Done, None),
                cell("r1-demo-direct", CellState::Failed, Some("it died\nof this")),
                cell("r2-demo-direct", CellState::Running, None),
                cell("r2-demo-builtin", CellState::Waiting, None),
            ],
            ..ExperimentInfo::default()
        };
        cells.apply(CellEvent::Stands { info: Box::new(info), left: Duration::from_secs(3779) });
        cells.apply(CellEvent::Activity { cell: 2, what: CellActivity::CoolingDown { left: 321 } });
        cells
    }

    #[test]
    fn a_screen_shows_how_every_cell_stands() {
        let mut terminal = Terminal::new(TestBackend::new(100, 10)).unwrap();
        terminal.draw(|frame| draw(frame, &cells(), &Ui::of_an_experiment(true))).unwrap();
        let screen = terminal.backend().to_string();
        for words in [
            "2 of 4 cells, about 1h 2m left",
            "failed     it died",
            "waits until 321 closed connections",
            "waits",
        ] {
            assert!(screen.contains(words), "{words}: {screen}");
        }
    }

    #[test]
    fn the_cell_that_runs_has_its_own_pages_on_a_small_screen_too() {
        let mut cells = cells();
        cells.apply(CellEvent::Activity { cell: 2, what: CellActivity::Running });
        let mut ui = Ui::of_an_experiment(true);
        ui.handle(Key::Char('2'), &cells.run);
        let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
        terminal.draw(|frame| draw(frame, &cells, &ui)).unwrap();
        let screen = terminal.backend().to_string();
        for words in
            ["3 of 4: r2-demo-direct: getting ready", "requests per second", "hit ratio", "no errors"]
        {
            assert!(screen.contains(words), "{words}: {screen}");
        }
        for (width, height) in [(1, 1), (30, 4), (80, 12), (200, 60)] {
            let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
            terminal.draw(|frame| draw(frame, &cells, &ui)).unwrap();
        }
    }

    #[test]
    fn cells_are_told_in_a_line_each() {
        let cells = cells();
        let doing = CellEvent::Activity { cell: 2, what: CellActivity::Running };
        let line = cells.line(&doing).unwrap();
        assert!(line.starts_with("   3/4  r2-demo-direct: runs; about 1h"), "{line}");
        let tried = |state, why: Option<&str>| {
            let cell = CellInfo { id: "x".into(), state, why: why.map(Into::into), ..CellInfo::default() };
            CellEvent::Tried { cell: Box::new(cell), index: 0, took: Duration::from_secs(31) }
        };
        assert_eq!(cells.line(&tried(CellState::Done, None)).unwrap(), "   1/4  x: done (after 31s)");
        let again = cells.line(&tried(CellState::Waiting, Some("late"))).unwrap();
        assert_eq!(again, "   1/4  x: to be run again: late (after 31s)");
    }
}
