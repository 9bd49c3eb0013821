//! What can wait, kept from being in a client's way.
//!
//! A client that has just been sent its response is often about to run on the very processor that sent it. Whatever goes on
//! there first, or wakes others, is in its way: a digest of 13 KB and two threads to wake cost it 60 microseconds. So that
//! waits a moment, in which this thread sleeps, and keeps its order.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// How long it waits.
const MOMENT: Duration = Duration::from_millis(1);

/// Something to be done.
type Work = Box<dyn FnOnce()>;

/// What waits, and until when.
#[derive(Default)]
pub struct Later {
    waiting: RefCell<VecDeque<(Instant, Work)>>,
    more: Notify,
    /// There is no later any more.
    is_over: Cell<bool>,
}

impl Later {
    /// Does something a moment later, or at once where everything is over.
    pub fn put_off(&self, work: impl FnOnce() + 'static) {
        if self.is_over.get() {
            return work();
        }
        self.waiting.borrow_mut().push_back((Instant::now() + MOMENT, Box::new(work)));
        self.more.notify_one();
    }

    /// Does what has waited long enough, for ever.
    pub async fn work(&self) {
        loop {
            let next = self.waiting.borrow().front().map(|(due, _)| *due);
            match next {
                None => self.more.notified().await,
                Some(due) => {
                    sleep_until(due).await;
                    self.work_off(Some(Instant::now()));
                }
            }
        }
    }

    /// Does all that waits, and everything else at once from now on.
    pub fn end(&self) {
        self.is_over.set(true);
        self.work_off(None);
    }

    fn work_off(&self, by: Option<Instant>) {
        loop {
            let mut waiting = self.waiting.borrow_mut();
            let is_due = waiting.front().is_some_and(|(due, _)| by.is_none_or(|by| *due <= by));
            let next = if is_due { waiting.pop_front() } else { None };
            // Work may put off more.
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

    fn put_off(later: &Later, numbers: std::ops::Range<u32>) -> Rc<RefCell<Vec<u32>>> {
        let done: Rc<RefCell<Vec<u32>>> = Rc::default();
        for number in numbers {
            let done = Rc::clone(&done);
            later.put_off(move || done.borrow_mut().push(number));
        }
        done
    }

    #[test]
    fn what_waits_keeps_its_order_and_is_not_lost_at_the_end() {
        let later = Later::default();
        let before = Instant::now();
        let done = put_off(&later, 0..3);
        later.work_off(Some(before));
        assert!(done.borrow().is_empty(), "nothing is due yet");
        later.end();
        assert_eq!(*done.borrow(), [0, 1, 2]);
        assert_eq!(*put_off(&later, 7..8).borrow(), [7], "after the end, nothing waits");
    }

    #[tokio::test]
    async fn what_has_waited_long_enough_is_done() {
        let later = Later::default();
        let done = Rc::new(Notify::new());
        let told = Rc::clone(&done);
        later.put_off(move || told.notify_one());
        tokio::select! {
            () = later.work() => {}
            () = done.notified() => {}
        }
    }
}
