//! The Collector as it listens.

use std::net::SocketAddr;
use std::rc::Rc;

use assay_plane::listen::{accept, listen};
use assay_role::evaluation::CollectorSpec;
use tokio::net::TcpListener;
use tokio::task::spawn_local;

use crate::collector::client;
use crate::collector::disk::Disk;
use crate::collector::error::CollectorError;
use crate::collector::shared::{DoorCounters, Shared, Totals};

/// Largest share of the memory that the index of what is on disk takes beside it.
const INDEX_SHARE: u64 = 8;
/// Most doors: who has seen a recording is a bit for each.
const MOST_DOORS: usize = 64;

/// A Collector that listens. It belongs to one tokio runtime that can run local tasks.
pub struct Collector {
    doors: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
    shared: Rc<Shared>,
}

impl Collector {
    /// Listens. Nothing is accepted before [`Collector::serve`].
    pub fn bind(spec: &CollectorSpec) -> Result<Self, CollectorError> {
        if spec.doors.is_empty() || spec.doors.len() > MOST_DOORS {
            return Err(CollectorError::Doors { most: MOST_DOORS, given: spec.doors.len() });
        }
        let (mut doors, mut addresses) = (Vec::new(), Vec::new());
        for door in &spec.doors {
            let refused = |cause| CollectorError::Listen { address: door.listen, cause };
            let listener = listen(door.listen).map_err(refused)?;
            addresses.push(listener.local_addr().map_err(refused)?);
            doors.push(listener);
        }
        let disk = spec.disk.as_ref().map(|disk| {
            Disk::open(disk, spec.memory_bytes / INDEX_SHARE)
                .map_err(|cause| CollectorError::Disk { directory: disk.directory.clone(), cause })
        });
        let shared = Shared::new(spec, &addresses, disk.transpose()?).map_err(CollectorError::Runtime)?;
        Ok(Self { doors, addresses, shared: Rc::new(shared) })
    }

    /// Where it listens, in the order of the doors.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// What each door has seen since the start; the latest lateness counts from one call to the next.
    pub fn take_doors(&self) -> Vec<DoorCounters> {
        self.shared.take_doors()
    }

    /// What it has done since the start.
    pub fn totals(&self) -> Totals {
        self.shared.totals()
    }

    /// Accepts and serves connections, until its timer fails.
    pub async fn serve(self: Rc<Self>) -> Result<(), CollectorError> {
        self.shared.resources.keep_deadlines();
        for index in 0..self.doors.len() {
            let collector = Rc::clone(&self);
            spawn_local(async move { collector.accept(index).await });
        }
        self.shared.timer.dispatch(|_, bell| bell.notify_one()).await.map_err(CollectorError::Runtime)
    }

    async fn accept(&self, index: usize) {
        loop {
            let (stream, _) = accept(&self.doors[index]).await;
            // Without it, the end of an answer could wait for the acknowledgement of its beginning.
            if stream.set_nodelay(true).is_ok() {
                spawn_local(client::serve(stream, Rc::clone(&self.shared), index as u16));
            }
        }
    }
}
