//! One client connection: requests are sent to servers, and their responses sent back, one after the other.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use assay_cluster::dispatch::{Request, ServerId};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;

use super::layer4;
use super::runtime::{now_ns, spawn};
use super::setup::Setup;
use super::shared::{Shared, unix_s};
use super::slot::{Standing, Waiting};
use super::socket::Socket;
use super::stream::Stream;
use crate::access_log::Line;
use crate::config::{Config, Http2, Mode};
use crate::document::document;
use crate::forwarded::Peer;
use crate::request::{self, Facts, Refusal};
use crate::response::{self, For};
use crate::upgrade;
use assay_net::connection::Connection;
use assay_net::exchange::{self, ClientLimits, Exchange, Handler, Next};
use assay_net::fields::Received;
use assay_net::http2;
use assay_net::tls::server::Server;

/// A body up to this size that is here already goes out with its head.
const INLINE_BYTES: u64 = 16 * 1024;

pub struct Client {
    pub(super) exchange: Exchange<Stream>,
    /// What goes to the client next.
    pub(super) out: Vec<u8>,
    /// What goes to the server: the head, and a small body.
    pub(super) request: Vec<u8>,
    pub(super) shared: Rc<Shared>,
    peer: Peer,
    own: SocketAddr,
    said: Said,
    /// None: a request of HTTP/2, whose connection is counted elsewhere.
    _connected: Option<Connected>,
}

/// What the log tells of a request; empty when there is no log.
#[derive(Default)]
struct Said {
    line: Vec<u8>,
    referer: Vec<u8>,
    agent: Vec<u8>,
    client: String,
}

/// A request whose head was read.
pub struct Order {
    /// What it is like.
    pub facts: Facts,
    /// What it goes by.
    pub standing: Standing,
    /// The protocol that the client wants to go over to, if it may.
    pub upgrade: Option<String>,
    /// When its head was here, in nanoseconds.
    pub at_ns: u64,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Done {
    /// The status that the client got.
    pub status: u16,
    /// Bytes of the body that it got.
    pub bytes: u64,
    /// The server that responded; none: the switch.
    pub server: Option<ServerId>,
    /// When it had a server, and when the response began, in nanoseconds.
    pub reached_ns: [u64; 2],
}

/// A connection of a client, as it is counted.
pub(super) struct Connected(Rc<Shared>);

impl Connected {
    fn new(shared: &Rc<Shared>) -> Self {
        shared.counts.clients.set(shared.counts.clients.get() + 1);
        Self(Rc::clone(shared))
    }

    /// What everything in the worker shares.
    pub(super) fn shared(&self) -> &Rc<Shared> {
        &self.0
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let Self(shared) = self;
        shared.counts.clients.set(shared.counts.clients.get() - 1);
        shared.changed.notify_waiters();
    }
}

/// Serves a connection in the background.
pub fn start(socket: Socket, peer: SocketAddr, own: SocketAddr, shared: &Rc<Shared>) {
    let connected = Connected::new(shared);
    let setup = shared.setup();
    if setup.config.mode == Mode::Tcp {
        spawn(layer4::serve(Stream::Clear(socket), connected));
        return;
    }
    let server = setup.secure.clients.as_ref().filter(|_| setup.secured.contains(&own));
    let stream = match server.map(Server::accept) {
        None => Stream::Clear(socket),
        Some(Ok(session)) => Stream::secured(socket, session),
        // The library cannot begin: the connection ends.
        Some(Err(_)) => return,
    };
    let peer = Peer::new(peer, &setup.config.name, &setup.config.trusted, server.is_some());
    let speaks_http2 = match setup.config.http2 {
        Http2::None => false,
        Http2::OverTls => server.is_some(),
        Http2::All => true,
    };
    if speaks_http2 {
        spawn(begin(stream, (peer, own), connected));
    } else {
        let exchange = Exchange::new(stream, &shared.resources, limits(&setup.config));
        spawn(Client::new(exchange, (peer, own), shared, Some(connected)).serve());
    }
}

/// Serves a connection in the version of HTTP that the client begins with.
async fn begin(stream: Stream, (peer, own): (Peer, SocketAddr), connected: Connected) {
    let shared = Rc::clone(&connected.0);
    let limits = limits(&shared.setup().config);
    let mut connection = Connection::new(stream, &shared.resources);
    match http2::is_begun(&mut connection, &limits).await {
        Ok(true) => {
            let start = |pipe| {
                let exchange = Exchange::new(Stream::Http2(pipe), &shared.resources, limits);
                spawn(Client::new(exchange, (peer.clone(), own), &shared, None).serve());
            };
            drop(http2::serve(connection, limits, start).await);
        }
        Ok(false) => {
            let exchange = Exchange::of(connection, limits);
            Client::new(exchange, (peer, own), &shared, Some(connected)).serve().await;
        }
        // The client has gone, or has said nothing for too long.
        Err(_) => {}
    }
}

/// How long clients may take by a configuration, and how long their heads may be.
fn limits(config: &Config) -> ClientLimits {
    let timeouts = &config.timeouts;
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    ClientLimits {
        idle: timeouts.client_idle,
        head: timeouts.client_request,
        read: timeouts.client_request,
        write: timeouts.client_request,
        head_bytes: bytes(config.limits.head_bytes),
        target_bytes: bytes(config.limits.target_bytes),
        least_rate: config.limits.client_rate,
    }
}

impl Handler for Client {
    type Stream = Stream;

