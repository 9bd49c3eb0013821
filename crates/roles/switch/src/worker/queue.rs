//! FIFO queue of requests that wait for a server with room.
//!
//! When a server has room again, the first request whose group has that server is woken; it stays in the queue until it has
//! really got a server.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use assay_cluster::dispatch::ServerId;

use super::group::Group;

#[derive(Default)]
pub struct Queue {
    all: RefCell<VecDeque<Rc<QueuedRequest>>>,
}

struct QueuedRequest {
    group: Rc<Group>,
    /// Woken, and not polled since.
    is_notified: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.all.borrow().len()
    }

    pub fn push(self: &Rc<Self>, group: &Rc<Group>) -> QueueEntry {
        let group = Rc::clone(group);
        group.waiting.set(group.waiting.get() + 1);
        let request = QueuedRequest { group, is_notified: Cell::new(true), waker: RefCell::default() };
        let request = Rc::new(request);
        self.all.borrow_mut().push_back(Rc::clone(&request));
        QueueEntry { queue: Rc::clone(self), request }
    }

    /// Wakes the first request that can use `server`, which has room for one more.
    pub fn notify_one(&self, server: ServerId) {
        let all = self.all.borrow();
        if let Some(first) = all.iter().find(|w| !w.is_notified.get() && w.group.has(server)) {
            first.notify();
        }
    }

    /// Wakes all requests: servers were added, removed or changed.
    pub fn notify_all(&self) {
        self.all.borrow().iter().for_each(|request| request.notify());
    }
}

impl QueuedRequest {
    fn notify(&self) {
        self.is_notified.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A place in the queue, given up on drop.
pub struct QueueEntry {
    queue: Rc<Queue>,
    request: Rc<QueuedRequest>,
}

impl QueueEntry {
    /// Whether the request was notified since the last call; if not, `waker` is woken when it is.
    pub fn is_notified(&self, waker: &Waker) -> bool {
        if self.request.is_notified.replace(false) {
            return true;
        }
        *self.request.waker.borrow_mut() = Some(waker.clone());
        false
    }
}

impl Drop for QueueEntry {
    fn drop(&mut self) {
        let group = Rc::clone(&self.request.group);
        group.waiting.set(group.waiting.get() - 1);
        let mut all = self.queue.all.borrow_mut();
        all.retain(|request| !Rc::ptr_eq(request, &self.request));
        // Notified, and gone without having used it: pass the notification on.
        if self.request.is_notified.get()
            && let Some(next) = all.iter().find(|w| !w.is_notified.get() && Rc::ptr_eq(&w.group, &group))
        {
            next.notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_cluster::dispatch::{Moment, PolicyConfig};

    use super::super::server::Server;
    use super::*;

    fn group(number: u32) -> Rc<Group> {
        let server = Rc::new(Server::new(ServerId(number), "s".into(), ([127, 0, 0, 1], 9000).into()));
        Rc::new(Group::new(PolicyConfig::RoundRobin, 1, &[server], None, Moment::START))
    }

    #[test]
    fn the_first_whose_group_has_the_server_is_called() {
        let queue = Rc::new(Queue::default());
        let (a, b) = (group(0), group(1));
        let entries = [queue.push(&a), queue.push(&b), queue.push(&b)];
        let looked = || [0, 1, 2].map(|at: usize| entries[at].is_notified(Waker::noop()));
        assert_eq!(looked(), [true; 3], "each looks once by itself");
        assert_eq!(looked(), [false; 3]);
        queue.notify_one(ServerId(1));
        assert_eq!(looked(), [false, true, false]);
        queue.notify_one(ServerId(1));
        queue.notify_one(ServerId(1));
        assert_eq!(looked(), [false, true, true]);
        queue.notify_all();
        assert_eq!(looked(), [true; 3]);
        assert_eq!((a.waiting.get(), b.waiting.get(), queue.len()), (1, 2, 3));
    }

    #[test]
    fn a_call_that_was_not_heard_is_passed_on() {
        let queue = Rc::new(Queue::default());
        let a = group(0);
        let (first, second) = (queue.push(&a), queue.push(&a));
        assert!(first.is_notified(Waker::noop()) && second.is_notified(Waker::noop()));
        queue.notify_one(ServerId(0));
        drop(first);
        assert!(second.is_notified(Waker::noop()));
        drop(second);
        assert_eq!((a.waiting.get(), queue.len()), (0, 0));
    }
}
