//! The Multiplier: serves clients from the Collector, and sends every proxy under test the same requests.
//!
//! Three threads: clients are served in one ([`client`], [`exchange`]), requests sent to proxies in another ([`lanes`]), and what
//! was measured is written down in a third ([`log`]). They share numbers and channels alone ([`board`]), so a proxy that hangs,
//! resets, sends garbage or never ends costs its own samples and no client anything; past a bound, requests for it are dropped
//! and counted.
//!
//! Tunnels go through unseen ([`tunnel`]), or are opened with an authority of the user's ([`opened`]).
//!
//! # Evaluations
//!
//! `assay role collector|multiplier` are started and driven by `lab::evaluation`, as roles of a run are. A proxy under test has a *listener* of
//! the Collector as its only origin or parent; listener 0 is the Multiplier's. The Multiplier has three threads that share only atomic numbers
//! and channels: one serves clients and defers other work (`Later`), one sends requests to the proxies, and one writes results. The Collector's
//! response (`Direct`) is passed over a `watch` channel, so that a proxy may get the request before it is complete. A request for a proxy is
//! admitted before it is queued (`Board::admit`); otherwise its outcome is `Dropped`. The order of a request is
//! `multiplier::permuted(seed, number, count)`. `validate` is pure: bytes in pieces, a `Sample` each, a `Finding`. The code that starts a proxy
//! requests `/assay/health` through it; a listener serves that itself, and does not count it.
//!
//! *Proxies over TLS.* `SpePlan::over_tls` has, by label, the authority for whose host a proxy's certificate is verified. One that is started gets a certificate of its own
//! (`led::Certified`, as in `conform`); `ProxyUnderTest::tls` tells the Multiplier what to trust (`net::tls::setup::client_to`, as for an origin of the Collector), and a lane's connection
//! begins with a session (`Upstream::open`). A product that cannot speak TLS itself has a `tls-terminator` in its description: `lab::real_proxy` starts it when the proxy
//! has made what it waits for (`after`), before it waits until the proxy is ready, in the same process group, so that it is measured, watched and ended with it.
//!
//! *Opened tunnels* (`--intercept`, off by default). After the response to a CONNECT, `multiplier::opened` makes the connection one of TLS
//! (`ByteStream::secure`) with a server of `tls::intercept` for that host: a certificate signed at that moment by the authority in the directory that the user named, kept for at
//! most 1,024 hosts; the name that the client sends (SNI) must be the host, and ALPN offers `h2`, `http/1.1` and `http/1.0`. Then `http_stream::serve_connection` serves it like every
//! other connection, with the tunnel's `Place` in `Client`, so that lanes, comparison and log are the same code. `multiplier::message` makes of `https://host/path` the request
//! `http://host:443/path`, the one form that every forward proxy passes on to its parent, and marks its number (`17-https`, `spe::number`). `collector::secured` decides by that mark, or
//! for requests without a number by port and servers seen, whether a request is for an `https` URL; its recordings are under that URL, and it is fetched over TLS with verification,
//! through the same `Shared::connect` as a default origin with TLS. A handshake that fails is counted once, by the kind of its `TlsError` (`OpenedCounters`), and its deadline is that of a
//! head. The Multiplier and `assay` check the authority at the start through one function (`net::tls::setup::interceptor`). Nothing reads the authority's certificate in order to trust it.
//!
//! *Does not:* store responses, or decide what is a difference ([`crate::validate`] does).

mod board;
mod client;
mod error;
mod exchange;
mod lanes;
mod later;
mod log;
mod message;
mod opened;
mod order;
mod pipeline;
mod place;
mod response;
mod rest;
mod role;
mod room;
mod shared;
mod tunnel;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::spec::{MultiplierSpec, ProxyUnderTest};
use assay_net::byte_stream::ByteStream;
use assay_net::connection::Resources;
use assay_net::limits::{SPARED, room_of};
use assay_net::listen::{accept, listen};
use assay_net::pool::Pool;
use assay_net::tls::client::{Client, Name};
use assay_net::tls::server::Server;
use assay_net::tls::setup::{self, TlsSetupError};
use assay_net::watch::Longest;
use assay_protocol::evaluation::MultiplierCounters;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::spawn_local;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use self::board::Board;
use self::client::Connected;
pub use self::error::MultiplierError;
use self::lanes::{Proxies, ToProxies};
use self::later::Later;
use self::log::Writer;
pub use self::order::permuted;
pub use self::role::run;
use self::room::Room;
pub use self::shared::Limits;
use self::shared::Shared;
use crate::validate::Rules;

