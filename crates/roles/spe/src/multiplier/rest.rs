//! What is left to do when a client has its response.
//!
//! To take the response's digest, to write it down, and to send the request to the proxies. The client need not wait for any of
//! that, so it is put off ([`super::later`]) unless it is needed earlier.

use std::rc::Rc;
use std::sync::Arc;

use crate::spec::Turns;
use assay_base::clock::monotonic_ns;
use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, chunk_head};
use assay_http::framing::BodyFraming;
use assay_net::body::Chunk;
use assay_record::spe::Verdict;
use tokio::sync::watch;

use super::board::{Entry, Held, Line, Measured};
use super::lanes::{Awaited, Direct, Question, ToProxies};
use super::message::{Message, Order};
use super::order::permuted;
use super::shared::Shared;
use crate::validate::{Digested, Digester, Sample};

/// Larger bodies of requests are not kept for the proxies, which then do not get the request.
const MOST_BODY: usize = 1 << 20;
/// Larger bodies of responses are digested while they come.
const MOST_PUT_OFF: usize = 64 << 10;

/// The body of a request, as it is kept for the proxies.
pub enum Kept {
    /// All of it, and the room that it takes up.
    Bytes(Vec<u8>, Option<Held>),
    /// It is too large, or too much is held already.
    TooMuch,
    /// Not all of it came.
    Partial,
}

/// The body of a response, on its way to a digest.
pub struct Taken {
    digester: Digester,
    waiting: Vec<Chunk>,
    bytes: usize,
}

impl Taken {
    pub fn new(digester: Digester) -> Self {
        Self { digester, waiting: Vec::new(), bytes: 0 }
    }

    /// Takes the next part, which is digested later if the body is small.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.len();
        self.waiting.push(chunk);
        if self.bytes > MOST_PUT_OFF {
            self.digest();
        }
    }

    pub fn finish(mut self) -> Digested {
        self.digest();
        self.digester.finish()
    }

    fn digest(&mut self) {
        for chunk in self.waiting.drain(..) {
            self.digester.push(&chunk);
        }
    }
}

/// What is known of a request and its response, for those that are not the client.
pub struct Rest {
    line: Line,
    shared: Rc<Shared>,
    pub order: Order,
    /// What was measured of the response.
    pub measured: Measured,
    /// The body of the request.
    pub kept: Kept,
    tell: watch::Sender<Option<Arc<Direct>>>,
    direct: Awaited,
    /// The request was sent to the proxies, or it was decided that it is not to be.
    is_requested: bool,
}

impl Rest {
    /// Of a request that came in on this client's connection.
    pub fn new(line: Line, order: Order, shared: Rc<Shared>) -> Self {
        let (tell, direct) = watch::channel(None);
        let (measured, kept) = (Measured::default(), Kept::Bytes(Vec::new(), None));
        Self { line, shared, order, measured, kept, tell, direct, is_requested: false }
    }

    /// Keeps a part of the request's body for the proxies, while there is room.
    pub fn keep(&mut self, chunk: &[u8]) {
        let Kept::Bytes(bytes, room) = &mut self.kept else { return };
        // What is taken is given back with it.
        let room = room.get_or_insert_with(|| self.shared.board.hold());
        if bytes.len() + chunk.len() > MOST_BODY || !room.take(chunk.len() as u64) {
            self.kept = Kept::TooMuch;
        } else {
            bytes.extend_from_slice(chunk);
        }
    }

    /// The response is over: tells of it, and lets the proxies be held against it.
    pub fn end(mut self, sample: Option<Sample>) {
        let measured = self.measured;
        let checksum = sample.as_ref().map(|sample| sample.body.checksum());
        let is_whole = sample.is_some();
        let took_ns = measured.response_ns();
        let direct = Direct { status: measured.status, sample, took_ns };
        // There may be no receiver.
        let _ = self.tell.send(Some(Arc::new(direct)));
        if is_whole {
            self.request_proxies();
        }
        self.shared.board.requested(0);
        let verdict = if is_whole { Verdict::NotCompared } else { Verdict::NoResponse };
        self.shared.board.tell(Entry {
            about: Arc::clone(&self.order.about),
            target: 0,
            place: 0,
            measured,
            checksum,
            verdict,
            header: None,
            direct_status: measured.status,
        });
    }

    /// Sends the request to all proxies that may get one more, in this request's order; once.
    pub fn request_proxies(&mut self) {
        if std::mem::replace(&mut self.is_requested, true) {
            return;
        }
        let shared = Rc::clone(&self.shared);
        let about = &self.order.about;
        let order = match shared.turns {
            Turns::Permuted => permuted(shared.seed, about.number, shared.proxies),
            Turns::Fixed => (0..shared.proxies).collect(),
        };
        let kept = std::mem::replace(&mut self.kept, Kept::Partial);
        let is_all_there = matches!(kept, Kept::Bytes(..));
        let mut requested = Vec::with_capacity(order.len());
        for (place, index) in (0..).zip(order) {
            let target = u16::from(index) + 1;
            if is_all_there && shared.board.admit(&self.line, target) {
                requested.push((place, index));
                continue;
            }
            let verdict = if is_all_there { Verdict::Dropped } else { Verdict::NotCompared };
            shared.board.tell(Entry {
                about: Arc::clone(about),
                target,
                place,
                measured: Measured { sent_ns: monotonic_ns(), ..Measured::default() },
                checksum: None,
                verdict,
                header: None,
                direct_status: self.measured.status,
            });
        }
        let Kept::Bytes(body, room) = kept else { return };
        if requested.is_empty() {
            return;
        }
        let message = Message {
            about: Arc::clone(about),
            head: self.order.for_proxies(),
            body: delimited(body, self.order.body),
            persists: self.order.persists,
            _room: room,
        };
        let (line, direct) = (self.line.clone(), self.direct.clone());
        let question = Question { line, message: Arc::new(message), order: requested, direct };
        // That thread ends after all clients.
        let _ = shared.to_proxies.send(ToProxies::ClientRequest(question));
    }
}

/// A body as it is written: in one chunk, where it came in chunks.
fn delimited(body: Vec<u8>, framing: BodyFraming) -> Vec<u8> {
    if framing != BodyFraming::Chunked {
        return body;
    }
    let mut out = Vec::with_capacity(body.len() + CHUNK_HEAD_BYTES + LAST_CHUNK.len() + CHUNK_END.len());
    if !body.is_empty() {
        out.extend_from_slice(chunk_head(body.len() as u64, &mut [0; CHUNK_HEAD_BYTES]));
        out.extend_from_slice(&body);
        out.extend_from_slice(CHUNK_END);
    }
    out.extend_from_slice(LAST_CHUNK);
    out
}