    fn exchange(&mut self) -> &mut Exchange<Stream> {
        &mut self.exchange
    }

    async fn respond(&mut self, request: &exchange::Request<'_>) -> io::Result<Next> {
        let order = self.take_head(request);
        let shared = Rc::clone(&self.shared);
        self.out = shared.resources.memory.take();
        let ended = match order {
            Ok(mut order) => {
                let done = if order.facts.is_for_switch {
                    Box::pin(self.send_own(&order, 200, "")).await
                } else {
                    self.exchange(&mut order).await
                };
                if let Ok(done) = &done {
                    self.count(&order, done);
                }
                done.map(drop)
            }
            Err(refusal) => Box::pin(self.send_refusal(refusal, request.head.method == "HEAD")).await,
        };
        shared.resources.memory.give(std::mem::take(&mut self.out));
        shared.resources.memory.give(std::mem::take(&mut self.request));
        self.exchange.limits = limits(&shared.setup.borrow().config);
        ended.map(|()| Next::Request)
    }

    async fn refuse(&mut self, refusal: exchange::Refusal, is_head: bool) -> io::Result<()> {
        self.send_refusal(refusal.into(), is_head).await
    }
}

impl Client {
    fn new(
        exchange: Exchange<Stream>,
        (peer, own): (Peer, SocketAddr),
        shared: &Rc<Shared>,
        connected: Option<Connected>,
    ) -> Self {
        Self {
            exchange,
            out: Vec::new(),
            request: Vec::new(),
            shared: Rc::clone(shared),
            peer,
            own,
            said: Said::default(),
            _connected: connected,
        }
    }

    /// Errors are the client's own doing, or were reported to it: they are of no further interest.
    async fn serve(mut self) {
        drop(exchange::serve(&mut self).await);
    }

    /// Takes what is to be known of a request from its head, and writes the one for the server.
    fn take_head(&mut self, request: &exchange::Request<'_>) -> Result<Order, Refusal> {
        let exchange::Request { head, received, .. } = request;
        let setup = self.shared.setup();
        let limits = &setup.config.limits;
        let target = request::target(head, self.exchange.connection.stream.scheme())?;
        let facts = request::facts(head, limits)?;
        let class = setup.classes.of(head, target.path.as_bytes());
        let requested = Request { class, document: document(target.path.as_bytes()) };
        self.request = self.shared.resources.memory.take();
        let name = &setup.config.name;
        request::append(&mut self.request, request, target, facts, &self.peer, name, self.own);
        let upgrade = upgrade::requested(head, facts.body, &setup.config.upgrades).map(str::to_owned);
        if let Some(protocol) = &upgrade {
            upgrade::append(&mut self.request, protocol);
        }
        if setup.logs {
            self.said.take((head, *received), &self.peer, &setup);
        }
        self.exchange.persists &= !self.shared.is_stopping.get();
        self.take_small_body(&facts);
        self.exchange.connection.input.rest(&self.shared.resources.memory);
        let standing = Standing { setup, request: requested };
        Ok(Order { facts, standing, upgrade, at_ns: now_ns() })
    }

