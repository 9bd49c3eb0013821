//! A request on its way to a server, and the response back: by another server where one is lost, if that is safe.
//!
//! Safe is: nothing of the request was sent (no connection came about), or it is idempotent and has no body, and no byte of
//! a response was there. What cannot be repeated gets a connection of its own, so that it does not meet one that the server is
//! just closing.
//!
//! What happens seldom is boxed: a future is as large as the largest that it may wait for, and is moved whenever it begins.

use std::future::{Future, poll_fn};
use std::io;
use std::iter;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use assay_cluster::dispatch::ServerId;
use assay_http::head::{HeadError, ResponseHead};
use thiserror::Error;

use super::away::unless_gone;
use super::client::{Client, Done, Order};
use super::runtime::now_ns;
use super::server::{Server, Upstream};
use super::slot::{Slot, Unserved, acquire};
use super::spliced::Moved;
use crate::plan::News;
use crate::request::Refusal;
use crate::response::{self, Framing};
use crate::tally::add;
use crate::upgrade;
use assay_net::carrier::Carrier;
use assay_net::connection::Connection;
use assay_net::exchange::Stream as _;
use assay_net::http2;
use assay_net::interim;
use assay_net::limits::MOST_INTERIM_RESPONSES;
use assay_net::memory::{Input, wait, write_all};
use assay_net::relay::{Part, next_part};

/// The part of a body that came with its head is copied behind it up to this size: cheaper than two slices.
const COPIED_BYTES: usize = 4096;

/// Whose place a client keeps whose request has no server.
const NOBODY: u32 = 0;

/// How the place of a server is called that a client keeps ([`assay_net::watch::Deadline::keep`]).
pub fn keeper_of(server: ServerId) -> u32 {
    server.0 + 1
}

/// Why a server gave no usable response. The texts go to the client.
#[derive(Debug, Error)]
pub enum Loss {
    #[error("server {0} could not be reached: {1}")]
    Unreachable(String, io::Error),
    /// It did not accept a connection in time.
    #[error("server {0} did not accept a connection in time")]
    NoConnection(String),
    /// It did not respond in time.
    #[error("server {0} did not respond in time")]
    TimedOut(String),
    /// It closed the connection without a response.
    #[error("server {0} closed the connection without a response")]
    Lost(String),
    /// Its response is not HTTP, or makes no sense here.
    #[error("the response of server {0} is not usable: {1}")]
    BadResponse(String, HeadError),
}

impl Loss {
    /// The status that tells the client.
    pub fn status(&self) -> u16 {
        match self {
            Loss::TimedOut(_) | Loss::NoConnection(_) => 504,
            Loss::Unreachable(..) | Loss::Lost(_) | Loss::BadResponse(..) => 502,
        }
    }
}

/// Why an exchange did not come about.
pub enum Fault {
    Client(io::Error),
    Refused(Refusal),
    /// The server; and whether another may be tried.
    Server(Loss, bool),
}

/// A response whose head was read and written anew.
pub struct Response {
    pub(super) upstream: Upstream,
    facts: response::Facts,
    /// The server has all of the request.
    is_sent: bool,
}

