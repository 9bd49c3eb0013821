//! Choices of the user: page, help, a frozen view, and whether the run is to end.

use strum::IntoStaticStr;

use super::keys::Key;
use super::state::LiveState;

/// Page of the live view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum ViewPage {
    /// The cells of an experiment.
    Cells,
    /// The most important figures.
    Overview,
    /// Every phase.
    Phases,
    /// Response times.
    Times,
    /// Processors, memory, connections, Assay itself.
    Machine,
    /// Requirements, errors, messages.
    Checks,
}

impl ViewPage {
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Pages of a run.
const OF_A_RUN: [ViewPage; 5] =
    [ViewPage::Overview, ViewPage::Phases, ViewPage::Times, ViewPage::Machine, ViewPage::Checks];
/// Pages of an experiment.
const OF_AN_EXPERIMENT: [ViewPage; 6] = [
    ViewPage::Cells,
    ViewPage::Overview,
    ViewPage::Phases,
    ViewPage::Times,
    ViewPage::Machine,
    ViewPage::Checks,
];

/// Choices of the user.
#[derive(Debug, Clone)]
pub struct Ui {
    pages: &'static [ViewPage],
    at: usize,
    /// Help lies over the page.
    pub help: bool,
    /// The user has to confirm that the run is to end.
    pub confirming: bool,
    /// Frozen state; none: the view goes on.
    pub paused: Option<Box<LiveState>>,
    /// Keys can be pressed.
    pub keys: bool,
    /// Lines that a long page begins below its first.
    pub scrolled: usize,
}

impl Ui {
    pub fn of_a_run(keys: bool) -> Self {
        Self::with(&OF_A_RUN, keys)
    }

    pub fn of_an_experiment(keys: bool) -> Self {
        Self::with(&OF_AN_EXPERIMENT, keys)
    }

    fn with(pages: &'static [ViewPage], keys: bool) -> Self {
        Self { pages, at: 0, help: false, confirming: false, paused: None, keys, scrolled: 0 }
    }

    pub fn pages(&self) -> &'static [ViewPage] {
        self.pages
    }

    /// The one that is looked at.
    pub fn page(&self) -> ViewPage {
        self.pages[self.at]
    }

    /// Takes a key; true when the run is to end.
    pub fn handle(&mut self, key: Key, state: &LiveState) -> bool {
        // The same key again, or yes, confirms the only question; all else means no.
        if std::mem::take(&mut self.confirming) && matches!(key, Key::Char('q' | 'y' | '\n')) {
            return true;
        }
        match key {
            Key::Char('q') => self.confirming = !state.draining,
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Escape => self.help = false,
            Key::Char('p' | ' ') => {
                self.paused = if self.paused.is_some() { None } else { Some(Box::new(state.clone())) };
            }
            Key::Next => self.turn_to((self.at + 1) % self.pages.len()),
            Key::Previous => self.turn_to((self.at + self.pages.len() - 1) % self.pages.len()),
            Key::Char(digit @ '1'..='9') => {
                let wanted = digit as usize - '1' as usize;
                if wanted < self.pages.len() {
                    self.turn_to(wanted);
                }
            }
            Key::Down => self.scrolled += 1,
            Key::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Char(_) => {}
        }
        false
    }

    fn turn_to(&mut self, page: usize) {
        (self.at, self.scrolled, self.help) = (page, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_turn_pages_in_a_circle() {
        let (mut ui, state) = (Ui::of_a_run(true), LiveState::default());
        let pages: Vec<_> = (0..5)
            .map(|_| {
                ui.handle(Key::Next, &state);
                ui.page().name()
            })
            .collect();
        assert_eq!(pages, ["phases", "times", "machine", "checks", "overview"]);
        ui.handle(Key::Previous, &state);
        assert_eq!(ui.page(), ViewPage::Checks);
        ui.handle(Key::Char('9'), &state);
        assert_eq!(ui.page(), ViewPage::Checks, "there is no such page");
        ui.handle(Key::Char('3'), &state);
        assert_eq!(ui.page(), ViewPage::Times);
    }

    #[test]
    fn a_run_ends_when_told_so_twice() {
        let (mut ui, mut state) = (Ui::of_a_run(true), LiveState::default());
        assert!(!ui.handle(Key::Char('q'), &state) && ui.confirming);
        assert!(!ui.handle(Key::Char('x'), &state) && !ui.confirming, "any other key means no");
        assert!(!ui.handle(Key::Char('q'), &state));
        assert!(ui.handle(Key::Char('q'), &state));
        state.draining = true;
        ui.handle(Key::Char('q'), &state);
        assert!(!ui.confirming, "it ends already");
    }

    #[test]
    fn a_view_that_stands_still_keeps_what_it_showed() {
        let (mut ui, mut state) = (Ui::of_a_run(true), LiveState::default());
        state.now_ms = 7;
        ui.handle(Key::Char('p'), &state);
        state.now_ms = 8;
        assert_eq!(ui.paused.as_ref().map(|kept| kept.now_ms), Some(7));
        ui.handle(Key::Char('p'), &state);
        assert!(ui.paused.is_none());
    }
}
