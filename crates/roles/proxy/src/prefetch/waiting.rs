//! What is to be prefetched and waits for that, within bounds, and what was counted of it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use crate::spec::Prefetch;
use assay_protocol::message::PrefetchCounters;

use super::resolve::Base;

/// A page, as far as what it names depends on it.
#[derive(Debug, Clone)]
pub struct Page {
    pub base: Base,
    /// The page was requested in absolute form, as the objects that it names will be.
    pub is_absolute: bool,
}

/// What is going to be fetched.
pub struct Job {
    pub what: Base,
    /// It is requested in absolute form.
    pub is_absolute: bool,
    /// On the page's own host.
    pub is_own: bool,
    /// Field lines of the page's request that are repeated.
    pub fields: Rc<[u8]>,
    /// Bytes that the page may still cause.
    pub budget: Rc<Cell<u64>>,
}

/// What is waiting, and what has been done.
#[derive(Default)]
pub struct Prefetcher {
    settings: Option<Prefetch>,
    waiting: RefCell<VecDeque<Job>>,
    under_way: Cell<u32>,
    counters: Cell<PrefetchCounters>,
}

impl Prefetcher {
    /// As it is told; none: it never does anything.
    pub fn new(settings: Option<Prefetch>) -> Self {
        Self { settings, ..Self::default() }
    }

    /// What it has done.
    pub fn counters(&self) -> PrefetchCounters {
        self.counters.get()
    }

    /// Pages are to be read.
    pub fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    pub fn count(&self, add: impl FnOnce(&mut PrefetchCounters)) {
        let mut counters = self.counters.get();
        add(&mut counters);
        self.counters.set(counters);
    }

    /// How much it may do; none: it never does anything.
    pub fn settings(&self) -> Option<Prefetch> {
        self.settings
    }

    /// Puts a job where it waits, if there is room. True: a task has to be started for it.
    pub fn submit(&self, job: Job) -> bool {
        let Some(settings) = self.settings else { return false };
        if self.waiting.borrow().len() >= settings.waiting as usize {
            self.count(|c| c.prefetches_dropped += 1);
            return false;
        }
        self.waiting.borrow_mut().push_back(job);
        let begins = self.under_way.get() < settings.at_once;
        if begins {
            self.under_way.set(self.under_way.get() + 1);
        }
        begins
    }

    /// What is to be done next, by somebody who has begun; none: that is the end of it.
    pub fn next(&self) -> Option<Job> {
        let job = self.waiting.borrow_mut().pop_front();
        if job.is_none() {
            self.under_way.set(self.under_way.get() - 1);
        }
        job
    }
}