impl Client {
    /// Sends the request, and the response back.
    pub(super) async fn exchange(&mut self, order: &mut Order) -> io::Result<Done> {
        let shared = Rc::clone(&self.shared);
        let mut tried: Vec<ServerId> = Vec::new();
        let mut last: Option<Loss> = None;
        loop {
            let mut slot = match acquire(&shared, &mut order.standing, &tried, self.waiting()).await {
                Ok(slot) => slot,
                Err(Unserved::Left) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Err(unserved) => {
                    return match last {
                        Some(loss) if unserved == Unserved::Nobody => {
                            Box::pin(self.send_own(order, loss.status(), &loss.to_string())).await
                        }
                        _ => {
                            shared.count_unserved(unserved);
                            Box::pin(self.send_own(order, 503, unserved.text())).await
                        }
                    };
                }
            };
            // While the client is waited for, it keeps a place of that server.
            self.exchange.connection.deadline.keep(keeper_of(slot.server.id));
            let fault = match self.attempt(&slot, order).await {
                Ok(response) if response.facts.status == 101 => {
                    return Box::pin(self.tunnel(slot, order, response)).await;
                }
                Ok(response) => return self.relay(slot, order, response).await,
                Err(fault) => fault,
            };
            let id = slot.server.id;
            // Whatever the client did is not the server's failure.
            slot.has_response = !matches!(fault, Fault::Server(..));
            if !slot.has_response {
                self.tell_failure(&slot);
            }
            drop(slot);
            let (loss, can_repeat) = match fault {
                Fault::Client(error) => {
                    // One that is late is counted where it is seen to be.
                    if error.kind() != io::ErrorKind::TimedOut {
                        add(&shared.counts.left);
                    }
                    return Err(error);
                }
                Fault::Refused(refusal) => {
                    let status = refusal.status();
                    shared.counts.refuse(refusal);
                    self.exchange.give_up();
                    return Box::pin(self.send_own(order, status, &refusal.to_string())).await;
                }
                Fault::Server(loss, can_repeat) => (loss, can_repeat),
            };
            let may_repeat =
                can_repeat && (tried.len() as u64) < u64::from(order.standing.setup.config.retries);
            order.standing.setup.tally(order.standing.class(), Some(id)).with(|tally| {
                tally.failed += 1;
                tally.retried += u64::from(may_repeat);
            });
            if !may_repeat {
                return Box::pin(self.send_own(order, loss.status(), &loss.to_string())).await;
            }
            tried.push(id);
            last = Some(loss);
        }
    }

    /// Sends the request to one server.
    async fn attempt(&mut self, slot: &Slot, order: &Order) -> Result<Response, Fault> {
        self.exchange.connection.deadline.remind();
        let kept = if order.facts.can_repeat { slot.server.take_idle() } else { None };
        if let Some(upstream) = kept {
            match self.converse(upstream, slot, order).await {
                // The server had closed it: that is no failure, a new connection will do.
                Err(Fault::Server(Loss::Lost(_), _)) => {}
                other => return other,
            }
        }
        let upstream = Box::pin(self.connect(&slot.server, order)).await?;
        let is_reused = upstream.is_reused;
        match self.converse(upstream, slot, order).await {
            // The same with a connection of HTTP/2 that others had used before.
            Err(Fault::Server(Loss::Lost(_), true)) if is_reused => {
                let upstream = Box::pin(self.connect(&slot.server, order)).await?;
                self.converse(upstream, slot, order).await
            }
            other => other,
        }
    }

    async fn connect(&mut self, server: &Server, order: &Order) -> Result<Upstream, Fault> {
        let Connection { stream, deadline, .. } = &self.exchange.connection;
        deadline.set(order.standing.setup.config.timeouts.connect);
        let shared = Rc::clone(&self.shared);
        let mut connecting = pin!(server.connect(&shared.resources));
        let connected = poll_fn(|cx| match connecting.as_mut().poll(cx) {
            Poll::Ready(connected) => Poll::Ready(connected),
            Poll::Pending => wait(deadline, cx),
        });
        let connected = unless_gone(stream, deadline, connected).await.map_err(Fault::Client)?;
        if !connected.as_ref().is_ok_and(|upstream| upstream.is_reused) {
            add(&shared.counts.connects);
        }
        connected.map_err(|error| {
            let loss = match error.kind() {
                io::ErrorKind::TimedOut => Loss::NoConnection(server.name.clone()),
                _ => Loss::Unreachable(server.name.clone(), error),
            };
            Fault::Server(loss, true)
        })
    }

