//! A bound on connections under which a new one is served though others do nothing.
//!
//! A server with few slots is blocked for everybody by clients that connect and send nothing. Here, when all slots are taken, the
//! connection that has waited for a request for the longest time ends, so that whoever sends a request at once is served. Connections whose
//! request is being served keep their slots, unless all are: then the one that has taken the longest ends, once that is a second: hardly
//! anything but a client that takes its response slowly takes so long.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};
use tokio::time::{Instant, timeout};

use crate::limits::EVICTION_GRACE;

/// Interval of looking for a slow connection, where all are being served.
const RECHECK: Duration = Duration::from_millis(50);

/// Start of the request that is being served on a connection; none: there is none.
type BusySince = Rc<Cell<Option<Instant>>>;

pub struct ConnectionLimit {
    max_slots: usize,
    /// Connections that have a slot, in the order in which they began to wait for a request.
    slots: RefCell<Vec<(BusySince, AbortHandle)>>,
    changed: Notify,
    dismissed: Cell<u64>,
}

/// Slot of a connection; records whether a request is being served on it.
pub struct ConnectionSlot {
    limit: Rc<ConnectionLimit>,
    busy: BusySince,
}

impl ConnectionLimit {
    pub fn new(max_slots: usize) -> Rc<Self> {
        Rc::new(Self {
            max_slots,
            slots: RefCell::default(),
            changed: Notify::new(),
            dismissed: Cell::new(0),
        })
    }

    /// Serves a connection in a local task, once there is a slot for it: one is free, or that of a connection without a request is taken
    /// from it, or that of one whose client is slow.
    pub async fn serve<F: Future<Output = ()> + 'static>(
        self: &Rc<Self>,
        serve: impl FnOnce(ConnectionSlot) -> F,
    ) {
        loop {
            let changed = self.changed.notified();
            if self.has_room() {
                break;
            }
            // One may have taken long enough by then.
            let _ = timeout(RECHECK, changed).await;
        }
        let busy = BusySince::default();
        let serving = serve(ConnectionSlot { limit: Rc::clone(self), busy: Rc::clone(&busy) });
        let task = spawn_local(serving);
        self.slots.borrow_mut().push((busy, task.abort_handle()));
    }

    /// Number of connections that lost their slots to others.
    pub fn dismissed(&self) -> u64 {
        self.dismissed.get()
    }

    /// Whether one more may begin; ends a connection that waits for a request, or for a slow client, if that makes room.
    fn has_room(&self) -> bool {
        let mut slots = self.slots.borrow_mut();
        slots.retain(|(_, task)| !task.is_finished());
        if slots.len() < self.max_slots {
            return true;
        }
        let waits = || slots.iter().position(|(busy, _)| busy.get().is_none());
        let takes_long = || {
            let since = slots.iter().enumerate().filter_map(|(at, (busy, _))| Some((busy.get()?, at)));
            let (since, at) = since.min()?;
            (since.elapsed() >= EVICTION_GRACE).then_some(at)
        };
        let Some(at) = waits().or_else(takes_long) else { return false };
        slots.remove(at).1.abort();
        self.dismissed.set(self.dismissed.get() + 1);
        true
    }

    /// Frees the slot of a connection that has ended.
    fn release(&self, busy: &BusySince) {
        self.slots.borrow_mut().retain(|(other, _)| !Rc::ptr_eq(other, busy));
        self.changed.notify_waiters();
    }
}

impl ConnectionSlot {
    /// Notes whether a request is being served. A connection that has just been served waits for less time than all others.
    pub fn set_busy(&self, is_busy: bool) {
        let before = self.busy.replace(is_busy.then(Instant::now));
        if before.is_some() && !is_busy {
            let mut slots = self.limit.slots.borrow_mut();
            if let Some(at) = slots.iter().position(|(other, _)| Rc::ptr_eq(other, &self.busy)) {
                let own = slots.remove(at);
                slots.push(own);
            }
            self.limit.changed.notify_waiters();
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.limit.release(&self.busy);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use assay_testbed::run;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
    use tokio::task::yield_now;

    use super::*;

    /// Tells when it ends, however it ends.
    struct Ends(u32, UnboundedSender<u32>);

    impl Drop for Ends {
        fn drop(&mut self) {
            let _ = self.1.send(self.0);
        }
    }

    #[test]
    fn a_new_connection_gets_the_place_of_the_one_that_has_waited_longest() {
        run(async {
            let (tell, mut ended) = unbounded_channel();
            let limit = ConnectionLimit::new(3);
            let kept = Rc::new(RefCell::new(Vec::new()));
            for number in 0..3 {
                let (ends, kept) = (Ends(number, tell.clone()), Rc::clone(&kept));
                let serve = |slot: ConnectionSlot| async move {
                    kept.borrow_mut().push(slot);
                    let _ends = ends;
                    pending().await
                };
                limit.serve(serve).await;
            }
            yield_now().await;
            // The first is being served; the second was served last, so the third has waited longest.
            kept.borrow()[0].set_busy(true);
            kept.borrow()[1].set_busy(true);
            kept.borrow()[1].set_busy(false);
            limit.serve(|_| pending()).await;
            assert_eq!(ended.recv().await, Some(2));
            limit.serve(|_| pending()).await;
            assert_eq!(ended.recv().await, Some(1));
            assert_eq!((limit.slots.borrow().len(), limit.dismissed()), (3, 2));
        });
    }

    #[test]
    fn where_all_are_being_served_the_one_that_takes_longest_makes_room_after_a_second() {
        run(async {
            let (tell, mut ended) = unbounded_channel();
            let limit = ConnectionLimit::new(2);
            let begun = Instant::now();
            for number in 0..2 {
                let ends = Ends(number, tell.clone());
                let serve = |slot: ConnectionSlot| async move {
                    slot.set_busy(true);
                    let _ends = ends;
                    pending().await
                };
                limit.serve(serve).await;
                yield_now().await;
            }
            limit.serve(|_| pending()).await;
            assert!(begun.elapsed() >= EVICTION_GRACE && limit.dismissed() == 1);
            assert_eq!(ended.recv().await, Some(0));
        });
    }

    #[test]
    fn where_all_are_being_served_a_new_connection_waits_for_one_to_end() {
        run(async {
            let limit = ConnectionLimit::new(1);
            let (tell, mut told) = unbounded_channel();
            let end = Rc::new(Notify::new());
            let (ending, telling) = (Rc::clone(&end), tell.clone());
            let serve = |slot: ConnectionSlot| async move {
                slot.set_busy(true);
                ending.notified().await;
                let _ = telling.send("the first ends");
                slot.set_busy(false);
            };
            limit.serve(serve).await;
            yield_now().await;
            let counted = Rc::clone(&limit);
            let second = async {
                let serve = |_| async move { assert!(tell.send("the second begins").is_ok()) };
                limit.serve(serve).await;
            };
            let first = async {
                yield_now().await;
                end.notify_one();
            };
            tokio::join!(second, first);
            assert_eq!(told.recv().await, Some("the first ends"));
            assert_eq!(told.recv().await, Some("the second begins"));
            assert_eq!(counted.dismissed(), 0);
        });
    }
}
