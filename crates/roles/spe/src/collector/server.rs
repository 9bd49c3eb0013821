//! The listening Collector.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::spec::CollectorSpec;
use assay_net::listen::{accept, listen};
use assay_protocol::clock::RunClock;
use assay_protocol::evaluation::{CollectorCounters, ListenerRow};
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::sleep;

use crate::collector::client;
use crate::collector::disk::Disk;
use crate::collector::error::CollectorError;
use crate::collector::log::ExchangeLog;
use crate::collector::shared::{CollectorShared, ListenerConnection};

/// Inverse of the share of the memory that the index of the disk takes in addition.
const INDEX_SHARE: u64 = 8;
/// A recording has a bit for each listener that has received it.
const LISTENERS_MAX: usize = 64;
/// Interval at which a full listener checks again for connections to close.
const FULL_RECHECK_INTERVAL: Duration = Duration::from_millis(20);

/// A listening Collector. Belongs to one tokio runtime that can run local tasks.
pub struct Collector {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Rc<CollectorShared>,
}

impl Collector {
    /// Binds the sockets. Nothing is accepted before [`Collector::serve`].
    pub fn bind(spec: &CollectorSpec) -> Result<Self, CollectorError> {
        if spec.listeners.is_empty() || spec.listeners.len() > LISTENERS_MAX {
            return Err(CollectorError::Listeners { most: LISTENERS_MAX, given: spec.listeners.len() });
        }
        let (mut listeners, mut addresses) = (Vec::new(), Vec::new());
        for listener in &spec.listeners {
            let refused = |cause| CollectorError::Listen { address: listener.listen, cause };
            let socket = listen(listener.listen).map_err(refused)?;
            addresses.push(socket.local_addr().map_err(refused)?);
            listeners.push(socket);
        }
        let disk = spec.disk.as_ref().map(|disk| {
            Disk::open(disk, spec.memory_bytes / INDEX_SHARE)
                .map_err(|cause| CollectorError::Disk { directory: disk.directory.clone(), cause })
        });
        let shared = CollectorShared::new(spec, &addresses, disk.transpose()?)?;
        Ok(Self { listeners, addresses, shared: Rc::new(shared) })
    }

    /// Addresses in the order of the listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Counters of each listener since the start; the maximum lateness is since the previous call.
    pub fn take_listeners(&self) -> Vec<ListenerRow> {
        self.shared.take_listeners()
    }

    pub fn counters(&self) -> CollectorCounters {
        self.shared.counters()
    }

    /// Sets the start of the evaluation, from which the log counts.
    pub fn starts(&self, clock: RunClock) {
        if let Some(log) = &*self.shared.log.borrow() {
            log.starts(clock);
        }
    }

    /// Next fault of the log that has not been reported.
    pub fn next_fault(&self) -> Option<String> {
        self.shared.log.borrow().as_ref().and_then(ExchangeLog::next_fault)
    }

    /// Writes the rest of the log and returns unreported faults. Requests that end later are not in it.
    pub fn finish_log(&self) -> Result<Vec<String>, CollectorError> {
        self.shared.log.take().map_or(Ok(Vec::new()), ExchangeLog::finish)
    }

    /// Accepts and serves connections, until its timer fails.
    pub async fn serve(self: Rc<Self>) -> Result<(), CollectorError> {
        self.shared.resources.run_deadlines();
        for index in 0..self.listeners.len() {
            let collector = Rc::clone(&self);
            spawn_local(async move { collector.accept(index).await });
        }
        self.shared.timer.dispatch(|_, wakeup| wakeup.notify_one()).await.map_err(CollectorError::Runtime)
    }

    async fn accept(&self, index: usize) {
        let listener = index as u16;
        loop {
            while self.shared.is_full(listener) {
                sleep(FULL_RECHECK_INTERVAL).await;
            }
            let (stream, _) = accept(&self.listeners[index]).await;
            let connected = ListenerConnection::new(&self.shared, listener);
            spawn_local(client::serve(stream, connected));
        }
    }
}