    /// Sends the request and waits for the head of the final response.
    async fn converse(
        &mut self,
        mut upstream: Upstream,
        slot: &Slot,
        order: &Order,
    ) -> Result<Response, Fault> {
        self.exchange.connection.deadline.set(order.standing.setup.config.timeouts.response);
        let Connection { stream, deadline, .. } = &self.exchange.connection;
        let sent = write_all(&mut upstream.stream, deadline, None, iter::once(&self.request[..]));
        if let Err(error) = unless_gone(stream, deadline, sent).await.map_err(Fault::Client)? {
            let is_repeatable = order.facts.can_repeat || error.kind() == http2::UNPROCESSED;
            let can_repeat = is_repeatable && error.kind() != io::ErrorKind::TimedOut;
            return Err(Fault::Server(loss(&slot.server, &error), can_repeat));
        }
        // A body that went with the head is read already.
        let is_sent = if self.exchange.leaves_unread {
            upstream.has_upload = true;
            Box::pin(self.upload(&mut upstream, slot, order)).await?
        } else {
            true
        };
        self.exchange.connection.deadline.set(order.standing.setup.config.timeouts.response);
        let facts = self.response_head(&mut upstream, slot, order).await?;
        Ok(Response { upstream, facts, is_sent })
    }

    /// Waits for the head of the final response, and writes it anew into `out`. Interim responses go to the client at once.
    async fn response_head(
        &mut self,
        upstream: &mut Upstream,
        slot: &Slot,
        order: &Order,
    ) -> Result<response::Facts, Fault> {
        let shared = Rc::clone(&self.shared);
        let name = &order.standing.setup.config.name;
        let server = &slot.server.name;
        let bad = |error| Fault::Server(Loss::BadResponse(server.clone(), error), false);
        loop {
            match ResponseHead::parse(upstream.input.unread()).map_err(bad)? {
                Some((head, _))
                    if head.is_interim() && upstream.interim_responses == MOST_INTERIM_RESPONSES =>
                {
                    return Err(bad(HeadError::Syntax("interim responses without end")));
                }
                Some((head, length)) if head.is_interim() => {
                    upstream.interim_responses += 1;
                    // The body is sent already, or was never waited with.
                    let is_for_client = order.facts.is_11 && head.status != 100;
                    self.out.clear();
                    if is_for_client {
                        interim::append(&mut self.out, &head, name);
                    }
                    upstream.input.consume(length);
                    if is_for_client {
                        let timeouts = order.standing.setup.config.timeouts;
                        Box::pin(self.send_on(0, &[], timeouts.client_request))
                            .await
                            .map_err(Fault::Client)?;
                        self.exchange.connection.deadline.set(timeouts.response);
                    }
                    continue;
                }
                Some((head, length)) if head.status == 101 => {
                    if let Some(protocol) = order.upgrade.as_deref().filter(|it| upgrade::agrees(&head, it)) {
                        slot.begun(&head);
                        self.out.clear();
                        // What the connection will be is for the other protocol to say.
                        let requested = response::For { persists: true, ..self.requested(&order.facts) };
                        let raw = &upstream.input.unread()[..length];
                        let facts =
                            response::append(&mut self.out, (&head, raw), requested, name, || shared.date());
                        upgrade::append(&mut self.out, protocol);
                        upstream.input.consume(length);
                        return Ok(facts);
                    }
                    return Err(bad(HeadError::Syntax("it switches to a protocol that nobody requested")));
                }
                Some((head, length)) => {
                    slot.begun(&head);
                    self.out.clear();
                    let requested = self.requested(&order.facts);
                    let raw = &upstream.input.unread()[..length];
                    let facts =
                        response::append(&mut self.out, (&head, raw), requested, name, || shared.date());
                    upstream.input.consume(length);
                    return Ok(facts);
                }
                None => {}
            }
            let Connection { stream, deadline, .. } = &self.exchange.connection;
            let filled = shared.resources.memory.fill(&mut upstream.stream, deadline, &mut upstream.input);
            match unless_gone(stream, deadline, filled).await.map_err(Fault::Client)? {
                Ok(0) if upstream.input.unread().is_empty() => {
                    return Err(Fault::Server(Loss::Lost(server.clone()), order.facts.can_repeat));
                }
                Ok(0) => return Err(bad(HeadError::Syntax("the connection ended within the head"))),
                Ok(_) => {}
                Err(error) => {
                    // A server that is late is at work still: another would do it all again.
                    let is_lost =
                        upstream.input.unread().is_empty() && error.kind() != io::ErrorKind::TimedOut;
                    let is_untouched = error.kind() == http2::UNPROCESSED && !upstream.has_upload;
                    let can_repeat = (order.facts.can_repeat || is_untouched) && is_lost;
                    return Err(Fault::Server(loss(&slot.server, &error), can_repeat));
                }
            }
        }
    }

