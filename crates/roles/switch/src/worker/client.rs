//! Client connections: requests are forwarded to servers, and responses sent back, one after the other.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use assay_cluster::dispatch::{Request, ServerId};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;

use super::context::{WorkerContext, unix_s};
use super::layer4;
use super::runtime::{now_ns, spawn};
use super::setup::WorkerSetup;
use super::slot::{RoutingContext, WaitingClient};
use super::socket::Socket;
use super::transport::Transport;
use crate::access_log::Line;
use crate::config::{ClientHttp2, Config, Mode};
use crate::forwarded::ClientPeer;
use crate::request::{self, RequestFacts, RequestRefusal};
use crate::response::{self, ResponseContext};
use crate::target_hash::hash_target;
use crate::upgrade;
use assay_net::connection::Connection;
use assay_net::exchange::{self, AfterResponse, ClientLimits, Exchange, Handler};
use assay_net::fields::ReceivedProtocol;
use assay_net::http2;
use assay_net::tls::server::TlsServer;

/// A body up to this size that has arrived with its head is sent in the same write.
const INLINE_BYTES: u64 = 16 * 1024;

pub struct SwitchClient {
    pub(super) exchange: Exchange<Transport>,
    /// Bytes for the client.
    pub(super) out: Vec<u8>,
    /// Bytes for the server: the head, and a small body.
    pub(super) request: Vec<u8>,
    pub(super) shared: Rc<WorkerContext>,
    peer: ClientPeer,
    local: SocketAddr,
    log_fields: LogFields,
    /// `None` for HTTP/2 requests, whose connection is counted elsewhere.
    _guard: Option<ClientGuard>,
}

/// Fields that only the log needs; empty without a log.
#[derive(Default)]
struct LogFields {
    line: Vec<u8>,
    referer: Vec<u8>,
    agent: Vec<u8>,
    client: String,
}

/// A request whose head was read, and which awaits its response.
pub struct PendingRequest {
    pub facts: RequestFacts,
    pub routing: RoutingContext,
    /// Protocol to upgrade to, if the client requests one that is allowed.
    pub upgrade: Option<String>,
    /// Arrival of the complete head.
    pub received_ns: u64,
}

/// Result of a request, for counters and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForwardedResponse {
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// `None` for responses of the switch itself.
    pub server: Option<ServerId>,
    /// Instants of the selection of a server, and of the beginning of the response.
    pub reached_ns: [u64; 2],
}

/// Counts a client connection while it is open.
pub(super) struct ClientGuard(Rc<WorkerContext>);

impl ClientGuard {
    fn new(shared: &Rc<WorkerContext>) -> Self {
        shared.counts.clients.set(shared.counts.clients.get() + 1);
        Self(Rc::clone(shared))
    }

    pub(super) fn shared(&self) -> &Rc<WorkerContext> {
        &self.0
    }
}

impl Drop for ClientGuard {
    fn drop(&mut self) {
        let Self(shared) = self;
        shared.counts.clients.set(shared.counts.clients.get() - 1);
        shared.changed.notify_waiters();
    }
}

/// Serves a connection in a task of its own.
pub fn start(socket: Socket, peer: SocketAddr, local: SocketAddr, shared: &Rc<WorkerContext>) {
    let guard = ClientGuard::new(shared);
    let setup = shared.setup();
    if setup.config.mode == Mode::Tcp {
        spawn(layer4::serve(Transport::Clear(socket), guard));
        return;
    }
    let server = setup.tls_context.clients.as_ref().filter(|_| setup.tls_addresses.contains(&local));
    let stream = match server.map(TlsServer::accept) {
        None => Transport::Clear(socket),
        Some(Ok(session)) => Transport::tls(socket, session),
        // The TLS library could not start a session: the connection ends.
        Some(Err(_)) => return,
    };
    let peer = ClientPeer::new(peer, &setup.config.name, &setup.config.trusted, server.is_some());
    let speaks_http2 = match setup.config.http2 {
        ClientHttp2::None => false,
        ClientHttp2::OverTls => server.is_some(),
        ClientHttp2::All => true,
    };
    if speaks_http2 {
        spawn(serve_negotiated(stream, peer, local, guard));
    } else {
        let exchange = Exchange::new(stream, &shared.resources, limits(&setup.config));
        spawn(SwitchClient::new(exchange, peer, local, shared, Some(guard)).serve());
    }
}

