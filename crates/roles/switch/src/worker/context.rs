//! State that all tasks of a worker share: data only, so that its users need not know who drives the worker.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use assay_cluster::dispatch::Moment;
use assay_http::date::{DATE_BYTES, DateCache};
use assay_net::connection::Resources;
use assay_net::deadlines::LongestWaits;
use tokio::sync::Notify;

use super::pipes::Pipes;
use super::queue::Queue;
use super::runtime::now_ns;
use super::setup::{Registry, WorkerSetup};
use super::slot::AcquireError;
use crate::access_log::AccessLogWriter;
use crate::messages::ReportSender;
use crate::tally::{LiveCounts, add};

pub struct WorkerContext {
    pub(super) resources: Rc<Resources>,
    pub(super) pipes: Rc<Pipes>,
    pub(super) queue: Rc<Queue>,
    pub(super) setup: RefCell<Rc<WorkerSetup>>,
    pub(super) registry: Registry,
    pub(super) counts: LiveCounts,
    /// Connections in the order in which they are closed to make room for others.
    pub(super) longest_waits: RefCell<LongestWaits>,
    pub(super) log: RefCell<Option<AccessLogWriter>>,
    pub(super) date: RefCell<DateCache>,
    pub(super) reports: ReportSender,
    pub(super) is_stopping: Cell<bool>,
    /// Notified when a client has gone, a tick has passed, or the switch stops: accepting tasks check again.
    pub(super) changed: Notify,
    pub(super) worker: usize,
}

impl WorkerContext {
    /// Counts a request that got no server. A client that left is counted where that is noticed.
    pub(super) fn count_no_server(&self, error: AcquireError) {
        if let Some(reason) = error.reason() {
            add(&self.counts.no_server[reason as usize]);
        }
    }

    pub(super) fn setup(&self) -> Rc<WorkerSetup> {
        Rc::clone(&self.setup.borrow())
    }

    /// Writes out the buffered log, and counts lost lines.
    pub(super) fn flush_log(&self) {
        if let Some(log) = &mut *self.log.borrow_mut() {
            let lost = &self.counts.log_lost;
            lost.set(lost.get() + log.flush());
        }
    }

    /// Current date, as header fields have it.
    pub(super) fn date(&self) -> [u8; DATE_BYTES] {
        *self.date.borrow_mut().at(unix_s())
    }
}

/// Current time, as policies count it.
pub fn moment() -> Moment {
    Moment::from_nanos(now_ns())
}

pub fn unix_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