    /// Sends the response on. What breaks off is broken off towards the client too.
    async fn relay(&mut self, mut slot: Slot, order: &Order, response: Response) -> io::Result<Done> {
        let Response { mut upstream, facts, is_sent } = response;
        let shared = Rc::clone(&self.shared);
        let timeouts = order.standing.setup.config.timeouts;
        let mut done = Done {
            status: facts.status,
            bytes: 0,
            server: Some(slot.server.id),
            reached_ns: [slot.started_ns, now_ns()],
        };
        self.exchange.persists = facts.client_persists && is_sent;
        if !is_sent && facts.client_persists {
            // The head says that the connection lives on; it does not.
            self.say_close();
        }
        let mut carrier = Carrier::new(facts.from_server, facts.to_client == Framing::Chunked);
        let taken = self.first_part(&mut carrier, upstream.input.unread());
        let Ok((taken, plain)) = taken else {
            // Nothing of it has gone to the client.
            let loss = Loss::BadResponse(slot.server.name.clone(), HeadError::Syntax("its body is broken"));
            self.tell_failure(&slot);
            drop(slot);
            return Box::pin(self.send_own(order, loss.status(), &loss.to_string())).await;
        };
        if carrier.is_done() && plain == 0 {
            // All is here: the server is free before the client has it.
            upstream.input.consume(taken);
            slot.has_response = true;
            self.let_go(upstream, &slot.server, facts.server_persists && is_sent);
            drop(slot);
            self.exchange.connection.deadline.keep(NOBODY);
            self.exchange.connection.deadline.await_peer(timeouts.client_request);
            // A client that has said that it sends nothing more gets the response and the end in one packet; but some send a line
            // end after a body.
            let is_last = !order.facts.persists
                && order.facts.can_repeat
                && self.exchange.connection.input.unread().is_empty();
            let written = if is_last { self.exchange.connection.stream.write_last(&self.out)? } else { 0 };
            self.send_on(written, &[], timeouts.client_request).await?;
            done.bytes = carrier.payload;
            return Ok(done);
        }
        self.send_on(0, &upstream.input.unread()[taken - plain..taken], timeouts.client_request).await?;
        upstream.input.consume(taken);
        upstream.input.rest(&shared.resources.memory);
        let is_whole = Box::pin(self.carry(&mut upstream, &mut carrier, &slot, order)).await;
        done.bytes = carrier.payload;
        // A client that goes away is not the server's failure.
        slot.has_response = !matches!(is_whole, Ok(false));
        if is_whole? {
            self.let_go(upstream, &slot.server, facts.server_persists && is_sent);
        } else {
            // What the client has is not all, and it will know by the end of the connection.
            self.exchange.persists = false;
            if facts.to_client == Framing::UntilClose {
                self.reset();
            }
        }
        Ok(done)
    }