/// Most proxies under test.
const MOST_PROXIES: usize = 64;
/// How often idle connections to the Collector are looked through, and how old they may be.
const SWEEP: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(30);
/// When it is looked again for clients that can be sent away, where there may be no more.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long responses to clients may take at the end.
const LAST_PATIENCE: Duration = Duration::from_secs(5);

/// A Multiplier that listens. It belongs to one tokio runtime that can run local tasks.
pub struct Multiplier {
    listener: TcpListener,
    address: SocketAddr,
    /// How clients are spoken to over TLS; none: in the clear.
    tls: Option<Server>,
    shared: Rc<Shared>,
    proxies_done: oneshot::Receiver<()>,
    writer: Writer,
}

impl Multiplier {
    /// Listens, and starts the threads that send requests to proxies and write. No client is accepted before [`Multiplier::serve`].
    pub fn bind(spec: &MultiplierSpec, limits: Limits) -> Result<Self, MultiplierError> {
        let count = spec.proxies.len();
        let proxies = u8::try_from(count).ok().filter(|_| count <= MOST_PROXIES);
        let proxies = proxies.ok_or(MultiplierError::TooMany(count))?;
        let rules = Arc::new(Rules::load(spec.rules.as_deref())?);
        let refused = |cause| MultiplierError::Listen { address: spec.listen, cause };
        let listener = listen(spec.listen).map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        let tls = spec.tls.as_ref().map(setup::server).transpose()?.map(|tls| tls.speaking_both());
        let interceptor = spec.intercept.as_ref().map(setup::interceptor).transpose()?;
        let labels = spec.proxies.iter().map(|proxy| proxy.label.clone()).collect();
        let (writer, entries) = Writer::start(&spec.directory, spec.text_log, labels)?;
        let board = Arc::new(Board::new(count, spec.most_waiting, (entries, writer.lost())));
        let destination = |proxy: &ProxyUnderTest| {
            let told =
                proxy.tls.as_ref().map(|to| setup::client_to(&to.client, &to.authority)).transpose()?;
            Ok::<_, TlsSetupError>((proxy.address, told))
        };
        let destinations = spec.proxies.iter().map(destination).collect::<Result<_, _>>()?;
        let patience = Duration::from_millis(spec.patience_ms);
        let requested = (Arc::clone(&board), Arc::clone(&rules), spec.lost_key.clone());
        let (to_proxies, proxies_done) = start_lanes(destinations, patience, requested)?;
        let resources = Resources::new();
        let shared = Rc::new(Shared {
            board,
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
            later: Later::default(),
            name: format!("assay-{}-{}", std::process::id(), address.port()),
            limits,
            room: Room::of(limits.descriptors, count),
            tunnels: Cell::new(0),
            under_way: Cell::new(0),
            is_stopping: Cell::new(false),
            left: Notify::new(),
            next_request: Cell::new(0),
        });
        Ok(Self { listener, address, tls, shared, proxies_done, writer })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done so far.
    pub fn counters(&self) -> MultiplierCounters {
        self.shared.counters()
    }

    /// The next thing that went wrong with writing responses down and was not told.
    pub fn trouble(&self) -> Option<String> {
        self.writer.trouble()
    }

    /// From now on, times count from this instant (`CLOCK_MONOTONIC`).
    pub fn start(&self, at_ns: u64) {
        self.shared.board.start(at_ns);
    }

    /// Accepts and serves clients, for ever.
    pub async fn serve(&self) {
        let later = self.shared.later.work();
        tokio::pin!(later);
        self.shared.resources.keep_deadlines();
        let mut sweep = interval(SWEEP);
        sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut longest = Longest::default();
        loop {
            let is_full = self.is_full(&mut longest);
            tokio::select! {
                // One that has not waited for long enough to be ended may have by then.
                () = sleep(LOOK_AGAIN), if is_full => {}
                () = self.shared.left.notified(), if is_full => {}
                (stream, peer) = accept(&self.listener), if !is_full => {
                    // A session that cannot begin is a client that gets no response.
                    let Ok(session) = self.tls.as_ref().map(Server::accept).transpose() else { continue };
                    let stream = ByteStream::new(stream, session);
                    spawn_local(client::serve(stream, peer.ip(), Connected::next(&self.shared)));
                }
                () = &mut later => {}
                _ = sweep.tick() => self.shared.pool.close_older_than(IDLE),
            }
        }
    }

    /// Whether no more clients may be accepted now. One that keeps its connection without a use ends where there is not much room, that
    /// which has waited longest.
    fn is_full(&self, longest: &mut Longest) -> bool {
        let most = self.shared.room.clients as usize;
        let room = most.saturating_sub(self.shared.board.open_clients.load(Relaxed) as usize);
        if room <= room_of(most) {
            longest.dismiss(&self.shared.resources.watch, SPARED, |wait| !wait.is_stream);
        }
        room == 0
    }

    /// Lets clients have the responses that they wait for and proxies give theirs, for a while; then writes down what is
    /// left. What went wrong with that and was not told comes with it.
    pub async fn finish(self) -> Result<(MultiplierCounters, Vec<String>), MultiplierError> {
        let Self { listener, shared, proxies_done, writer, .. } = self;
        drop(listener);
        shared.is_stopping.set(true);
        shared.resources.watch.dismiss_idle();
        let all_left = async {
            loop {
                let left = shared.left.notified();
                if shared.board.open_clients.load(Relaxed) == 0 {
                    return;
                }
                left.await;
            }
        };
        // Who takes longer is cut off when the process ends.
        tokio::select! {
            _ = timeout(LAST_PATIENCE, all_left) => {}
            () = shared.later.work() => {}
        }
        shared.later.end();
        // An error means that it has ended already.
        let _ = shared.to_proxies.send(ToProxies::End);
        let _ = proxies_done.await;
        shared.board.close();
        let troubles = writer.finish()?;
        Ok((shared.counters(), troubles))
    }

    /// Writes down what is there, and nothing more.
    pub fn abandon(self) -> Result<(), MultiplierError> {
        self.shared.later.end();
        self.shared.board.close();
        self.writer.finish().map(drop)
    }
}

/// Starts the thread that sends requests to proxies: where requests go, and what says that it has ended.
fn start_lanes(
    destinations: Vec<(SocketAddr, Option<(Client, Name)>)>,
    patience: Duration,
    (board, rules, lost_key): (Arc<Board>, Arc<Rules>, String),
) -> Result<(mpsc::UnboundedSender<ToProxies>, oneshot::Receiver<()>), MultiplierError> {
    let (sender, told) = mpsc::unbounded_channel();
    let (done, ended) = oneshot::channel();
    let (begun, has_begun) = std::sync::mpsc::channel();
    let work = move || {
        let runtime = match Builder::new_current_thread().enable_all().build_local(LocalOptions::default()) {
            Ok(runtime) => runtime,
            Err(error) => return drop(begun.send(Err(error))),
        };
        // The starter waits for it.
        let _ = begun.send(Ok(()));
        let proxies = Proxies { destinations, patience, board, rules, lost_key, resources: Resources::new() };
        runtime.block_on(async {
            proxies.resources.keep_deadlines();
            lanes::run(proxies, told).await;
        });
        drop(runtime);
        let _ = done.send(());
    };
    std::thread::Builder::new().name("proxies".into()).spawn(work).map_err(MultiplierError::Start)?;
    has_begun.recv().map_err(|_| MultiplierError::Panicked)?.map_err(MultiplierError::Start)?;
    Ok((sender, ended))
}
