//! The Multiplier: serves clients from the Collector, and sends every proxy under test the same requests.
//!
//! Three threads: clients are served in one ([`client`], [`exchange`]), requests sent to proxies in another ([`proxy_connections`]), and results
//! are written in a third ([`log`]). They share numbers and channels alone ([`shared_state`]), so a proxy that hangs,
//! resets, sends garbage or never ends costs its own samples and no client anything; past a bound, requests for it are dropped
//! and counted.
//!
//! Tunnels are relayed unseen ([`tunnel`]), or intercepted with an authority of the user's ([`intercept`]).
//!
//! # Evaluations
//!
//! `assay role collector|multiplier` are started and driven by `lab::evaluation`, as roles of a run are. A proxy under test has a *listener* of
//! the Collector as its only origin or parent; listener 0 is the Multiplier's. The Multiplier has three threads that share only atomic numbers
//! and channels: one serves clients and defers other work (`DeferredWork`), one sends requests to the proxies, and one writes results. The Collector's
//! response (`CollectorResponse`) is passed over a `watch` channel, so that a proxy may get the request before it is complete. A request for a proxy is
//! admitted before it is queued (`SharedState::admit`); otherwise its outcome is `Dropped`. The order of a request is
//! `multiplier::permutation(seed, number, count)`. `validate` is pure: bytes in pieces, a `ResponseSample` each, a `Comparison`. The code that starts a proxy
//! requests `/assay/health` through it; a listener serves that itself, and does not count it.
//!
//! *Proxies over TLS.* `SpePlan::over_tls` has, by label, the authority for whose host a proxy's certificate is verified. One that is started gets a certificate of its own
//! (`lab::harness::ProxyCertificate`, as in `conform`); `ProxyUnderTest::tls` tells the Multiplier what to trust (`net::tls::setup::client_to`, as for an origin of the Collector), and the connection to a proxy
//! begins with a session (`Upstream::open`). A product that cannot speak TLS itself has a `tls-terminator` in its description: `lab::real` starts it when the proxy
//! has made what it waits for (`after`), before it waits until the proxy is ready, in the same process group, so that it is measured, watched and ended with it.
//!
//! *Intercepted tunnels* (`--intercept`, off by default). After the response to a CONNECT, `multiplier::intercept` makes the connection one of TLS
//! (`ByteStream::secure`) with a server of `tls::intercept` for that host: a certificate signed at that moment by the authority in the directory that the user named, kept for at
//! most 1,024 hosts; the name that the client sends (SNI) must be the host, and ALPN offers `h2`, `http/1.1` and `http/1.0`. Then `http_stream::serve_connection` serves it like every
//! other connection, with the tunnel's `TunnelTarget` in `MultiplierClient`, so that connections to proxies, comparison and log are the same code. `multiplier::message` makes of `https://host/path` the request
//! `http://host:443/path`, the one form that every forward proxy passes on to its parent, and marks its number (`17-https`, `spe::number`). `collector::tunnel_tls` decides by that mark, or
//! for requests without a number by port and servers seen, whether a request is for an `https` URL; its recordings are under that URL, and it is fetched over TLS with verification,
//! through the same `CollectorShared::connect` as a default origin with TLS. A handshake that fails is counted once, by the kind of its `TlsError` (`OpenedCounters`), and its deadline is that of a
//! head. The Multiplier and `assay` check the authority at the start through one function (`net::tls::setup::interceptor`). Nothing reads the authority's certificate in order to trust it.
//!
//! *Does not:* store responses, or decide what is a difference ([`crate::validate`] does).

mod client;
mod client_context;
mod deferred;
mod error;
mod exchange;
mod fanout;
mod intercept;
mod limits;
mod log;
mod measurement;
mod message;
mod order;
mod pipeline;
mod proxy_connections;
mod role;
mod shared_state;
mod tunnel;
mod tunnel_target;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::spec::{MultiplierSpec, ProxyUnderTest};
use assay_net::byte_stream::ByteStream;
use assay_net::connection::Resources;
use assay_net::deadlines::LongestWaits;
use assay_net::limits::{EVICTION_GRACE, eviction_reserve};
use assay_net::listen::{accept, listen};
use assay_net::pool::Pool;
use assay_net::tls::client::{TlsClient, TlsServerName};
use assay_net::tls::server::TlsServer;
use assay_net::tls::setup::{self, TlsSetupError};
use assay_protocol::evaluation::MultiplierCounters;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::client::OpenConnection;
use self::client_context::ClientContext;
pub use self::client_context::MultiplierLimits;
use self::deferred::DeferredWork;
pub use self::error::MultiplierError;
use self::limits::ConnectionLimits;
use self::log::ResponseLog;
pub use self::order::permutation;
use self::proxy_connections::{Proxies, ProxyCommand};
pub use self::role::run;
use self::shared_state::SharedState;
use crate::validate::Rules;

