//! What does one client connection go through? Requests read, sent to servers, and their answers sent back, one after the
//! other.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use assay_dispatch::{Request, ServerId};
use assay_http::framing::BodyFraming;
use assay_http::head::RequestHead;
use tokio::io::AsyncWriteExt;

use super::runtime::{now_ns, spawn};
use super::setup::Setup;
use super::slot::{Standing, Waiting};
use super::stream::Stream;
use super::{Shared, unix_s};
use crate::access_log::Line;
use crate::document::document;
use crate::forwarded::Peer;
use crate::reply::{self, For};
use crate::request::{self, Facts, Refusal};
use crate::tally::add;
use crate::upgrade;
use assay_plane::socket::{Input, write_all};
use assay_plane::watch::Deadline;

/// How long, and how much, is read from a client that was refused, so that it gets to read why.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_READS: usize = 64;
/// A body up to this size that is here already goes out with its head.
const INLINE_BYTES: u64 = 16 * 1024;
/// A target that is too long may be told from other heads without end once it is so much too long: the method is before it.
const METHOD_BYTES: u64 = 64;

/// A client's connection.
pub struct Client {
    pub(super) stream: Stream,
    pub(super) input: Input,
    /// What goes to the client next.
    pub(super) out: Vec<u8>,
    /// What goes to the server: the head, and a small body.
    pub(super) request: Vec<u8>,
    pub(super) deadline: Deadline,
    pub(super) shared: Rc<Shared>,
    pub(super) persists: bool,
    /// Some of the request is still to be read, or will never be.
    pub(super) leaves_unread: bool,
    peer: Peer,
    own: SocketAddr,
    said: Said,
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
    /// Who answered; none: the switch.
    pub server: Option<ServerId>,
    /// When it had a server, and when the answer began, in nanoseconds.
    pub reached_ns: [u64; 2],
}

/// Serves a connection in the background.
pub fn start(stream: Stream, peer: SocketAddr, own: SocketAddr, shared: &Rc<Shared>) {
    shared.counts.clients.set(shared.counts.clients.get() + 1);
    let setup = shared.setup();
    let client = Client {
        stream,
        input: Input::default(),
        out: Vec::new(),
        request: Vec::new(),
        deadline: shared.watch.enter(),
        shared: Rc::clone(shared),
        persists: true,
        leaves_unread: false,
        peer: Peer::new(peer, &setup.config.name, &setup.config.trusted),
        own,
        said: Said::default(),
    };
    spawn(client.serve());
}

impl Drop for Client {
    fn drop(&mut self) {
        let counts = &self.shared.counts;
        counts.clients.set(counts.clients.get() - 1);
        self.shared.changed.notify_waiters();
    }
}

impl Client {
    /// Until the connection ends. Errors are the client's own doing, or were told to it: nobody else is interested.
    async fn serve(mut self) {
        while self.persists {
            if self.turn().await.is_err() {
                return;
            }
        }
        if self.leaves_unread || !self.input.unread().is_empty() {
            Box::pin(self.linger()).await;
        }
    }

    /// Closing while something is unread resets the connection, and could take the answer with it.
    async fn linger(&mut self) {
        self.deadline.set(LINGER);
        let _ = self.stream.shutdown().await;
        let shared = Rc::clone(&self.shared);
        for _ in 0..LINGER_READS {
            match shared.memory.read(&mut self.stream, &self.deadline, |bytes| bytes.len()).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
        }
    }

    /// One request and its answer.
    async fn turn(&mut self) -> io::Result<()> {
        let Some(read) = self.head().await? else {
            self.persists = false;
            return Ok(());
        };
        let shared = Rc::clone(&self.shared);
        self.out = shared.memory.take();
        let ended = match read {
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
            Err(refusal) => Box::pin(self.refuse(refusal)).await,
        };
        shared.memory.give(std::mem::take(&mut self.out));
        shared.memory.give(std::mem::take(&mut self.request));
        ended
    }

