//! How does the proxy listen, and what does it do while nobody asks for anything?

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use assay_plane::clock::monotonic_ns;
use assay_plane::listen::listen;
use assay_plane::watch::TICK_NS;
use assay_role::proxy::ProxySpec;
use assay_role::words::ProxyCounters;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::access_log::AccessLog;
use crate::client;
use crate::error::ProxyError;
use crate::peers::{self, Peers};
use crate::shared::{Clock, Limits, Shared};

/// How often deadlines are looked through.
const TICK: Duration = Duration::from_nanos(TICK_NS);
/// Idle origin connections are looked through every so many of these: once a second.
const TICKS_PER_SWEEP: u64 = 20;
/// How long to wait when no descriptor is left for a new connection.
const OUT_OF_DESCRIPTORS: Duration = Duration::from_millis(20);

/// A proxy that listens. It belongs to one tokio runtime that can run local tasks.
pub struct Proxy {
    listener: TcpListener,
    shared: Rc<Shared>,
}

impl Proxy {
    /// Listens. Nothing is accepted before [`Proxy::serve`].
    pub fn bind(spec: &ProxySpec, clock: Clock, limits: Limits) -> Result<Self, ProxyError> {
        if spec.threads > 1 {
            return Err(ProxyError::Threads(spec.threads));
        }
        let refused = |cause| ProxyError::Listen { address: spec.listen, cause };
        let listener = listen(spec.listen).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let peers = Peers::new(spec.cooperation.as_ref())
            .map_err(|(address, cause)| ProxyError::Listen { address, cause })?;
        let create = |path: &PathBuf| {
            AccessLog::create(path).map_err(|cause| ProxyError::Log { path: path.clone(), cause })
        };
        let log = spec.access_log.as_ref().map(create).transpose()?;
        let shared = Rc::new(Shared::new(spec, peers, clock, limits, address, log));
        Ok(Self { listener, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// What it has done so far.
    pub fn counters(&self) -> ProxyCounters {
        self.shared.counters()
    }

    /// Where it answers other caches' ICP queries.
    pub fn icp_address(&self) -> Option<SocketAddr> {
        self.shared.peers.address()
    }

    /// Writes what is kept of the access log.
    pub fn flush(&self) {
        if let Some(log) = &self.shared.access_log {
            log.borrow_mut().flush();
        }
    }

    /// Accepts and serves connections, for ever.
    pub async fn serve(&self) {
        let listening = peers::listen(&self.shared);
        tokio::pin!(listening);
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks: u64 = 0;
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => {
                        spawn_local(client::serve(stream, Rc::clone(&self.shared)));
                    }
                    // The connection is gone, or no descriptor is left: others end, and then there are some
                    // again.
                    Err(_) => sleep(OUT_OF_DESCRIPTORS).await,
                },
                () = &mut listening => {}
                _ = tick.tick() => {
                    self.shared.watch.tick(monotonic_ns());
                    ticks += 1;
                    if ticks.is_multiple_of(TICKS_PER_SWEEP) {
                        self.shared.pool.close_older_than(self.shared.limits.origin_idle);
                        self.flush();
                    }
                }
            }
        }
    }
}