const PROXIES_MAX: usize = 64;
/// Interval at which idle connections to the Collector are checked, and their maximum age.
const SWEEP: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(30);
/// Interval at which a full Multiplier checks again for clients to dismiss.
const FULL_RECHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Time for responses to clients at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// A listening Multiplier. Belongs to one tokio runtime that can run local tasks.
pub struct Multiplier {
    listener: TcpListener,
    address: SocketAddr,
    /// `None`: in the clear.
    tls: Option<TlsServer>,
    shared: Rc<ClientContext>,
    proxies_done: oneshot::Receiver<()>,
    writer: ResponseLog,
}

impl Multiplier {
    /// Binds the socket, and starts the proxies' thread and the log's. No client is accepted before [`Multiplier::serve`].
    pub fn bind(spec: &MultiplierSpec, limits: MultiplierLimits) -> Result<Self, MultiplierError> {
        let count = spec.proxies.len();
        let proxies = u8::try_from(count).ok().filter(|_| count <= PROXIES_MAX);
        let proxies = proxies.ok_or(MultiplierError::TooMany(count))?;
        let rules = Arc::new(Rules::load(spec.rules.as_deref())?);
        let listen_error = |cause| MultiplierError::Listen { address: spec.listen, cause };
        let listener = listen(spec.listen).map_err(listen_error)?;
        let address = listener.local_addr().map_err(listen_error)?;
        let tls = spec.tls.as_ref().map(setup::server).transpose()?.map(|tls| tls.with_http2());
        let interceptor = spec.intercept.as_ref().map(setup::interceptor).transpose()?;
        let labels = spec.proxies.iter().map(|proxy| proxy.label.clone()).collect();
        let (writer, entries) = ResponseLog::start(&spec.directory, spec.text_log, labels)?;
        let state = Arc::new(SharedState::new(count, spec.max_waiting, entries, writer.lost()));
        let destination = |proxy: &ProxyUnderTest| {
            let tls = proxy.tls.as_ref().map(|to| setup::client_to(&to.client, &to.authority)).transpose()?;
            Ok::<_, TlsSetupError>((proxy.address, tls))
        };
        let destinations = spec.proxies.iter().map(destination).collect::<Result<_, _>>()?;
        let step_timeout = Duration::from_millis(spec.response_timeout_ms);
        let (state_of_proxies, lost_key) = (Arc::clone(&state), spec.lost_key.clone());
        let (to_proxies, proxies_done) =
            start_proxy_thread(destinations, step_timeout, state_of_proxies, Arc::clone(&rules), lost_key)?;
        let resources = Resources::new();
        let shared = Rc::new(ClientContext {
            state,
            rules,
            pool: Pool::new(&resources),
            resources,
            collector: spec.collector,
            interceptor,
            is_forward: spec.forward,
            when: spec.when,
            turns: spec.turns,
            seed: spec.seed,
            proxies,
            to_proxies,
            deferred: DeferredWork::default(),
            name: format!("assay-{}-{}", std::process::id(), address.port()),
            limits,
            connection_limits: ConnectionLimits::new(limits.descriptors, count),
            tunnels: Cell::new(0),
            in_flight: Cell::new(0),
            is_stopping: Cell::new(false),
            left: Notify::new(),
            next_request: Cell::new(0),
        });
        Ok(Self { listener, address, tls, shared, proxies_done, writer })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn counters(&self) -> MultiplierCounters {
        self.shared.counters()
    }

    /// Next fault of the log that has not been reported.
    pub fn next_fault(&self) -> Option<String> {
        self.writer.next_fault()
    }

    /// Sets the start of the evaluation (`CLOCK_MONOTONIC`), from which times count.
    pub fn start(&self, at_ns: u64) {
        self.shared.state.start(at_ns);
    }

    /// Accepts and serves clients, for ever.
    pub async fn serve(&self) {
        let deferred = self.shared.deferred.run();
        tokio::pin!(deferred);
        self.shared.resources.run_deadlines();
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut longest_waits = LongestWaits::default();
        loop {
            let is_full = self.is_full(&mut longest_waits);
            tokio::select! {
                // A connection too young to be closed a moment ago may be old enough now.
                () = sleep(FULL_RECHECK_INTERVAL), if is_full => {}
                () = self.shared.left.notified(), if is_full => {}
                (stream, peer) = accept(&self.listener), if !is_full => {
                    // Without a TLS session the client gets no response.
                    let Ok(session) = self.tls.as_ref().map(TlsServer::accept).transpose() else { continue };
                    let stream = ByteStream::new(stream, session);
                    spawn_local(client::serve(stream, peer.ip(), OpenConnection::next(&self.shared)));
                }
                () = &mut deferred => {}
                _ = sweep.tick() => self.shared.pool.close_older_than(IDLE),
            }
        }
    }

    /// Whether no more clients may be accepted now. Close to the limit, the connection that has been idle for longest is closed.
    fn is_full(&self, longest_waits: &mut LongestWaits) -> bool {
        let max_clients = self.shared.connection_limits.clients as usize;
        let free_slots = max_clients.saturating_sub(self.shared.state.open_clients.load(Relaxed) as usize);
        if free_slots <= eviction_reserve(max_clients) {
            longest_waits.dismiss(&self.shared.resources.deadlines, EVICTION_GRACE, |wait| !wait.is_stream);
        }
        free_slots == 0
    }

    /// Waits a while for outstanding responses to clients and of proxies; then writes the rest of the log. Returns the counters
    /// and unreported faults.
    pub async fn finish(self) -> Result<(MultiplierCounters, Vec<String>), MultiplierError> {
        let Self { listener, shared, proxies_done, writer, .. } = self;
        drop(listener);
        shared.is_stopping.set(true);
        shared.resources.deadlines.close_idle();
        let all_left = async {
            loop {
                let left = shared.left.notified();
                if shared.state.open_clients.load(Relaxed) == 0 {
                    return;
                }
                left.await;
            }
        };
        // Slower clients are cut off when the process ends.
        tokio::select! {
            _ = timeout(DRAIN_TIMEOUT, all_left) => {}
            () = shared.deferred.run() => {}
        }
        shared.deferred.flush();
        // An error means that the thread has ended already.
        let _ = shared.to_proxies.send(ProxyCommand::End);
        let _ = proxies_done.await;
        shared.state.close();
        let faults = writer.finish()?;
        Ok((shared.counters(), faults))
    }

    /// Writes what has been logged, and ends.
    pub fn abandon(self) -> Result<(), MultiplierError> {
        self.shared.deferred.flush();
        self.shared.state.close();
        self.writer.finish().map(drop)
    }
}

/// Starts the proxies' thread. Returns the sender of its commands, and a receiver of its end.
fn start_proxy_thread(
    destinations: Vec<(SocketAddr, Option<(TlsClient, TlsServerName)>)>,
    step_timeout: Duration,
    state: Arc<SharedState>,
    rules: Arc<Rules>,
    lost_key: String,
) -> Result<(mpsc::UnboundedSender<ProxyCommand>, oneshot::Receiver<()>), MultiplierError> {
    let (sender, commands) = mpsc::unbounded_channel();
    let (done, ended) = oneshot::channel();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let work = move || {
        let runtime = match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => return drop(begun.send(Err(error))),
        };
        // The caller is waiting for this.
        let _ = begun.send(Ok(()));
        let proxies =
            Proxies { destinations, step_timeout, state, rules, lost_key, resources: Resources::new() };
        runtime.block_on(async {
            proxies.resources.run_deadlines();
            proxy_connections::run(proxies, commands).await;
        });
        drop(runtime);
        let _ = done.send(());
    };
    std::thread::Builder::new().name("proxies".into()).spawn(work).map_err(MultiplierError::Start)?;
    has_begun.recv().map_err(|_| MultiplierError::Panicked)?.map_err(MultiplierError::Start)?;
    Ok((sender, ended))
}
