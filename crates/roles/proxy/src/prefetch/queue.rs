//! Bounded queue of prefetches, and their counters.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::spec::Prefetch;
use assay_protocol::message::PrefetchCounters;

use super::resolve::BaseUrl;

/// Properties of a page that its references depend on.
#[derive(Debug, Clone)]
pub struct PrefetchPage {
    pub base: BaseUrl,
    /// The page was requested in absolute form; its resources will be, too.
    pub is_absolute: bool,
}

/// A resource to prefetch.
pub struct PrefetchJob {
    pub url: BaseUrl,
    pub is_absolute: bool,
    /// On the page's own host.
    pub is_own: bool,
    /// Field lines repeated from the page's request.
    pub fields: Rc<[u8]>,
    /// Bytes that prefetches for the page may still fetch.
    pub budget: Rc<Cell<u64>>,
}

#[derive(Default)]
pub struct Prefetcher {
    settings: Option<Prefetch>,
    waiting: RefCell<VecDeque<PrefetchJob>>,
    running: Cell<u32>,
    counters: Cell<PrefetchCounters>,
}

impl Prefetcher {
    /// Creates a queue; without settings nothing is ever prefetched.
    pub fn new(settings: Option<Prefetch>) -> Self {
        Self { settings, ..Self::default() }
    }

    pub fn counters(&self) -> PrefetchCounters {
        self.counters.get()
    }

    pub fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    pub fn count(&self, add: impl FnOnce(&mut PrefetchCounters)) {
        let mut counters = self.counters.get();
        add(&mut counters);
        self.counters.set(counters);
    }

    pub fn settings(&self) -> Option<Prefetch> {
        self.settings
    }

    /// Queues a job if there is room; true: the caller must start a task for it.
    pub fn submit(&self, job: PrefetchJob) -> bool {
        let Some(settings) = self.settings else { return false };
        if self.waiting.borrow().len() >= settings.waiting as usize {
            self.count(|c| c.prefetches_dropped += 1);
            return false;
        }
        self.waiting.borrow_mut().push_back(job);
        let begins = self.running.get() < settings.at_once;
        if begins {
            self.running.set(self.running.get() + 1);
        }
        begins
    }

    /// Next job of a running task; `None` ends the task.
    pub fn next(&self) -> Option<PrefetchJob> {
        let job = self.waiting.borrow_mut().pop_front();
        if job.is_none() {
            self.running.set(self.running.get() - 1);
        }
        job
    }
}
