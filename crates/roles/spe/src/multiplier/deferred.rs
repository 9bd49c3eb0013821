//! Work deferred until it is not in a client's way.
//!
//! A client that has just been sent its response is often about to run on the very processor that sent it. Whatever runs there
//! first, or wakes others, delays it: a digest of 13 KB and two threads to wake cost 60 microseconds. So such work is deferred
//! for a moment, in which this thread sleeps, and keeps its order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

const DELAY: Duration = Duration::from_millis(1);

type Work = Box<dyn FnOnce()>;

/// Queue of deferred work with due times.
#[derive(Default)]
pub struct DeferredWork {
    waiting: RefCell<VecDeque<(Instant, Work)>>,
    more: Notify,
    /// Work is no longer deferred.
    is_over: Cell<bool>,
}

impl DeferredWork {
    /// Defers work for a moment; runs it at once after [`DeferredWork::flush`].
    pub fn defer(&self, work: impl FnOnce() + 'static) {
        if self.is_over.get() {
            return work();
        }
        self.waiting.borrow_mut().push_back((Instant::now() + DELAY, Box::new(work)));
        self.more.notify_one();
    }

    /// Runs due work, for ever.
    pub async fn run(&self) {
        loop {
            let next = self.waiting.borrow().front().map(|(due, _)| *due);
            match next {
                None => self.more.notified().await,
                Some(due) => {
                    sleep_until(due).await;
                    self.run_due(Some(Instant::now()));
                }
            }
        }
    }

    /// Runs all deferred work, and all later work at once.
    pub fn flush(&self) {
        self.is_over.set(true);
        self.run_due(None);
    }

    fn run_due(&self, by: Option<Instant>) {
        loop {
            let mut waiting = self.waiting.borrow_mut();
            let is_due = waiting.front().is_some_and(|(due, _)| by.is_none_or(|by| *due <= by));
            let next = if is_due { waiting.pop_front() } else { None };
            // Work may defer more.
            drop(waiting);
            match next {
                Some((_, work)) => work(),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn defer(deferred: &DeferredWork, numbers: std::ops::Range<u32>) -> Rc<RefCell<Vec<u32>>> {
        let done: Rc<RefCell<Vec<u32>>> = Rc::default();
        for number in numbers {
            let done = Rc::clone(&done);
            deferred.defer(move || done.borrow_mut().push(number));
        }
        done
    }

    #[test]
    fn what_waits_keeps_its_order_and_is_not_lost_at_the_end() {
        let deferred = DeferredWork::default();
        let before = Instant::now();
        let done = defer(&deferred, 0..3);
        deferred.run_due(Some(before));
        assert!(done.borrow().is_empty(), "nothing is due yet");
        deferred.flush();
        assert_eq!(*done.borrow(), [0, 1, 2]);
        assert_eq!(*defer(&deferred, 7..8).borrow(), [7], "after the end, nothing waits");
    }

    #[tokio::test]
    async fn what_has_waited_long_enough_is_done() {
        let deferred = DeferredWork::default();
        let done = Rc::new(Notify::new());
        let notify = Rc::clone(&done);
        deferred.defer(move || notify.notify_one());
        tokio::select! {
            () = deferred.run() => {}
            () = done.notified() => {}
        }
    }
}
