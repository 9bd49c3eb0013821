//! Forwarding of a request, and of its response; with another server if one fails and a repetition is safe.
//!
//! A repetition is safe if nothing of the request was sent (no connection was established), or if the request is idempotent, has
//! no body, and no byte of a response has arrived. A request that cannot be repeated gets a new connection, so that it does not
//! meet one that the server is just closing.
//!
//! Rare paths are boxed: a future is as large as the largest one that it may await, and is moved whenever it starts.

use std::future::{Future, poll_fn};
use std::io;
use std::iter;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use assay_cluster::dispatch::ServerId;
use assay_http::framing::BodyFraming;
use assay_http::head::{HeadError, ResponseHead};
use thiserror::Error;

use super::client::{ForwardedResponse, PendingRequest, SwitchClient};
use super::runtime::now_ns;
use super::server::{Server, Upstream};
use super::slot::{AcquireError, Slot, acquire};
use super::splice::SpliceEnd;
use super::transport::Transport;
use crate::messages::WorkerReport;
use crate::request::RequestRefusal;
use crate::response;
use crate::tally::add;
use crate::upgrade;
use assay_net::buffers::{InputBuffer, poll_deadline, write_all};
use assay_net::connection::Connection;
use assay_net::deadlines::Deadline;
use assay_net::exchange::Transport as _;
use assay_net::http2;
use assay_net::interim;
use assay_net::limits::MAX_INTERIM_RESPONSES;
use assay_net::relay::{RelayStep, RelayedBody, relay_step};

/// Bytes of a body that arrived with the head are copied behind it up to this size: cheaper than a second slice.
const COPY_MAX_BYTES: usize = 4096;

/// Slot key of a client whose request has no server.
const NO_SLOT: u32 = 0;

/// Key under which a client holds a server slot ([`assay_net::deadlines::Deadline::hold_slot`]).
pub fn slot_key(server: ServerId) -> u32 {
    server.0 + 1
}

/// Failure of a server to give a usable response. The texts go to the client.
#[derive(Debug, Error)]
pub enum ServerError {
    #[error("server {0} could not be reached: {1}")]
    Unreachable(String, io::Error),
    #[error("server {0} did not accept a connection in time")]
    NoConnection(String),
    #[error("server {0} did not respond in time")]
    TimedOut(String),
    #[error("server {0} closed the connection without a response")]
    Lost(String),
    #[error("the response of server {0} is not usable: {1}")]
    BadResponse(String, HeadError),
}

impl ServerError {
    pub fn status(&self) -> u16 {
        match self {
            ServerError::TimedOut(_) | ServerError::NoConnection(_) => 504,
            ServerError::Unreachable(..) | ServerError::Lost(_) | ServerError::BadResponse(..) => 502,
        }
    }
}

/// Failure of an attempt to forward a request.
pub enum ForwardError {
    Client(io::Error),
    Refused(RequestRefusal),
    /// The server failed; and whether another may be tried.
    Server(ServerError, bool),
}

/// A response whose head was read and rewritten.
pub struct UpstreamResponse {
    pub(super) upstream: Upstream,
    facts: response::ResponseFacts,
    /// The server has the whole request.
    is_sent: bool,
}

