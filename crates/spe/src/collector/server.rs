//! The Collector as it listens.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_plane::clock::RunClock;
use assay_plane::listen::{accept, listen};
use assay_role::evaluation::{CollectorCounters, CollectorSpec, ListenerRow};
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use crate::collector::client;
use crate::collector::disk::Disk;
use crate::collector::error::CollectorError;
use crate::collector::shared::Shared;

/// Largest share of the memory that the index of what is on disk takes beside it.
const INDEX_SHARE: u64 = 8;
/// Most listeners: a recording has a bit for each that has seen it.
const MOST_LISTENERS: usize = 64;

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

    /// Writes the rest of the log; how many of its lines are lost. Requests that end later are not in it.
    pub fn finish_log(&self) -> Result<u64, CollectorError> {
        let Some(log) = self.shared.log.take() else { return Ok(0) };
        let lost = log.lost();
        log.finish().map(|()| lost).map_err(CollectorError::Runtime)
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
        loop {
            let (stream, _) = accept(&self.listeners[index]).await;
            // Without it, the end of a response could wait for the acknowledgement of its beginning.
            if stream.set_nodelay(true).is_ok() {
                spawn_local(client::serve(stream, Rc::clone(&self.shared), index as u16));
            }
        }
    }
}
