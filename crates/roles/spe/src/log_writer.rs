//! Writing of logs in a thread of its own: its receive loop, and the faults to be reported.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use assay_record::dir::RunDirError;

/// Interval at which written rows are made safe against a kill of the process.
const KEEP_INTERVAL: Duration = Duration::from_millis(500);

/// Passes on received items until told to end, or all senders are gone; and `None` twice a second, to make written rows safe.
pub fn drain<T>(queue: &Receiver<T>, mut each: impl FnMut(Option<T>) -> ControlFlow<()>) {
    let mut kept = Instant::now();
    loop {
        let ends = match queue.recv_timeout(KEEP_INTERVAL) {
            Ok(item) => each(Some(item)).is_break(),
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if ends {
            return;
        }
        if kept.elapsed() >= KEEP_INTERVAL {
            if each(None).is_break() {
                return;
            }
            kept = Instant::now();
        }
    }
}

/// Faults in writing; each kind is reported once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteFaultKind {
    /// Rows cannot be kept beside their table, and are lost if the process is killed before there is room for them in it.
    NotKept,
    /// Rows do not fit into their table, and stay beside it.
    Kept,
    /// Rows, or lines of a text log, are lost.
    Lost,
}

impl WriteFaultKind {
    fn consequence(self) -> &'static str {
        match self {
            Self::NotKept => "what comes from now on is lost if this process is killed",
            Self::Kept => "clients are served as before",
            Self::Lost => "what cannot be written is lost, and clients are served as before",
        }
    }
}

/// Faults so far, shared by the writing thread and the reporting one.
#[derive(Debug, Default)]
pub struct WriteFaults(Mutex<FaultState>);

#[derive(Debug, Default)]
struct FaultState {
    recorded: Vec<WriteFaultKind>,
    unreported: VecDeque<String>,
}

impl WriteFaults {
    /// Records the result of writing a row.
    pub fn record_row(&self, written: Result<(), RunDirError>) {
        if let Err(error) = written {
            self.record(if error.is_kept() { WriteFaultKind::Kept } else { WriteFaultKind::Lost }, &error);
        }
    }

    /// Records the result of keeping rows beside their table.
    pub fn record_keeping(&self, kept: Result<(), RunDirError>) {
        if let Err(error) = kept {
            self.record(WriteFaultKind::NotKept, &error);
        }
    }

    /// Records a fault, unless one of its kind was recorded before.
    pub fn record(&self, kind: WriteFaultKind, error: &dyn fmt::Display) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.recorded.contains(&kind) {
            state.recorded.push(kind);
            state.unreported.push_back(format!("{error}; {}", kind.consequence()));
        }
    }

    /// Next fault that has not been reported.
    pub fn next_unreported(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unreported.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_told_once_in_its_order() {
        let faults = WriteFaults::default();
        for kind in [
            WriteFaultKind::NotKept,
            WriteFaultKind::NotKept,
            WriteFaultKind::Lost,
            WriteFaultKind::NotKept,
            WriteFaultKind::Lost,
        ] {
            faults.record(kind, &"no room");
        }
        let told: Vec<String> = std::iter::from_fn(|| faults.next_unreported()).collect();
        assert!(told.len() == 2 && told[0].contains("is killed") && told[1].contains("served"), "{told:?}");
        faults.record(WriteFaultKind::Kept, &"no room");
        assert!(faults.next_unreported().is_some_and(|told| told.starts_with("no room; clients are served")));
        assert_eq!(faults.next_unreported(), None);
    }
}