    /// Waits for the head of a request; none when the client has no more.
    async fn head(&mut self) -> io::Result<Option<Result<Order, Refusal>>> {
        let shared = Rc::clone(&self.shared);
        let timeouts = shared.setup.borrow().config.timeouts;
        let mut has_begun = !self.input.unread().is_empty();
        self.deadline.set(if has_begun { timeouts.client_request } else { timeouts.client_idle });
        loop {
            if has_begun && let Some(read) = self.take_head().transpose() {
                self.deadline.set_idle(false);
                return Ok(Some(read));
            }
            self.deadline.set_idle(!has_begun);
            match shared.memory.fill(&mut self.stream, &self.deadline, &mut self.input).await {
                Ok(0) => return Ok(None),
                Ok(_) if has_begun => {}
                Ok(_) => {
                    has_begun = true;
                    self.deadline.set(timeouts.client_request);
                }
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                    self.deadline.set_idle(false);
                    return Ok(has_begun.then_some(Err(Refusal::TooSlow)));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Takes a head out of the input, once it is there as a whole, and writes the one for the server.
    fn take_head(&mut self) -> Result<Option<Order>, Refusal> {
        let setup = self.shared.setup();
        let limits = &setup.config.limits;
        let unread = self.input.unread();
        let Some((head, length)) = RequestHead::parse(unread)? else {
            let bytes = unread.len() as u64;
            if bytes > limits.target_bytes + METHOD_BYTES && memchr::memchr(b'\n', unread).is_none() {
                return Err(Refusal::TargetTooLong(limits.target_bytes));
            }
            if bytes > limits.head_bytes {
                return Err(Refusal::HeadTooLong(limits.head_bytes));
            }
            return Ok(None);
        };
        let target = request::target(&head, limits)?;
        let facts = request::facts(&head, length, limits)?;
        let class = setup.classes.of(&head, target.path.as_bytes());
        let asked = Request { class, document: document(target.path.as_bytes()) };
        self.request = self.shared.memory.take();
        let name = &setup.config.name;
        let with_raw = (&head, &unread[..length]);
        request::append(&mut self.request, with_raw, target, facts, &self.peer, name, self.own);
        let upgrade = upgrade::asked(&head, facts.body, &setup.config.upgrades).map(str::to_owned);
        if let Some(protocol) = &upgrade {
            upgrade::append(&mut self.request, protocol);
        }
        if setup.logs {
            self.said.take(&head, &self.peer, &setup);
        }
        self.input.consume(length);
        self.persists = facts.persists && !self.shared.is_stopping.get();
        self.leaves_unread = !matches!(facts.body, BodyFraming::None | BodyFraming::Length(0));
        self.take_small_body(&facts);
        self.input.rest(&self.shared.memory);
        let standing = Standing { setup, request: asked };
        Ok(Some(Order { facts, standing, upgrade, at_ns: now_ns() }))
    }

    /// A small body that is here already goes out with the head.
    fn take_small_body(&mut self, facts: &Facts) {
        if let BodyFraming::Length(bytes @ 1..=INLINE_BYTES) = facts.body
            && let Some(body) = self.input.unread().get(..bytes as usize)
        {
            self.request.extend_from_slice(body);
            self.input.consume(bytes as usize);
            self.leaves_unread = false;
        }
    }

    /// What is needed while its request waits for a server.
    pub(super) fn waiting(&mut self) -> Waiting<'_> {
        Waiting { stream: &mut self.stream, input: &mut self.input, deadline: &self.deadline }
    }

    /// Whom an answer is for.
    pub(super) fn asked(&self, facts: &Facts) -> For {
        For { is_head: facts.is_head, is_11: facts.is_11, persists: self.persists }
    }

    /// Answers what cannot be understood, or is too much; after that the connection is of no use.
    pub(super) async fn refuse(&mut self, refusal: Refusal) -> io::Result<()> {
        add(&self.shared.counts.refused);
        (self.persists, self.leaves_unread) = (false, true);
        let is_head = self.input.unread().starts_with(b"HEAD ");
        let asked = For { is_head, is_11: true, persists: false };
        self.write_own(refusal.status(), &refusal.to_string(), asked).await
    }

    /// Answers for want of a server's answer.
    pub(super) async fn send_own(&mut self, order: &Order, status: u16, why: &str) -> io::Result<Done> {
        if self.leaves_unread {
            self.persists = false;
        }
        self.write_own(status, why, self.asked(&order.facts)).await?;
        let ended_ns = now_ns();
        Ok(Done { status, bytes: why.len() as u64 + 1, server: None, reached_ns: [ended_ns; 2] })
    }

    async fn write_own(&mut self, status: u16, why: &str, asked: For) -> io::Result<()> {
        self.out.clear();
        reply::append_own(&mut self.out, status, why, &self.shared.date(), asked);
        self.deadline.set(self.shared.setup.borrow().config.timeouts.client_request);
        write_all(&mut self.stream, &self.deadline, &mut [IoSlice::new(&self.out)]).await
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
            tally.answers[first_digit - 1] += 1;
            tally.bytes += done.bytes;
            tally.first_byte.record(times_us[1]);
            tally.times.record(times_us[2]);
        });
        if let Some(log) = &mut *self.shared.log.borrow_mut() {
            let server = done.server.and_then(|id| setup.servers.get(&id)).map(|server| server.name.as_str());
            log.add(&Line {
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
        }
    }
}

impl Said {
    fn take(&mut self, head: &RequestHead<'_>, peer: &Peer, setup: &Setup) {
        let set = |kept: &mut Vec<u8>, parts: &[&[u8]]| {
            kept.clear();
            parts.iter().for_each(|part| kept.extend_from_slice(part));
        };
        let version: &[u8] = match head.facts.version {
            assay_http::head::Version::Http10 => b" HTTP/1.0",
            assay_http::head::Version::Http11 => b" HTTP/1.1",
        };
        set(&mut self.line, &[head.method.as_bytes(), b" ", head.target.as_bytes(), version]);
        set(&mut self.referer, &[head.header("referer").unwrap_or(b"")]);
        set(&mut self.agent, &[head.header("user-agent").unwrap_or(b"")]);
        self.client.clear();
        self.client.push_str(peer.client(head.headers(), &setup.config.trusted));
    }
}