/// Serves a connection in the version of HTTP that the client begins with.
async fn serve_negotiated(stream: Transport, peer: ClientPeer, local: SocketAddr, guard: ClientGuard) {
    let shared = Rc::clone(&guard.0);
    let limits = limits(&shared.setup().config);
    let mut connection = Connection::new(stream, &shared.resources);
    match http2::has_preface(&mut connection, &limits).await {
        Ok(true) => {
            let start = |pipe| {
                let exchange = Exchange::new(Transport::Http2(pipe), &shared.resources, limits);
                spawn(SwitchClient::new(exchange, peer.clone(), local, &shared, None).serve());
            };
            drop(http2::serve(connection, limits, start).await);
        }
        Ok(false) => {
            let exchange = Exchange::with_connection(connection, limits);
            SwitchClient::new(exchange, peer, local, &shared, Some(guard)).serve().await;
        }
        // The client has gone, or was silent for too long.
        Err(_) => {}
    }
}

/// Limits on clients, by a configuration.
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

impl Handler for SwitchClient {
    type Transport = Transport;

    fn exchange(&mut self) -> &mut Exchange<Transport> {
        &mut self.exchange
    }

    async fn respond(&mut self, request: &exchange::Request<'_>) -> io::Result<AfterResponse> {
        let pending = self.read_head(request);
        let shared = Rc::clone(&self.shared);
        self.out = shared.resources.memory.get();
        let ended = match pending {
            Ok(mut pending) => {
                let forwarded = if pending.facts.is_for_switch {
                    Box::pin(self.send_own(&pending, 200, "")).await
                } else {
                    self.exchange(&mut pending).await
                };
                if let Ok(forwarded) = &forwarded {
                    self.count(&pending, forwarded);
                }
                forwarded.map(drop)
            }
            Err(refusal) => Box::pin(self.send_refusal(refusal, request.head.method == "HEAD")).await,
        };
        shared.resources.memory.put(std::mem::take(&mut self.out));
        shared.resources.memory.put(std::mem::take(&mut self.request));
        self.exchange.limits = limits(&shared.setup.borrow().config);
        ended.map(|()| AfterResponse::Request)
    }

    async fn refuse(&mut self, refusal: exchange::Refusal, is_head: bool) -> io::Result<()> {
        self.send_refusal(refusal.into(), is_head).await
    }
}

impl SwitchClient {
    fn new(
        exchange: Exchange<Transport>,
        peer: ClientPeer,
        local: SocketAddr,
        shared: &Rc<WorkerContext>,
        guard: Option<ClientGuard>,
    ) -> Self {
        Self {
            exchange,
            out: Vec::new(),
            request: Vec::new(),
            shared: Rc::clone(shared),
            peer,
            local,
            log_fields: LogFields::default(),
            _guard: guard,
        }
    }

    /// Errors are the client's own doing, or were reported to it: they are of no further interest.
    async fn serve(mut self) {
        drop(exchange::serve(&mut self).await);
    }

    /// Classifies a request and writes its head for the server.
    fn read_head(&mut self, request: &exchange::Request<'_>) -> Result<PendingRequest, RequestRefusal> {
        let exchange::Request { head, received, .. } = request;
        let setup = self.shared.setup();
        let limits = &setup.config.limits;
        let target = request::target(head, self.exchange.connection.stream.scheme())?;
        let facts = request::facts(head, limits)?;
        let class = setup.classes.classify(head, target.path.as_bytes());
        let policy_request = Request { class, document: hash_target(target.path.as_bytes()) };
        self.request = self.shared.resources.memory.get();
        let name = &setup.config.name;
        request::append(&mut self.request, request, target, facts, &self.peer, name, self.local);
        let upgrade = upgrade::requested(head, facts.body, &setup.config.upgrades).map(str::to_owned);
        if let Some(protocol) = &upgrade {
            upgrade::append(&mut self.request, protocol);
        }
        if setup.logs {
            self.log_fields.record(head, *received, &self.peer, &setup);
        }
        self.exchange.persists &= !self.shared.is_stopping.get();
        self.take_inline_body(&facts);
        self.exchange.connection.input.release_if_empty(&self.shared.resources.memory);
        let routing = RoutingContext { setup, request: policy_request };
        Ok(PendingRequest { facts, routing, upgrade, received_ns: now_ns() })
    }