    /// A small body that is here already goes out with the head.
    fn take_small_body(&mut self, facts: &Facts) {
        if let BodyFraming::Length(bytes @ 1..=INLINE_BYTES) = facts.body
            && let Some(body) = self.exchange.connection.input.unread().get(..bytes as usize)
        {
            self.request.extend_from_slice(body);
            self.exchange.connection.input.consume(bytes as usize);
            self.exchange.leaves_unread = false;
        }
    }

    /// What is needed while its request waits for a server.
    pub(super) fn waiting(&mut self) -> Waiting<'_> {
        let Connection { stream, input, deadline, .. } = &mut self.exchange.connection;
        Waiting { stream, input, deadline, half_closed: None }
    }

    /// The request that a response is for.
    pub(super) fn requested(&self, facts: &Facts) -> For {
        For { is_head: facts.is_head, is_11: facts.is_11, persists: self.exchange.persists }
    }

    /// Responds to a malformed or too large request; after that the connection cannot be used.
    async fn send_refusal(&mut self, refusal: Refusal, is_head: bool) -> io::Result<()> {
        self.shared.counts.refuse(refusal);
        self.exchange.give_up();
        let requested = For { is_head, is_11: true, persists: false };
        self.write_own(refusal.status(), &refusal.to_string(), requested).await
    }

    /// Sends a response of the switch's own for want of a server's.
    pub(super) async fn send_own(&mut self, order: &Order, status: u16, why: &str) -> io::Result<Done> {
        if self.exchange.leaves_unread {
            self.exchange.persists = false;
        }
        self.write_own(status, why, self.requested(&order.facts)).await?;
        let ended_ns = now_ns();
        Ok(Done { status, bytes: why.len() as u64 + 1, server: None, reached_ns: [ended_ns; 2] })
    }

    async fn write_own(&mut self, status: u16, why: &str, requested: For) -> io::Result<()> {
        self.out.clear();
        response::append_own(&mut self.out, status, why, &self.shared.date(), requested);
        self.exchange.write(&[&self.out]).await
    }

    /// Counts a request that has ended, and writes it down.
    fn count(&mut self, order: &Order, done: &Done) {
        let setup = &order.standing.setup;
        let class = order.standing.class();
        let ended_ns = now_ns();
        let since_us = |at_ns: u64| at_ns.saturating_sub(order.at_ns) / 1000;
        let times_us = [since_us(done.reached_ns[0]), since_us(done.reached_ns[1]), since_us(ended_ns)];
        setup.tally(class, done.server).with(|tally| {
            let first_digit = usize::from(done.status / 100).clamp(1, 5);
            tally.responses[first_digit - 1] += 1;
            tally.bytes += done.bytes;
            tally.first_byte.record(times_us[1]);
            tally.times.record(times_us[2]);
        });
        let mut must_flush = false;
        if let Some(log) = &mut *self.shared.log.borrow_mut() {
            let server = done.server.and_then(|id| setup.servers.get(&id)).map(|server| server.name.as_str());
            let is_much = log.add(&Line {
                client: &self.said.client,
                at_unix_s: unix_s(),
                request: &self.said.line,
                status: done.status,
                bytes: done.bytes,
                referer: &self.said.referer,
                agent: &self.said.agent,
                class: setup.class_name(class),
                server,
                times_us,
            });
            must_flush = is_much;
        }
        if must_flush {
            self.shared.flush_log();
        }
    }
}

impl Said {
    fn take(&mut self, (head, received): (&RequestHead<'_>, Received), peer: &Peer, setup: &Setup) {
        let set = |kept: &mut Vec<u8>, parts: &[&[u8]]| {
            kept.clear();
            parts.iter().for_each(|part| kept.extend_from_slice(part));
        };
        let version = received.version().as_bytes();
        set(&mut self.line, &[head.method.as_bytes(), b" ", head.target.as_bytes(), b" HTTP/", version]);
        set(&mut self.referer, &[head.header("referer").unwrap_or(b"")]);
        set(&mut self.agent, &[head.header("user-agent").unwrap_or(b"")]);
        self.client.clear();
        self.client.push_str(peer.client(head.headers(), &setup.config.trusted));
    }
}
