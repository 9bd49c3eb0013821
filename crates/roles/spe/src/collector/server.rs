//! The Collector as it listens.

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
use crate::collector::log::Log;
use crate::collector::shared::{Connected, Shared};

/// Largest share of the memory that the index of what is on disk takes beside it.
const INDEX_SHARE: u64 = 8;
/// Most listeners: a recording has a bit for each that has seen it.
const MOST_LISTENERS: usize = 64;
/// When it is looked again for connections that can be ended, where there may be no more.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A Collector that listens. It belongs to one tokio runtime that can run local tasks.
pub struct Collector {
    listeners: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Rc<Shared>,
}

impl Collector {
    /// Listens. Nothing is accepted before [`Collector::serve`].
    pub fn bind(spec: &CollectorSpec) -> Result<Self, CollectorError> {
        if spec.listeners.is_empty() || spec.listeners.len() > MOST_LISTENERS {
            return Err(CollectorError::Listeners { most: MOST_LISTENERS, given: spec.listeners.len() });
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
        let shared = Shared::new(spec, &addresses, disk.transpose()?)?;
        Ok(Self { listeners, addresses, shared: Rc::new(shared) })
    }

    /// Where it listens, in the order of the listeners.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What each listener has seen since the start; the latest lateness counts from one call to the next.
    pub fn take_listeners(&self) -> Vec<ListenerRow> {
        self.shared.take_listeners()
    }

    /// What it has done since the start.
    pub fn counters(&self) -> CollectorCounters {
        self.shared.counters()
    }

    /// The evaluation starts at this instant: the log counts from it.
    pub fn starts(&self, clock: RunClock) {
        if let Some(log) = &*self.shared.log.borrow() {
            log.starts(clock);
        }
    }

    /// The next thing that went wrong with the log and was not told.
    pub fn trouble(&self) -> Option<String> {
        self.shared.log.borrow().as_ref().and_then(Log::trouble)
    }

    /// Writes the rest of the log; what went wrong with it and was not told. Requests that end later are not in it.
    pub fn finish_log(&self) -> Result<Vec<String>, CollectorError> {
        self.shared.log.take().map_or(Ok(Vec::new()), Log::finish)
    }

    /// Accepts and serves connections, until its timer fails.
    pub async fn serve(self: Rc<Self>) -> Result<(), CollectorError> {
        self.shared.resources.keep_deadlines();
        for index in 0..self.listeners.len() {
            let collector = Rc::clone(&self);
            spawn_local(async move { collector.accept(index).await });
        }
        self.shared.timer.dispatch(|_, bell| bell.notify_one()).await.map_err(CollectorError::Runtime)
    }

    async fn accept(&self, index: usize) {
        let listener = index as u16;
        loop {
            while self.shared.is_full(listener) {
                sleep(LOOK_AGAIN).await;
            }
            let (stream, _) = accept(&self.listeners[index]).await;
            let connected = Connected::new(&self.shared, listener);
            spawn_local(client::serve(stream, connected));
        }
    }
}
