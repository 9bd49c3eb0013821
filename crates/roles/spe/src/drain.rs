//! A queue whose items are written down, by a thread of its own.

use std::ops::ControlFlow;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What was written before this is kept if the process is killed.
const KEEP_EVERY: Duration = Duration::from_millis(500);

/// Passes on what comes until it is told to end, or nobody is left to send anything. With nothing, twice a second: what was written
/// so far is to be kept.
pub fn drain<T>(queue: &Receiver<T>, mut each: impl FnMut(Option<T>) -> ControlFlow<()>) {
    let mut kept = Instant::now();
    loop {
        let ends = match queue.recv_timeout(KEEP_EVERY) {
            Ok(item) => each(Some(item)).is_break(),
            Err(RecvTimeoutError::Timeout) => false,
            Err(RecvTimeoutError::Disconnected) => true,
        };
        if ends {
            return;
        }
        if kept.elapsed() >= KEEP_EVERY {
            if each(None).is_break() {
                return;
            }
            kept = Instant::now();
        }
    }
}
