//! The proxy as it listens, and what it does between requests.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use crate::spec::ProxySpec;
use assay_net::byte_stream::ByteStream;
use assay_net::limits::{SPARED, room_of};
use assay_net::listen::{accept, listen};
use assay_net::pool::UpstreamTls;
use assay_net::tls::client::Name;
use assay_net::tls::server::Server;
use assay_net::tls::settings::ClientTls;
use assay_net::tls::setup;
use assay_net::watch::Longest;
use assay_protocol::message::ProxyCounters;
use tokio::net::TcpListener;
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::access_log::AccessLog;
use crate::client;
use crate::error::ProxyError;
use crate::peers::Peers;
use crate::shared::{Clock, Limits, Shared};

/// When it is looked again for connections that can be ended, where there may be no more.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How often idle origin connections are looked through.
const SWEEP: Duration = Duration::from_secs(1);

/// A proxy that listens. It belongs to one tokio runtime that can run local tasks.
pub struct Proxy {
    listener: TcpListener,
    /// How clients are spoken to over TLS; none: in the clear.
    tls: Option<Server>,
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
        let tls = spec.tls.as_ref().map(setup::server).transpose()?.map(|tls| tls.speaking_both());
        let origin_tls = spec.origin_tls.as_ref().map(|told| to_origins(spec, told)).transpose()?;
        let shared = Rc::new(Shared::new(spec, peers, clock, limits, address, log, origin_tls));
        Ok(Self { listener, tls, shared })
    }

    pub fn address(&self) -> SocketAddr {
        self.shared.address
    }

    /// What it has done so far.
    pub fn counters(&self) -> ProxyCounters {
        self.shared.counters()
    }

    /// Where it receives other caches' ICP queries.
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
        let listening = self.shared.peers.listen(|target| self.shared.holds(target));
        tokio::pin!(listening);
        self.shared.resources.keep_deadlines();
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut longest = Longest::default();
        loop {
            let is_full = self.is_full(&mut longest);
            tokio::select! {
                // A connection that has not waited for long enough to be ended may have by then.
                () = sleep(LOOK_AGAIN), if is_full => {}
                () = self.shared.client_left.notified(), if is_full => {}
                (stream, _) = accept(&self.listener), if !is_full => {
                    // A session that cannot begin is a client that gets no response.
                    let Ok(session) = self.tls.as_ref().map(Server::accept).transpose() else { continue };
                    let stream = ByteStream::new(stream, session);
                    let connected = Connected::new(&self.shared);
                    spawn_local(async move {
                        client::serve(stream, Rc::clone(&connected.0)).await;
                        drop(connected);
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
    /// Whether no more connections may be accepted now. One that its client keeps without a use ends where there is not much room, that
    /// which has waited longest.
    fn is_full(&self, longest: &mut Longest) -> bool {
        let most = self.shared.limits.clients;
        let room = most.saturating_sub(self.shared.clients.get());
        if room <= room_of(most) {
            longest.dismiss(&self.shared.resources.watch, SPARED, |wait| !wait.is_stream);
        }
        room == 0
    }
}

/// A connection of a client, as it is counted.
struct Connected(Rc<Shared>);

impl Connected {
    fn new(shared: &Rc<Shared>) -> Self {
        shared.clients.set(shared.clients.get() + 1);
        Self(Rc::clone(shared))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.clients.set(self.0.clients.get() - 1);
        self.0.client_left.notify_one();
    }
}

/// How origins are spoken to: the certificate of each is verified for the host that clients know it by.
fn to_origins(spec: &ProxySpec, told: &ClientTls) -> Result<UpstreamTls, ProxyError> {
    let name = |authority: &str| {
        Name::of_authority(authority)
            .map_err(|cause| ProxyError::Name { authority: authority.to_owned(), cause })
    };
    let names = spec.origins.iter().map(|origin| Ok((origin.address, name(&origin.authority)?)));
    Ok(UpstreamTls { client: setup::client(told)?, names: names.collect::<Result<_, ProxyError>>()? })
}
