//! Requests that a client has pipelined, sent on to the Collector before their turn.
//!
//! The Collector gets them on the connection that the one before them uses, which it serves one after the other, as an origin does. Only
//! what the client has pipelined is pipelined here, and only what may be sent again if that connection fails: GET and HEAD without a body
//! (RFC 9112, 9.3.2). The proxies get one request at a time ([`super::lanes`]).
//!
//! The time of such a request counts from the end of the response before it. That is when the Collector begins with it, unless
//! what it sends has to wait here for a slow client: then the instant is not known, and neither is the time.

use std::collections::VecDeque;
use std::rc::Rc;

use assay_http::framing::BodyFraming;
use assay_http::head::{RequestHead, Version};
use assay_net::exchange::Stream;
use assay_net::upstream::Upstream;
use assay_record::spe::ResponseError;

use super::board::{Line, count};
use super::client::Client;
use super::message::Order;
use super::rest::Rest;
use super::shared::Shared;

/// Most requests that are sent on before their turn, and most bytes of them: a client that sends more is not read further.
/// All of them fit into what the system takes while the Collector is busy with its response and reads nothing.
const MOST_AHEAD: usize = 32;
const MOST_BYTES_AHEAD: usize = 16 << 10;

/// The requests of a connection that are known before their turn, and the connection to the Collector that has them.
#[derive(Default)]
pub struct Pipeline {
    orders: VecDeque<(Order, usize)>,
    /// So many of them, the first ones, were sent.
    sent: usize,
    /// All of them together have so many bytes, as they came.
    bytes: usize,
    /// Where they were sent, while no response is under way there.
    ahead: Option<Ahead>,
}

/// A connection to the Collector on which the next request was sent already.
pub struct Ahead {
    pub upstream: Box<Upstream>,
    /// When the response before it ended; none: its beginning has waited here.
    pub since_ns: Option<u64>,
}

/// What follows on a client's connection.
enum Following {
    /// A request to be sent on, and its length.
    Request(Box<Order>, usize),
    /// Nothing yet, or only a part.
    Nothing,
    /// What has to wait for its turn.
    Waits,
}

impl Pipeline {
    /// The request whose turn it is, if it was known before, and where it was sent.
    pub fn next(&mut self) -> Option<(Order, Option<Ahead>)> {
        let (order, length) = self.orders.pop_front()?;
        self.bytes -= length;
        let ahead = self.ahead.take().filter(|_| self.sent > 0);
        self.sent = self.sent.saturating_sub(1);
        Some((order, ahead))
    }

    /// True where the connection to the Collector has requests behind the one that it serves.
    pub fn is_ahead(&self) -> bool {
        self.sent > 0
    }

    /// The connection has served its request, and has others: keeps it for the next.
    pub fn keep(&mut self, upstream: Box<Upstream>, ended_ns: Option<u64>) {
        let since_ns = ended_ns.filter(|_| upstream.connection.input.unread().is_empty());
        self.ahead = Some(Ahead { upstream, since_ns });
    }

    /// The connection has failed, or has ended: nothing was sent.
    pub fn lose(&mut self) {
        (self.sent, self.ahead) = (0, None);
    }

    /// The heads of all that were not sent yet, and counts them as sent.
    pub fn take_unsent(&mut self) -> Vec<u8> {
        let unsent =
            self.orders.iter().skip(self.sent).flat_map(|(order, _)| order.for_collector()).collect();
        self.sent = self.orders.len();
        unsent
    }

    /// The client's connection ends: writes down what the Collector got of it and was not served.
    pub fn end(&mut self, line: &Line, shared: &Rc<Shared>, error: ResponseError) {
        for (order, _) in self.orders.drain(..).take(self.sent) {
            count(&shared.board.requests);
            let mut rest = Rest::new(line.clone(), order, Rc::clone(shared));
            rest.measured.error = Some(error);
            rest.end(None);
        }
    }
}

impl Client {
    /// Looks at what has come behind the current request, and takes note of those that may be sent on. False: nothing that comes
    /// later may be, either.
    pub fn look_ahead(&mut self) -> bool {
        loop {
            match self.following() {
                Following::Request(order, length) => {
                    self.pipeline.bytes += length;
                    self.pipeline.orders.push_back((*order, length));
                }
                Following::Nothing => return true,
                Following::Waits => return false,
            }
        }
    }

    fn following(&self) -> Following {
        let Pipeline { orders, bytes, .. } = &self.pipeline;
        let persists = orders.back().map_or(self.exchange.persists, |(last, _)| last.persists);
        let has_room = orders.len() < MOST_AHEAD && *bytes < MOST_BYTES_AHEAD;
        let is_other = !self.exchange.is_read() || self.exchange.connection.stream.is_http2();
        if !persists || !has_room || is_other || self.shared.is_stopping.get() {
            return Following::Waits;
        }
        let unread = self.exchange.connection.input.unread().get(*bytes..).unwrap_or_default();
        match RequestHead::parse(unread) {
            Ok(None) if unread.len() < MOST_BYTES_AHEAD => Following::Nothing,
            Ok(Some((head, length))) if may_be_sent_ahead(&head) && bytes + length <= MOST_BYTES_AHEAD => {
                self.order(&head, head.facts.version.into())
                    .map_or(Following::Waits, |order| Following::Request(Box::new(order), length))
            }
            // What is refused is refused at its turn.
            _ => Following::Waits,
        }
    }
}

/// It may be sent again, and nothing more of it is to come.
fn may_be_sent_ahead(head: &RequestHead<'_>) -> bool {
    let is_bare = head.body() == BodyFraming::None && !head.expect_continue;
    matches!(head.method, "GET" | "HEAD") && head.facts.version == Version::Http11 && is_bare
}
