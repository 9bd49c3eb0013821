//! Requests that wait for a server with room, and which is next.
//!
//! Requests wait in the order in which they came. When a server has room again, the first one is woken whose group has that
//! server; it stays in its place until it really got one.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::Waker;

use assay_cluster::dispatch::ServerId;

use super::group::Group;

/// The requests of a worker that wait.
#[derive(Default)]
pub struct Queue {
    all: RefCell<VecDeque<Rc<Waiter>>>,
}

struct Waiter {
    group: Rc<Group>,
    /// It was woken and has not looked yet.
    is_called: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.all.borrow().len()
    }

    /// Joins at the end.
    pub fn join(self: &Rc<Self>, group: &Rc<Group>) -> Place {
        let group = Rc::clone(group);
        group.waiting.set(group.waiting.get() + 1);
        let waiter = Waiter { group, is_called: Cell::new(true), waker: RefCell::default() };
        let waiter = Rc::new(waiter);
        self.all.borrow_mut().push_back(Rc::clone(&waiter));
        Place { queue: Rc::clone(self), waiter }
    }

    /// A server has room for one more request.
    pub fn has_room(&self, server: ServerId) {
        let all = self.all.borrow();
        if let Some(first) = all.iter().find(|w| !w.is_called.get() && w.group.has(server)) {
            first.call();
        }
    }

    /// Everything may be different: servers have come or gone.
    pub fn call_all(&self) {
        self.all.borrow().iter().for_each(|waiter| waiter.call());
    }
}

impl Waiter {
    fn call(&self) {
        self.is_called.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A place in the queue; given up when it is dropped.
pub struct Place {
    queue: Rc<Queue>,
    waiter: Rc<Waiter>,
}

impl Place {
    /// Whether it was called since the last look; if not, it will be woken through `waker`.
    pub fn is_called(&self, waker: &Waker) -> bool {
        if self.waiter.is_called.replace(false) {
            return true;
        }
        *self.waiter.waker.borrow_mut() = Some(waker.clone());
        false
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let group = Rc::clone(&self.waiter.group);
        group.waiting.set(group.waiting.get() - 1);
        let mut all = self.queue.all.borrow_mut();
        all.retain(|waiter| !Rc::ptr_eq(waiter, &self.waiter));
        // It was called and goes without having looked: the next one of its group may.
        if self.waiter.is_called.get()
            && let Some(next) = all.iter().find(|w| !w.is_called.get() && Rc::ptr_eq(&w.group, &group))
        {
            next.call();
        }
    }
}

#[cfg(test)]
mod tests {
    use assay_cluster::dispatch::{Choice, Moment};

    use super::super::server::Server;
    use super::*;

    fn group(number: u32) -> Rc<Group> {
        let server = Rc::new(Server::new(ServerId(number), "s".into(), ([127, 0, 0, 1], 9000).into()));
        Rc::new(Group::new(Choice::RoundRobin, 1, &[server], None, Moment::START))
    }

    #[test]
    fn the_first_whose_group_has_the_server_is_called() {
        let queue = Rc::new(Queue::default());
        let (a, b) = (group(0), group(1));
        let places = [queue.join(&a), queue.join(&b), queue.join(&b)];
        let looked = || [0, 1, 2].map(|at: usize| places[at].is_called(Waker::noop()));
        assert_eq!(looked(), [true; 3], "each looks once by itself");
        assert_eq!(looked(), [false; 3]);
        queue.has_room(ServerId(1));
        assert_eq!(looked(), [false, true, false]);
        queue.has_room(ServerId(1));
        queue.has_room(ServerId(1));
        assert_eq!(looked(), [false, true, true]);
        queue.call_all();
        assert_eq!(looked(), [true; 3]);
        assert_eq!((a.waiting.get(), b.waiting.get(), queue.len()), (1, 2, 3));
    }

    #[test]
    fn a_call_that_was_not_heard_is_passed_on() {
        let queue = Rc::new(Queue::default());
        let a = group(0);
        let (first, second) = (queue.join(&a), queue.join(&a));
        assert!(first.is_called(Waker::noop()) && second.is_called(Waker::noop()));
        queue.has_room(ServerId(0));
        drop(first);
        assert!(second.is_called(Waker::noop()));
        drop(second);
        assert_eq!((a.waiting.get(), queue.len()), (0, 0));
    }
}