impl SwitchClient {
    /// Forwards the request, and the response back.
    pub(super) async fn exchange(&mut self, pending: &mut PendingRequest) -> io::Result<ForwardedResponse> {
        let shared = Rc::clone(&self.shared);
        let mut tried: Vec<ServerId> = Vec::new();
        let mut last_failure: Option<ServerError> = None;
        loop {
            let mut slot = match acquire(&shared, &mut pending.routing, &tried, self.waiting()).await {
                Ok(slot) => slot,
                Err(AcquireError::ClientGone) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(error) => {
                    return match last_failure {
                        Some(failure) if error == AcquireError::NoServer => {
                            Box::pin(self.send_own(pending, failure.status(), &failure.to_string())).await
                        }
                        _ => {
                            shared.count_no_server(error);
                            Box::pin(self.send_own(pending, 503, error.text())).await
                        }
                    };
                }
            };
            // A client that stalls holds this server's slot, and may be dismissed for it.
            self.exchange.connection.deadline.hold_slot(slot_key(slot.server.id));
            let error = match self.attempt(&slot, pending).await {
                Ok(response) if response.facts.status == 101 => {
                    return Box::pin(self.tunnel(slot, pending, response)).await;
                }
                Ok(response) => return self.relay(slot, pending, response).await,
                Err(error) => error,
            };
            let id = slot.server.id;
            // A failure that the client caused does not count against the server.
            slot.has_response = !matches!(error, ForwardError::Server(..));
            if !slot.has_response {
                self.report_failure(&slot);
            }
            drop(slot);
            let (failure, can_repeat) = match error {
                ForwardError::Client(error) => {
                    // A timeout is counted where it is noticed.
                    if error.kind() != io::ErrorKind::TimedOut {
                        add(&shared.counts.left);
                    }
                    return Err(error);
                }
                ForwardError::Refused(refusal) => {
                    let status = refusal.status();
                    shared.counts.refuse(refusal);
                    self.exchange.close_after_response();
                    return Box::pin(self.send_own(pending, status, &refusal.to_string())).await;
                }
                ForwardError::Server(failure, can_repeat) => (failure, can_repeat),
            };
            let may_repeat =
                can_repeat && (tried.len() as u64) < u64::from(pending.routing.setup.config.retries);
            pending.routing.setup.tally(pending.routing.class(), Some(id)).with(|tally| {
                tally.failed += 1;
                tally.retried += u64::from(may_repeat);
            });
            if !may_repeat {
                return Box::pin(self.send_own(pending, failure.status(), &failure.to_string())).await;
            }
            tried.push(id);
            last_failure = Some(failure);
        }
    }

