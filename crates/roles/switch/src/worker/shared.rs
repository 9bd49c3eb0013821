//! What everything in a worker shares: data alone, so that those who use it need not know who drives the worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_cluster::dispatch::Moment;
use assay_http::date::{DATE_BYTES, DateCache};
use assay_net::connection::Resources;
use assay_net::watch::Longest;
use tokio::sync::Notify;

use super::pipes::Pipes;
use super::queue::Queue;
use super::runtime::now_ns;
use super::setup::{Registry, Setup};
use super::slot::Unserved;
use crate::access_log::LogWriter;
use crate::plan::NewsSender;
use crate::tally::{LiveCounts, add};

/// What everything in a worker shares.
pub struct Shared {
    pub(super) resources: Rc<Resources>,
    pub(super) pipes: Rc<Pipes>,
    pub(super) queue: Rc<Queue>,
    pub(super) setup: RefCell<Rc<Setup>>,
    pub(super) registry: Registry,
    pub(super) counts: LiveCounts,
    /// Connections that end first when there is no room for others.
    pub(super) longest: RefCell<Longest>,
    pub(super) log: RefCell<Option<LogWriter>>,
    pub(super) date: RefCell<DateCache>,
    pub(super) news: NewsSender,
    pub(super) is_stopping: Cell<bool>,
    /// A client has gone, a tick has passed, or the switch is to stop: the accepting tasks look again.
    pub(super) changed: Notify,
    pub(super) worker: usize,
}

impl Shared {
    /// Counts a request that got no server. One whose client has left is counted where that is seen.
    pub(super) fn count_unserved(&self, unserved: Unserved) {
        if let Some(reason) = unserved.reason() {
            add(&self.counts.no_server[reason as usize]);
        }
    }

    pub(super) fn setup(&self) -> Rc<Setup> {
        Rc::clone(&self.setup.borrow())
    }

    /// Writes out what there is of the log, and counts what could not be written.
    pub(super) fn flush_log(&self) {
        if let Some(log) = &mut *self.log.borrow_mut() {
            let lost = &self.counts.log_lost;
            lost.set(lost.get() + log.flush());
        }
    }

    /// The date of now, as fields have it.
    pub(super) fn date(&self) -> [u8; DATE_BYTES] {
        *self.date.borrow_mut().at(unix_s())
    }
}

/// Now, as policies count it.
pub fn moment() -> Moment {
    Moment::from_nanos(now_ns())
}

pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
