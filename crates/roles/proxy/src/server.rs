//! The listening proxy, and its periodic tasks.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::spec::ProxySpec;
use assay_net::byte_stream::ByteStream;
use assay_net::deadlines::LongestWaits;
use assay_net::limits::{EVICTION_GRACE, eviction_reserve};
use assay_net::listen::{accept, listen};
use assay_net::pool::UpstreamTls;
use assay_net::tls::client::TlsServerName;
use assay_net::tls::server::TlsServer;
use assay_net::tls::settings::ClientTls;
use assay_net::tls::setup;
use assay_protocol::message::ProxyCounters;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::access_log::AccessLog;
use crate::client;
use crate::error::ProxyError;
use crate::peers::Peers;
use crate::shared::{Clock, ProxyLimits, ProxyShared};

/// Interval at which a full proxy checks again for connections to close.
const FULL_RECHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Interval at which idle origin connections are checked.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// A listening proxy. Belongs to one tokio runtime that can run local tasks.
pub struct Proxy {
    listener: TcpListener,
    /// `None`: in the clear.
    tls: Option<TlsServer>,
    shared: Rc<ProxyShared>,
}

impl Proxy {
    /// Binds the sockets. Nothing is accepted before [`Proxy::serve`].
    pub fn bind(spec: &ProxySpec, clock: Clock, limits: ProxyLimits) -> Result<Self, ProxyError> {
        if spec.threads > 1 {
            return Err(ProxyError::Threads(spec.threads));
        }
        let listen_error = |cause| ProxyError::Listen { address: spec.listen, cause };
        let listener = listen(spec.listen).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let peers = Peers::new(spec.cooperation.as_ref())
            .map_err(|(address, cause)| ProxyError::Listen { address, cause })?;
        let create = |path: &PathBuf| {
            AccessLog::create(path).map_err(|cause| ProxyError::Log { path: path.clone(), cause })
        };
        let log = spec.access_log.as_ref().map(create).transpose()?;
        let tls = spec.tls.as_ref().map(setup::server).transpose()?.map(|tls| tls.with_http2());
        let origin_tls = spec.origin_tls.as_ref().map(|settings| origin_tls(spec, settings)).transpose()?;
        let shared = Rc::new(ProxyShared::new(spec, peers, clock, limits, address, log, origin_tls));
        Ok(Self { listener, tls, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    pub fn counters(&self) -> ProxyCounters {
        self.shared.counters()
    }

    /// Address for ICP queries of other caches.
    pub fn icp_address(&self) -> Option<SocketAddr> {
        self.shared.peers.address()
    }

    /// Writes out the buffered access log.
    pub fn flush(&self) {
        if let Some(log) = &self.shared.access_log {
            log.borrow_mut().flush();
        }
    }

    /// Accepts and serves connections, for ever.
    pub async fn serve(&self) {
        let listening = self.shared.peers.listen(|target| self.shared.holds(target));
        tokio::pin!(listening);
        self.shared.resources.run_deadlines();
        let mut sweep = interval(SWEEP_INTERVAL);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut longest_waits = LongestWaits::default();
        loop {
            let is_full = self.is_full(&mut longest_waits);
            tokio::select! {
                // A connection too young to be closed a moment ago may be old enough now.
                () = sleep(FULL_RECHECK_INTERVAL), if is_full => {}
                () = self.shared.client_left.notified(), if is_full => {}
                (stream, _) = accept(&self.listener), if !is_full => {
                    // Without a TLS session the client gets no response.
                    let Ok(session) = self.tls.as_ref().map(TlsServer::accept).transpose() else { continue };
                    let stream = ByteStream::new(stream, session);
                    let guard = ConnectionGuard::new(&self.shared);
                    spawn_local(async move {
                        client::serve(stream, Rc::clone(&guard.0)).await;
                        drop(guard);
                    });
                }
                () = &mut listening => {}
                _ = sweep.tick() => {
                    self.shared.pool.close_older_than(self.shared.limits.origin_idle);
                    self.flush();
                }
            }
        }
    }
}

impl Proxy {
    /// Whether no more connections may be accepted now. Close to the limit, the connection that has been idle for longest is
    /// closed.
    fn is_full(&self, longest_waits: &mut LongestWaits) -> bool {
        let max_clients = self.shared.limits.clients;
        let free_slots = max_clients.saturating_sub(self.shared.clients.get());
        if free_slots <= eviction_reserve(max_clients) {
            longest_waits.dismiss(&self.shared.resources.deadlines, EVICTION_GRACE, |wait| !wait.is_stream);
        }
        free_slots == 0
    }
}

/// Counts a client connection while it is open.
struct ConnectionGuard(Rc<ProxyShared>);

impl ConnectionGuard {
    fn new(shared: &Rc<ProxyShared>) -> Self {
        shared.clients.set(shared.clients.get() + 1);
        Self(Rc::clone(shared))
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get() - 1);
        self.0.client_left.notify_one();
    }
}

/// TLS to origins: each certificate is verified for the host by which clients know the origin.
fn origin_tls(spec: &ProxySpec, settings: &ClientTls) -> Result<UpstreamTls, ProxyError> {
    let name = |authority: &str| {
        TlsServerName::from_authority(authority)
            .map_err(|cause| ProxyError::Name { authority: authority.to_owned(), cause })
    };
    let names = spec.origins.iter().map(|origin| Ok((origin.address, name(&origin.authority)?)));
    Ok(UpstreamTls { client: setup::client(settings)?, names: names.collect::<Result<_, ProxyError>>()? })
}
