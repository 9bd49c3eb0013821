//! The live view of a run. A full-screen view on a terminal, one line a second elsewhere; on standard error.

pub mod cells;
mod draw;
mod keys;
mod line;
mod own;
mod screen;
mod state;
mod ui;
mod words;

use std::io::{self, IsTerminal};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use assay_measurement::measured::Measured;
use assay_record::event::{RunEvent, Stage};
use assay_report::require::RequirementState;
use rustix::process::getpgrp;
use rustix::termios::tcgetpgrp;
use tokio::sync::{mpsc, watch};

pub use state::Header;

use crate::listeners::EventReceiver;
use crate::output;
use crate::requirement_listener::RequirementStatuses;
use keys::{Key, Keys};
use screen::Screen;
use state::LiveState;
use ui::Ui;

/// Frames on a terminal: smooth enough, and next to nothing of a processor.
const FRAME: Duration = Duration::from_millis(250);
const SECOND: Duration = Duration::from_secs(1);
/// By then a role's report on a second has come.
const REPORTING: Duration = Duration::from_millis(200);

/// Style in which a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// The whole terminal.
    Screen,
    /// A line a second.
    Lines,
}

impl Style {
    /// The whole terminal if there is one that may be coloured, it is ours to draw on, and the user has nothing against it.
    pub fn choose(no_live: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let plain = no_live || dumb || output::no_colour() || !io::stderr().is_terminal() || in_background();
        if plain { Style::Lines } else { Style::Screen }
    }
}

/// True for a job of a shell that was put into the background: the terminal belongs to others.
fn in_background() -> bool {
    tcgetpgrp(io::stderr()).is_ok_and(|foreground| foreground != getpgrp())
}

/// Shows a run until its events end.
pub async fn watch(
    mut events: EventReceiver,
    header: Header,
    standings: watch::Receiver<RequirementStatuses>,
    style: Style,
    stop: mpsc::UnboundedSender<()>,
) {
    let mut view = RunView::new(header, style);
    let mut keys = Keys::listen(view.ui.keys);
    let mut tick = tokio::time::interval(if style == Style::Screen { FRAME } else { SECOND });
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Some(event) => {
                    view.apply(&event);
                    if let (RunEvent::Started { .. }, Style::Lines) = (&*event, style) {
                        tick.reset_after(view.until_start() + SECOND + REPORTING);
                    }
                }
                None => break,
            },
            pressed = keys.next() => {
                if view.press(&pressed) {
                    // When the receiver is gone, the run has just ended.
                    let _ = stop.send(());
                }
            }
            _ = tick.tick() => {
                view.stand(&standings.borrow());
                view.tick();
            }
        }
    }
}

/// The state and where it is shown.
struct RunView {
    state: LiveState,
    ui: Ui,
    /// None: lines, or the terminal went away.
    screen: Option<Screen>,
    started_unix_ms: Option<u64>,
    finished: bool,
}

impl RunView {
    fn new(header: Header, style: Style) -> Self {
        // A terminal that cannot be had is no reason not to measure: lines do as well.
        let screen = (style == Style::Screen).then(Screen::open).and_then(Result::ok);
        let ui = Ui::of_a_run(screen.as_ref().is_some_and(Screen::has_keys));
        Self { state: LiveState::new(header), ui, screen, started_unix_ms: None, finished: false }
    }

    fn apply(&mut self, event: &RunEvent) {
        self.state.apply(event);
        match event {
            RunEvent::Started { started_unix_ms, .. } => self.started_unix_ms = Some(*started_unix_ms),
            RunEvent::Finished => self.finished = true,
            _ if self.screen.is_some() => {}
            RunEvent::Stage(Stage::Planned { run_dir }) => {
                output::say(&format!("run directory {}", run_dir.display()));
            }
            RunEvent::Stage(stage) => output::say(&state::stage_words(stage)),
            RunEvent::Doubt(doubt) => {
                let message = self.state.messages.back().cloned().unwrap_or_default();
                output::eprint(&format!(
                    "{message}\n  why it matters: {}\n  what to do: {}\n",
                    doubt.why, doubt.advice
                ));
            }
            RunEvent::Measured(Measured::Example(_) | Measured::Adapted(_)) => {
                let message = self.state.messages.back().cloned().unwrap_or_default();
                output::say(&message);
            }
            _ => {}
        }
    }

    /// Takes keys, and shows at once what they change; true when the run is to end.
    fn press(&mut self, pressed: &[Key]) -> bool {
        let stop = pressed.iter().any(|key| self.ui.handle(*key, &self.state));
        self.show();
        stop
    }

    /// Takes in how requirements stand. One that has failed is told at once where there is no screen.
    fn stand(&mut self, now: &RequirementStatuses) {
        let before = std::mem::replace(&mut self.state.requirements, now.clone());
        if self.screen.is_some() {
            return;
        }
        let failed_before =
            |index: usize| before.get(index).is_some_and(|one| one.state == RequirementState::Failed);
        for (index, one) in now.iter().enumerate() {
            if one.state == RequirementState::Failed && !failed_before(index) {
                output::say(&format!("requirement failed: {} ({})", one.text, one.seen));
            }
        }
    }

    /// Time until the schedule begins.
    fn until_start(&self) -> Duration {
        Duration::from_millis(self.started_unix_ms.unwrap_or_default().saturating_sub(now_unix_ms()))
    }

    fn tick(&mut self) {
        let Some(started_unix_ms) = self.started_unix_ms else {
            return self.show();
        };
        self.state.now_ms = now_unix_ms().saturating_sub(started_unix_ms);
        self.show();
        if self.screen.is_none() && !self.finished && !self.state.seconds.is_empty() {
            output::say(&line::line(&self.state));
            self.state.own.reset();
        }
    }

    fn show(&mut self) {
        let Some(screen) = &mut self.screen else { return };
        if screen.draw(|frame| draw::draw(frame, &self.state, &self.ui)).is_err() {
            self.screen = None;
        }
    }
}

fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests;