    /// Sends on the rest of a body; false when it broke off. An error is the client's.
    async fn carry(
        &mut self,
        upstream: &mut Upstream,
        carrier: &mut Carrier,
        slot: &Slot,
        order: &Order,
    ) -> io::Result<bool> {
        let timeouts = order.standing.setup.config.timeouts;
        if let Moved::Broken = Box::pin(self.move_body(upstream, carrier, slot, order)).await? {
            self.tell_failure(slot);
            return Ok(false);
        }
        let mut earned = carrier.payload;
        while !carrier.is_done() {
            self.exchange.connection.deadline.set(timeouts.response);
            self.out.clear();
            let to = &self.exchange.connection;
            let from = (&mut upstream.stream, &to.deadline);
            let (memory, carried) = (&self.shared.resources.memory, (&mut *carrier, &mut self.out));
            let part =
                next_part(memory, from, &mut upstream.input, carried, |bytes| to.stream.try_write(bytes));
            let part = unless_gone(&to.stream, &to.deadline, pin!(part)).await?;
            match part {
                Ok(Part::Some) => {}
                Ok(Part::Broken) => {
                    self.tell_failure(slot);
                    return Ok(false);
                }
                Ok(Part::ClientGone(error)) => return Err(error),
                Err(_) => {
                    self.tell_failure(slot);
                    return Ok(false);
                }
            }
            let left = self.out.len() as u64;
            if left > 0 {
                self.send_on(0, &[], timeouts.client_request).await?;
            }
            // What it took at once; for the rest it has its due.
            self.exchange.connection.deadline.earn((carrier.payload - earned).saturating_sub(left));
            earned = carrier.payload;
        }
        Ok(true)
    }

    /// Sends to the client what is in `out` from there on, and these bytes behind it. Until it has taken the next of them, it may take
    /// `limit`.
    fn send_on<'a>(
        &'a mut self,
        from: usize,
        behind: &'a [u8],
        limit: Duration,
    ) -> impl Future<Output = io::Result<()>> {
        let Connection { stream, deadline, .. } = &mut self.exchange.connection;
        write_all(stream, deadline, Some(limit), [&self.out[from..], behind].into_iter())
    }

    /// Reports to the thread that steers that a server has failed a request.
    fn tell_failure(&self, slot: &Slot) {
        // Nobody steers any more when the switch ends.
        let _ = self.shared.news.send(News::Failed(slot.server.id));
    }

    /// The end of the connection is the end of the body for this client: it must not look like one.
    fn reset(&mut self) {
        self.exchange.connection.stream.reset_on_close();
        self.exchange.leaves_unread = false;
        self.exchange.connection.input = Input::default();
    }

    /// Takes the part of the body that came with its head: how many bytes, and how many of them, at their end, are still to be
    /// written from where they are. An error: its coding is broken.
    fn first_part(&mut self, carrier: &mut Carrier, bytes: &[u8]) -> Result<(usize, usize), ()> {
        if carrier.is_plain() && bytes.len() > COPIED_BYTES {
            let taken = carrier.take_plain(bytes.len());
            return Ok((taken, taken));
        }
        carrier.take(bytes, &mut self.out).map(|taken| (taken, 0)).map_err(drop)
    }

    /// Keeps the connection to a server if it can be used again.
    fn let_go(&self, mut upstream: Upstream, server: &Server, persists: bool) {
        let is_clean = upstream.input.unread().is_empty();
        upstream.input.rest(&self.shared.resources.memory);
        if persists && is_clean && server.standing.get().is_some() {
            server.put_back(upstream.stream, now_ns());
        }
    }

    /// Adds `Connection: close` to a head that is written already.
    fn say_close(&mut self) {
        self.out.truncate(self.out.len().saturating_sub(2));
        self.out.extend_from_slice(b"Connection: close\r\n\r\n");
    }
}

/// What an error of a server's connection means.
pub fn loss(server: &Server, error: &io::Error) -> Loss {
    match error.kind() {
        io::ErrorKind::TimedOut => Loss::TimedOut(server.name.clone()),
        _ => Loss::Lost(server.name.clone()),
    }
}
