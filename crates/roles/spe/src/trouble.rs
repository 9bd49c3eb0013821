//! What goes wrong with writing down what was measured: each kind of it is told once, while everything else goes on.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use assay_record::dir::RunDirError;

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Rows cannot be kept beside their table. They are lost if the process is killed before there is room for them in it.
    NotKept,
    /// There is no room for rows in their table. They stay beside it.
    Kept,
    /// Rows, or the lines of a text, are lost.
    Lost,
}

impl Kind {
    fn consequence(self) -> &'static str {
        match self {
            Self::NotKept => "what comes from now on is lost if this process is killed",
            Self::Kept => "clients are served as before",
            Self::Lost => "what cannot be written is lost, and clients are served as before",
        }
    }
}

/// All that went wrong so far, from both sides.
#[derive(Debug, Default)]
pub struct Trouble(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    noted: Vec<Kind>,
    untold: VecDeque<String>,
}

impl Trouble {
    /// Notes how a row was written.
    pub fn of_row(&self, written: Result<(), RunDirError>) {
        if let Err(error) = written {
            self.note(if error.is_kept() { Kind::Kept } else { Kind::Lost }, &error);
        }
    }

    /// Notes how rows were kept beside their table.
    pub fn of_keeping(&self, kept: Result<(), RunDirError>) {
        if let Err(error) = kept {
            self.note(Kind::NotKept, &error);
        }
    }

    /// Notes trouble, if none of its kind was before.
    pub fn note(&self, kind: Kind, error: &dyn fmt::Display) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.noted.contains(&kind) {
            state.noted.push(kind);
            state.untold.push_back(format!("{error}; {}", kind.consequence()));
        }
    }

    /// The next thing that was noted and not told.
    pub fn tell(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).untold.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once_in_its_order() {
        let trouble = Trouble::default();
        for kind in [Kind::NotKept, Kind::NotKept, Kind::Lost, Kind::NotKept, Kind::Lost] {
            trouble.note(kind, &"no room");
        }
        let told: Vec<String> = std::iter::from_fn(|| trouble.tell()).collect();
        assert!(told.len() == 2 && told[0].contains("is killed") && told[1].contains("served"), "{told:?}");
        trouble.note(Kind::Kept, &"no room");
        assert!(trouble.tell().is_some_and(|told| told.starts_with("no room; clients are served")));
        assert_eq!(trouble.tell(), None);
    }
}
