//! Places for a bounded number of connections, of which a new one gets one though others do nothing.
//!
//! A server with few places is blocked for everybody by clients that connect and say nothing. Here, when all places are taken,
//! the connection that has waited for a request for the longest time ends, so that whoever sends a request at once is served.
//! Connections whose request is being served keep their places.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;

use tokio::sync::Notify;
use tokio::task::{AbortHandle, spawn_local};

/// Places for connections.
pub struct Places {
    most: usize,
    /// Who has one, in the order in which they began to wait for a request.
    taken: RefCell<Vec<(Rc<Cell<bool>>, AbortHandle)>>,
    changed: Notify,
}

/// The place of a connection: says whether a request is being served on it.
pub struct Place {
    places: Rc<Places>,
    is_busy: Rc<Cell<bool>>,
}

impl Places {
    /// So many.
    pub fn new(most: usize) -> Rc<Self> {
        Rc::new(Self { most, taken: RefCell::default(), changed: Notify::new() })
    }

    /// Serves a connection in a local task, once there is a place for it: one is free, or that of a connection without a request
    /// is taken from it.
    pub async fn serve<F: Future<Output = ()> + 'static>(self: &Rc<Self>, serve: impl FnOnce(Place) -> F) {
        loop {
            let changed = self.changed.notified();
            if self.has_room() {
                break;
            }
            changed.await;
        }
        let is_busy = Rc::new(Cell::new(false));
        let serving = serve(Place { places: Rc::clone(self), is_busy: Rc::clone(&is_busy) });
        let task = spawn_local(serving);
        self.taken.borrow_mut().push((is_busy, task.abort_handle()));
    }

    /// Whether one more may begin; ends a connection that waits for a request if that makes room.
    fn has_room(&self) -> bool {
        let mut taken = self.taken.borrow_mut();
        taken.retain(|(_, task)| !task.is_finished());
        if taken.len() < self.most {
            return true;
        }
        let Some(at) = taken.iter().position(|(is_busy, _)| !is_busy.get()) else { return false };
        taken.remove(at).1.abort();
        true
    }

    /// A connection has ended.
    fn leave(&self, is_busy: &Rc<Cell<bool>>) {
        self.taken.borrow_mut().retain(|(other, _)| !Rc::ptr_eq(other, is_busy));
        self.changed.notify_waiters();
    }
}

impl Place {
    /// A request is being served, or none is any more. Whoever has just been served waits for less time than all others.
    pub fn set_busy(&self, is_busy: bool) {
        if self.is_busy.replace(is_busy) && !is_busy {
            let mut taken = self.places.taken.borrow_mut();
            if let Some(at) = taken.iter().position(|(other, _)| Rc::ptr_eq(other, &self.is_busy)) {
                let own = taken.remove(at);
                taken.push(own);
            }
            self.places.changed.notify_waiters();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.leave(&self.is_busy);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::runtime::{Builder, LocalOptions};
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

    fn run(test: impl Future<Output = ()>) {
        let runtime = Builder::new_current_thread().build_local(LocalOptions::default());
        runtime.expect("a runtime").block_on(test);
    }

    #[test]
    fn a_new_connection_gets_the_place_of_the_one_that_has_waited_longest() {
        run(async {
            let (tell, mut ended) = unbounded_channel();
            let places = Places::new(3);
            let kept = Rc::new(RefCell::new(Vec::new()));
            for number in 0..3 {
                let (ends, kept) = (Ends(number, tell.clone()), Rc::clone(&kept));
                let serve = |place: Place| async move {
                    kept.borrow_mut().push(place);
                    let _ends = ends;
                    pending().await
                };
                places.serve(serve).await;
            }
            yield_now().await;
            // The first is being served; the second was served last, so the third has waited longest.
            kept.borrow()[0].set_busy(true);
            kept.borrow()[1].set_busy(true);
            kept.borrow()[1].set_busy(false);
            places.serve(|_| pending()).await;
            assert_eq!(ended.recv().await, Some(2));
            places.serve(|_| pending()).await;
            assert_eq!(ended.recv().await, Some(1));
            assert_eq!(places.taken.borrow().len(), 3);
        });
    }

    #[test]
    fn where_all_are_being_served_a_new_connection_waits_for_one_to_end() {
        run(async {
            let places = Places::new(1);
            let (tell, mut told) = unbounded_channel();
            let end = Rc::new(Notify::new());
            let (ending, telling) = (Rc::clone(&end), tell.clone());
            let serve = |place: Place| async move {
                place.set_busy(true);
                ending.notified().await;
                let _ = telling.send("the first ends");
                place.set_busy(false);
            };
            places.serve(serve).await;
            yield_now().await;
            let second = async {
                let serve = |_| async move { assert!(tell.send("the second begins").is_ok()) };
                places.serve(serve).await;
            };
            let first = async {
                yield_now().await;
                end.notify_one();
            };
            tokio::join!(second, first);
            assert_eq!(told.recv().await, Some("the first ends"));
            assert_eq!(told.recv().await, Some("the second begins"));
        });
    }
}
