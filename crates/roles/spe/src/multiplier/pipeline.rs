//! Pipelined requests of a client, forwarded to the Collector ahead of their turn.
//!
//! They are sent on the connection of the request before them, which the Collector serves in order, as an origin does. Only
//! requests that the client has pipelined are pipelined here, and only those that may be repeated if the connection fails: GET
//! and HEAD without a body (RFC 9112, 9.3.2). The proxies get one request at a time ([`super::proxy_connections`]).
//!
//! The time of such a request counts from the end of the response before it. That is when the Collector begins with it, unless
//! its response has to wait here for a slow client: then neither the instant nor the time is known.

use std::collections::VecDeque;
use std::rc::Rc;

use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_net::exchange::Transport;
use assay_net::upstream::Upstream;
use assay_record::spe::ResponseError;

use super::client::MultiplierClient;
use super::client_context::ClientContext;
use super::fanout::Fanout;
use super::message::ReceivedRequest;
use super::shared_state::{ClientLoad, count};

/// Requests forwarded ahead of their turn, and their bytes: a client that sends more is not read further. All of them fit into
/// socket buffers while the Collector is busy with its response and reads nothing.
const AHEAD_MAX: usize = 32;
const AHEAD_MAX_BYTES: usize = 16 << 10;

/// Requests received ahead of their turn, and the connection to the Collector that has them.
#[derive(Default)]
pub struct RequestPipeline {
    requests: VecDeque<(ReceivedRequest, usize)>,
    /// The first ones of `requests` that were sent.
    sent: usize,
    /// Bytes of all of them, as received.
    bytes: usize,
    /// Connection that has them, while no response is under way on it.
    ahead: Option<Ahead>,
}

/// A connection to the Collector on which the next request was sent already.
pub struct Ahead {
    pub upstream: Box<Upstream>,
    /// End of the response before it; `None` if its beginning had to wait here.
    pub since_ns: Option<u64>,
}

/// Next data on a client's connection.
enum Following {
    /// A request to forward, and its length.
    Request(Box<ReceivedRequest>, usize),
    /// Nothing, or an incomplete head.
    Nothing,
    /// A request that must wait for its turn.
    Waits,
}

impl RequestPipeline {
    /// Next request, if it was received ahead of its turn, with the connection that has it.
    pub fn next(&mut self) -> Option<(ReceivedRequest, Option<Ahead>)> {
        let (request, length) = self.requests.pop_front()?;
        self.bytes -= length;
        let ahead = self.ahead.take().filter(|_| self.sent > 0);
        self.sent = self.sent.saturating_sub(1);
        Some((request, ahead))
    }

    /// Whether the connection to the Collector has further requests.
    pub fn is_ahead(&self) -> bool {
        self.sent > 0
    }

    /// Keeps a connection that has further requests.
    pub fn keep(&mut self, upstream: Box<Upstream>, ended_ns: Option<u64>) {
        let since_ns = ended_ns.filter(|_| upstream.connection.input.unread().is_empty());
        self.ahead = Some(Ahead { upstream, since_ns });
    }

    /// Records that the connection has failed or ended: nothing counts as sent.
    pub fn lose(&mut self) {
        (self.sent, self.ahead) = (0, None);
    }

    /// Heads of all requests not yet sent; counts them as sent.
    pub fn take_unsent(&mut self) -> Vec<u8> {
        let unsent =
            self.requests.iter().skip(self.sent).flat_map(|(request, _)| request.for_collector()).collect();
        self.sent = self.requests.len();
        unsent
    }

    /// Logs the requests that were sent to the Collector and not served, at the end of the client's connection.
    pub fn end(&mut self, load: &ClientLoad, shared: &Rc<ClientContext>, error: ResponseError) {
        for (request, _) in self.requests.drain(..).take(self.sent) {
            count(&shared.state.requests);
            let mut fanout = Fanout::new(load.clone(), request, Rc::clone(shared));
            fanout.measurement.error = Some(error);
            fanout.end(None);
        }
    }
}

impl MultiplierClient {
    /// Reads requests behind the current one that may be forwarded. False: no later one may be, either.
    pub fn look_ahead(&mut self) -> bool {
        loop {
            match self.following() {
                Following::Request(request, length) => {
                    self.pipeline.bytes += length;
                    self.pipeline.requests.push_back((*request, length));
                }
                Following::Nothing => return true,
                Following::Waits => return false,
            }
        }
    }

    fn following(&self) -> Following {
        let RequestPipeline { requests, bytes, .. } = &self.pipeline;
        let persists = requests.back().map_or(self.exchange.persists, |(last, _)| last.persists);
        let has_room = requests.len() < AHEAD_MAX && *bytes < AHEAD_MAX_BYTES;
        let is_other = !self.exchange.is_body_read() || self.exchange.connection.stream.is_http2();
        if !persists || !has_room || is_other || self.shared.is_stopping.get() {
            return Following::Waits;
        }
        let unread = self.exchange.connection.input.unread().get(*bytes..).unwrap_or_default();
        match RequestHead::parse(unread) {
            Ok(None) if unread.len() < AHEAD_MAX_BYTES => Following::Nothing,
            Ok(Some((head, length))) if may_be_sent_ahead(&head) && bytes + length <= AHEAD_MAX_BYTES => self
                .accept_request(&head, head.facts.version.into())
                .map_or(Following::Waits, |request| Following::Request(Box::new(request), length)),
            // Refusals are sent in turn.
            _ => Following::Waits,
        }
    }
}

/// Whether a request may be repeated and is complete.
fn may_be_sent_ahead(head: &RequestHead<'_>) -> bool {
    let is_bare = head.body() == BodyFraming::None && !head.expect_continue;
    matches!(head.method, "GET" | "HEAD") && head.facts.version == Version::Http11 && is_bare
}