    /// Forwards the request to one server.
    async fn attempt(
        &mut self,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> Result<UpstreamResponse, ForwardError> {
        self.exchange.connection.deadline.remind();
        let idle = if pending.facts.can_repeat { slot.server.take_idle() } else { None };
        if let Some(upstream) = idle {
            match self.round_trip(upstream, slot, pending).await {
                // The server had closed an idle connection: no failure, a new connection will do.
                Err(ForwardError::Server(ServerError::Lost(_), _)) => {}
                other => return other,
            }
        }
        let upstream = Box::pin(self.connect(&slot.server, pending)).await?;
        let is_reused = upstream.is_reused;
        match self.round_trip(upstream, slot, pending).await {
            // Likewise for a shared HTTP/2 connection.
            Err(ForwardError::Server(ServerError::Lost(_), true)) if is_reused => {
                let upstream = Box::pin(self.connect(&slot.server, pending)).await?;
                self.round_trip(upstream, slot, pending).await
            }
            other => other,
        }
    }

    async fn connect(&mut self, server: &Server, pending: &PendingRequest) -> Result<Upstream, ForwardError> {
        let Connection { stream, deadline, .. } = &self.exchange.connection;
        deadline.set(pending.routing.setup.config.timeouts.connect);
        let shared = Rc::clone(&self.shared);
        let mut connecting = pin!(server.connect(&shared.resources));
        let connected = poll_fn(|cx| match connecting.as_mut().poll(cx) {
            Poll::Ready(connected) => Poll::Ready(connected),
            Poll::Pending => poll_deadline(deadline, cx),
        });
        let connected = until_client_gone(stream, deadline, connected).await.map_err(ForwardError::Client)?;
        if !connected.as_ref().is_ok_and(|upstream| upstream.is_reused) {
            add(&shared.counts.connects);
        }
        connected.map_err(|error| {
            let failure = match error.kind() {
                io::ErrorKind::TimedOut => ServerError::NoConnection(server.name.clone()),
                _ => ServerError::Unreachable(server.name.clone(), error),
            };
            ForwardError::Server(failure, true)
        })
    }

    /// Sends the request and waits for the head of the final response.
    async fn round_trip(
        &mut self,
        mut upstream: Upstream,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> Result<UpstreamResponse, ForwardError> {
        self.exchange.connection.deadline.set(pending.routing.setup.config.timeouts.response);
        let Connection { stream, deadline, .. } = &self.exchange.connection;
        let sent = write_all(&mut upstream.stream, deadline, None, iter::once(&self.request[..]));
        if let Err(error) = until_client_gone(stream, deadline, sent).await.map_err(ForwardError::Client)? {
            let is_repeatable = pending.facts.can_repeat || error.kind() == http2::UNPROCESSED;
            let can_repeat = is_repeatable && error.kind() != io::ErrorKind::TimedOut;
            return Err(ForwardError::Server(server_error(&slot.server, &error), can_repeat));
        }
        // A small body went out with the head.
        let is_sent = if self.exchange.leaves_unread {
            upstream.has_upload = true;
            Box::pin(self.upload(&mut upstream, slot, pending)).await?
        } else {
            true
        };
        self.exchange.connection.deadline.set(pending.routing.setup.config.timeouts.response);
        let facts = self.response_head(&mut upstream, slot, pending).await?;
        Ok(UpstreamResponse { upstream, facts, is_sent })
    }

    /// Waits for the head of the final response, and rewrites it into `out`. Interim responses go to the client at once.
    async fn response_head(
        &mut self,
        upstream: &mut Upstream,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> Result<response::ResponseFacts, ForwardError> {
        let shared = Rc::clone(&self.shared);
        let name = &pending.routing.setup.config.name;
        let server = &slot.server.name;
        let bad_response =
            |error| ForwardError::Server(ServerError::BadResponse(server.clone(), error), false);
        loop {
            match ResponseHead::parse(upstream.input.unread()).map_err(bad_response)? {
                Some((head, _))
                    if head.is_interim() && upstream.interim_responses == MAX_INTERIM_RESPONSES =>
                {
                    return Err(bad_response(HeadError::Syntax("interim responses without end")));
                }
                Some((head, length)) if head.is_interim() => {
                    upstream.interim_responses += 1;
                    // No 100 for the client: its body is sent already, or was never held back.
                    let is_for_client = pending.facts.is_11 && head.status != 100;
                    self.out.clear();
                    if is_for_client {
                        interim::append(&mut self.out, &head, name);
                    }
                    upstream.input.consume(length);
                    if is_for_client {
                        let timeouts = pending.routing.setup.config.timeouts;
                        Box::pin(self.write_to_client(0, &[], timeouts.client_request))
                            .await
                            .map_err(ForwardError::Client)?;
                        self.exchange.connection.deadline.set(timeouts.response);
                    }
                    continue;
                }
                Some((head, length)) if head.status == 101 => {
                    if let Some(protocol) = pending.upgrade.as_deref().filter(|it| upgrade::agrees(&head, it))
                    {
                        slot.begun(&head);
                        self.out.clear();
                        // Persistence is up to the new protocol.
                        let context = response::ResponseContext {
                            persists: true,
                            ..self.response_context(&pending.facts)
                        };
                        let raw = &upstream.input.unread()[..length];
                        let facts =
                            response::append(&mut self.out, &head, raw, context, name, || shared.date());
                        upgrade::append(&mut self.out, protocol);
                        upstream.input.consume(length);
                        return Ok(facts);
                    }
                    return Err(bad_response(HeadError::Syntax(
                        "it switches to a protocol that nobody requested",
                    )));
                }
                Some((head, length)) => {
                    slot.begun(&head);
                    self.out.clear();
                    let context = self.response_context(&pending.facts);
                    let raw = &upstream.input.unread()[..length];
                    let facts = response::append(&mut self.out, &head, raw, context, name, || shared.date());
                    upstream.input.consume(length);
                    return Ok(facts);
                }
                None => {}
            }
            let Connection { stream, deadline, .. } = &self.exchange.connection;
            let filled = shared.resources.memory.fill(&mut upstream.stream, deadline, &mut upstream.input);
            match until_client_gone(stream, deadline, filled).await.map_err(ForwardError::Client)? {
                Ok(0) if upstream.input.unread().is_empty() => {
                    return Err(ForwardError::Server(
                        ServerError::Lost(server.clone()),
                        pending.facts.can_repeat,
                    ));
                }
                Ok(0) => return Err(bad_response(HeadError::Syntax("the connection ended within the head"))),
                Ok(_) => {}
                Err(error) => {
                    // A server that is late is still at work: another one would do it all again.
                    let is_lost =
                        upstream.input.unread().is_empty() && error.kind() != io::ErrorKind::TimedOut;
                    let is_untouched = error.kind() == http2::UNPROCESSED && !upstream.has_upload;
                    let can_repeat = (pending.facts.can_repeat || is_untouched) && is_lost;
                    return Err(ForwardError::Server(server_error(&slot.server, &error), can_repeat));
                }
            }
        }
    }

    /// Relays the response. A body that breaks off is broken off towards the client too.
    async fn relay(
        &mut self,
        mut slot: Slot,
        pending: &PendingRequest,
        response: UpstreamResponse,
    ) -> io::Result<ForwardedResponse> {
        let UpstreamResponse { mut upstream, facts, is_sent } = response;
        let shared = Rc::clone(&self.shared);
        let timeouts = pending.routing.setup.config.timeouts;
        let mut forwarded = ForwardedResponse {
            status: facts.status,
            bytes: 0,
            server: Some(slot.server.id),
            reached_ns: [slot.started_ns, now_ns()],
        };
        self.exchange.persists = facts.client_persists && is_sent;
        if !is_sent && facts.client_persists {
            // The head, written already, states that the connection stays open; it does not, as part of the request is unread.
            self.append_connection_close();
        }
        let mut body = RelayedBody::new(facts.from_server, facts.to_client == BodyFraming::Chunked);
        let taken = self.take_buffered_body(&mut body, upstream.input.unread());
        let Ok((taken, unwritten)) = taken else {
            // Nothing was sent to the client yet, so it can still get an error response.
            let failure =
                ServerError::BadResponse(slot.server.name.clone(), HeadError::Syntax("its body is broken"));
            self.report_failure(&slot);
            drop(slot);
            return Box::pin(self.send_own(pending, failure.status(), &failure.to_string())).await;
        };
        if body.is_done() && unwritten == 0 {
            // The whole body is here: the server is free before the client has it.
            upstream.input.consume(taken);
            slot.has_response = true;
            self.release_upstream(upstream, &slot.server, facts.server_persists && is_sent);
            drop(slot);
            self.exchange.connection.deadline.hold_slot(NO_SLOT);
            self.exchange.connection.deadline.await_peer(timeouts.client_request);
            // A client that has announced the end of its connection gets the response and the end in one packet. Not after a
            // body: some clients send a line end behind it, and unread bytes would turn the close into a reset.
            let is_last = !pending.facts.persists
                && pending.facts.can_repeat
                && self.exchange.connection.input.unread().is_empty();
            let written = if is_last { self.exchange.connection.stream.write_last(&self.out)? } else { 0 };
            self.write_to_client(written, &[], timeouts.client_request).await?;
            forwarded.bytes = body.content_bytes;
            return Ok(forwarded);
        }
        self.write_to_client(0, &upstream.input.unread()[taken - unwritten..taken], timeouts.client_request)
            .await?;
        upstream.input.consume(taken);
        upstream.input.release_if_empty(&shared.resources.memory);
        let is_whole = Box::pin(self.relay_rest(&mut upstream, &mut body, &slot, pending)).await;
        forwarded.bytes = body.content_bytes;
        // A client that goes away does not count against the server.
        slot.has_response = !matches!(is_whole, Ok(false));
        if is_whole? {
            self.release_upstream(upstream, &slot.server, facts.server_persists && is_sent);
        } else {
            // The client recognises the truncated body by the end of the connection.
            self.exchange.persists = false;
            if facts.to_client == BodyFraming::UntilClose {
                self.reset();
            }
        }
        Ok(forwarded)
    }

    /// Relays the rest of a body; false when the server broke it off. An error is the client's.
    async fn relay_rest(
        &mut self,
        upstream: &mut Upstream,
        body: &mut RelayedBody,
        slot: &Slot,
        pending: &PendingRequest,
    ) -> io::Result<bool> {
        let timeouts = pending.routing.setup.config.timeouts;
        if let SpliceEnd::Broken = Box::pin(self.splice_body(upstream, body, slot, pending)).await? {
            self.report_failure(slot);
            return Ok(false);
        }
        let mut credited = body.content_bytes;
        while !body.is_done() {
            self.exchange.connection.deadline.set(timeouts.response);
            self.out.clear();
            let to = &self.exchange.connection;
            let step = relay_step(
                &self.shared.resources.memory,
                &mut upstream.stream,
                &to.deadline,
                &mut upstream.input,
                body,
                &mut self.out,
                |bytes| to.stream.try_write(bytes),
            );
            let step = until_client_gone(&to.stream, &to.deadline, pin!(step)).await?;
            match step {
                Ok(RelayStep::Some) => {}
                Ok(RelayStep::Broken) => {
                    self.report_failure(slot);
                    return Ok(false);
                }
                Ok(RelayStep::ClientGone(error)) => return Err(error),
                Err(_) => {
                    self.report_failure(slot);
                    return Ok(false);
                }
            }
            let left = self.out.len() as u64;
            if left > 0 {
                self.write_to_client(0, &[], timeouts.client_request).await?;
            }
            // Bytes that the client took at once earn it time here; the rest earned it while it was written.
            self.exchange.connection.deadline.credit((body.content_bytes - credited).saturating_sub(left));
            credited = body.content_bytes;
        }
        Ok(true)
    }

    /// Writes `out[from..]` and then `behind` to the client; each step may take `limit`.
    fn write_to_client<'a>(
        &'a mut self,
        from: usize,
        behind: &'a [u8],
        limit: Duration,
    ) -> impl Future<Output = io::Result<()>> {
        let Connection { stream, deadline, .. } = &mut self.exchange.connection;
        write_all(stream, deadline, Some(limit), [&self.out[from..], behind].into_iter())
    }

    /// Reports a failed request to the control thread.
    fn report_failure(&self, slot: &Slot) {
        // The control thread is gone when the switch ends.
        let _ = self.shared.reports.send(WorkerReport::Failed(slot.server.id));
    }

    /// Resets the connection on close: a body without framing must not look complete.
    fn reset(&mut self) {
        self.exchange.connection.stream.reset_on_close();
        self.exchange.leaves_unread = false;
        self.exchange.connection.input = InputBuffer::default();
    }

    /// Takes the bytes of the body that arrived with its head. Returns how many were taken, and how many of those, at their end,
    /// are still to be written from the input buffer. An error: the chunked coding is broken.
    fn take_buffered_body(&mut self, body: &mut RelayedBody, bytes: &[u8]) -> Result<(usize, usize), ()> {
        if body.plain_left().is_some() && bytes.len() > COPY_MAX_BYTES {
            let taken = body.take_plain(bytes.len());
            return Ok((taken, taken));
        }
        body.take(bytes, &mut self.out).map(|taken| (taken, 0)).map_err(drop)
    }

    /// Returns a connection to the pool if it can be used again.
    fn release_upstream(&self, mut upstream: Upstream, server: &Server, persists: bool) {
        let is_clean = upstream.input.unread().is_empty();
        upstream.input.release_if_empty(&self.shared.resources.memory);
        if persists && is_clean && server.weight.get().is_some() {
            server.put_back(upstream.stream, now_ns());
        }
    }

    /// Appends `Connection: close` to a complete head.
    fn append_connection_close(&mut self) {
        self.out.truncate(self.out.len().saturating_sub(2));
        self.out.extend_from_slice(b"Connection: close\r\n\r\n");
    }
}

/// Classifies an I/O error of a server's connection.
pub fn server_error(server: &Server, error: &io::Error) -> ServerError {
    match error.kind() {
        io::ErrorKind::TimedOut => ServerError::TimedOut(server.name.clone()),
        _ => ServerError::Lost(server.name.clone()),
    }
}

/// Waits for a server as long as the client is there; an error once the client has gone. `work` waits under the same deadline.
///
/// A client is gone when its HTTP/2 stream was reset, its HTTP/2 connection has ended, or its connection was reset. A half-close over HTTP/1.1
/// does not count: such a client still gets its response. A short wait, as nearly all are, does not register the client's socket with epoll
/// ([`Deadline::remind`]).
pub fn until_client_gone<'c, T>(
    client: &'c Transport,
    deadline: &'c Deadline,
    mut work: impl Future<Output = T> + Unpin + 'c,
) -> impl Future<Output = io::Result<T>> + 'c
where
    T: 'c,
{
    poll_fn(move |cx| match Pin::new(&mut work).poll(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => {
            client.poll_gone(deadline.is_reminded(), cx).map(|()| Err(io::ErrorKind::ConnectionReset.into()))
        }
    })
}