    /// Appends a small body that has arrived with the head.
    fn take_inline_body(&mut self, facts: &RequestFacts) {
        if let BodyFraming::Length(bytes @ 1..=INLINE_BYTES) = facts.body
            && let Some(body) = self.exchange.connection.input.unread().get(..bytes as usize)
        {
            self.request.extend_from_slice(body);
            self.exchange.connection.input.consume(bytes as usize);
            self.exchange.leaves_unread = false;
        }
    }

    /// Parts of the client's connection that are watched while its request is queued.
    pub(super) fn waiting(&mut self) -> WaitingClient<'_> {
        let Connection { stream, input, deadline, .. } = &mut self.exchange.connection;
        WaitingClient { stream, input, deadline, half_closed: None }
    }

    pub(super) fn response_context(&self, facts: &RequestFacts) -> ResponseContext {
        ResponseContext { is_head: facts.is_head, is_11: facts.is_11, persists: self.exchange.persists }
    }

    /// Responds to a malformed or oversized request; the connection cannot be used afterwards.
    async fn send_refusal(&mut self, refusal: RequestRefusal, is_head: bool) -> io::Result<()> {
        self.shared.counts.refuse(refusal);
        self.exchange.close_after_response();
        let context = ResponseContext { is_head, is_11: true, persists: false };
        self.write_own(refusal.status(), &refusal.to_string(), context).await
    }

    /// Sends a response of the switch itself.
    pub(super) async fn send_own(
        &mut self,
        pending: &PendingRequest,
        status: u16,
        why: &str,
    ) -> io::Result<ForwardedResponse> {
        if self.exchange.leaves_unread {
            self.exchange.persists = false;
        }
        self.write_own(status, why, self.response_context(&pending.facts)).await?;
        let ended_ns = now_ns();
        Ok(ForwardedResponse { status, bytes: why.len() as u64 + 1, server: None, reached_ns: [ended_ns; 2] })
    }

    async fn write_own(&mut self, status: u16, why: &str, context: ResponseContext) -> io::Result<()> {
        self.out.clear();
        response::append_own(&mut self.out, status, why, &self.shared.date(), context);
        self.exchange.write(&[&self.out]).await
    }

    /// Counts and logs a finished request.
    fn count(&mut self, pending: &PendingRequest, forwarded: &ForwardedResponse) {
        let setup = &pending.routing.setup;
        let class = pending.routing.class();
        let ended_ns = now_ns();
        let since_us = |end_ns: u64| end_ns.saturating_sub(pending.received_ns) / 1000;
        let times_us =
            [since_us(forwarded.reached_ns[0]), since_us(forwarded.reached_ns[1]), since_us(ended_ns)];
        setup.tally(class, forwarded.server).with(|tally| {
            let first_digit = usize::from(forwarded.status / 100).clamp(1, 5);
            tally.responses[first_digit - 1] += 1;
            tally.bytes += forwarded.bytes;
            tally.first_byte.record(times_us[1]);
            tally.times.record(times_us[2]);
        });
        let mut must_flush = false;
        if let Some(log) = &mut *self.shared.log.borrow_mut() {
            let server =
                forwarded.server.and_then(|id| setup.servers.get(&id)).map(|server| server.name.as_str());
            let is_much = log.add(&Line {
                client: &self.log_fields.client,
                at_unix_s: unix_s(),
                request: &self.log_fields.line,
                status: forwarded.status,
                bytes: forwarded.bytes,
                referer: &self.log_fields.referer,
                agent: &self.log_fields.agent,
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

impl LogFields {
    fn record(
        &mut self,
        head: &RequestHead<'_>,
        received: ReceivedProtocol,
        peer: &ClientPeer,
        setup: &WorkerSetup,
    ) {
        let set = |buffer: &mut Vec<u8>, parts: &[&[u8]]| {
            buffer.clear();
            parts.iter().for_each(|part| buffer.extend_from_slice(part));
        };
        let version = received.version().as_bytes();
        set(&mut self.line, &[head.method.as_bytes(), b" ", head.target.as_bytes(), b" HTTP/", version]);
        set(&mut self.referer, &[head.header("referer").unwrap_or(b"")]);
        set(&mut self.agent, &[head.header("user-agent").unwrap_or(b"")]);
        self.client.clear();
        self.client.push_str(peer.client(head.headers(), &setup.config.trusted));
    }
}
