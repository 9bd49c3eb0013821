//! Work that follows a client's response: digest, log, and dispatch of the request to the proxies.
//!
//! The client need not wait for any of this, so it is deferred ([`super::deferred`]) unless it is needed earlier.

use std::rc::Rc;
use std::sync::Arc;

use crate::spec::Turns;
use assay_base::clock::monotonic_ns;
use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, LAST_CHUNK, append_chunk};
use assay_http::framing::BodyFraming;
use assay_net::body::Chunk;
use assay_record::spe::Verdict;
use tokio::sync::watch;

use super::client_context::ClientContext;
use super::measurement::Measurement;
use super::message::{ProxyMessage, ReceivedRequest};
use super::order::permutation;
use super::proxy_connections::{CollectorResponse, CollectorResponseReceiver, ProxyCommand, ProxyDispatch};
use super::shared_state::{ClientLoad, HeldBody, ResponseEntry};
use crate::validate::{BodyDigest, BodyDigester, ResponseSample};

/// Requests with larger bodies are not sent to the proxies.
const REQUEST_BODY_MAX_BYTES: usize = 1 << 20;
/// Larger bodies of responses are digested as they arrive.
const DEFERRED_BODY_MAX_BYTES: usize = 64 << 10;

/// Body of a request, kept for the proxies.
pub enum KeptBody {
    /// The whole body, and the memory that it occupies.
    Bytes(Vec<u8>, Option<HeldBody>),
    /// Too large, or too much is held already.
    TooMuch,
    /// Incomplete.
    Partial,
}

/// Body of a response that is digested later.
pub struct DeferredDigest {
    digester: BodyDigester,
    waiting: Vec<Chunk>,
    bytes: usize,
}

impl DeferredDigest {
    pub fn new(digester: BodyDigester) -> Self {
        Self { digester, waiting: Vec::new(), bytes: 0 }
    }

    /// Adds a part; the digest is deferred if the body is small.
    pub fn push(&mut self, chunk: Chunk) {
        self.bytes += chunk.len();
        self.waiting.push(chunk);
        if self.bytes > DEFERRED_BODY_MAX_BYTES {
            self.digest();
        }
    }

    pub fn finish(mut self) -> BodyDigest {
        self.digest();
        self.digester.finish()
    }

    fn digest(&mut self) {
        for chunk in self.waiting.drain(..) {
            self.digester.push(&chunk);
        }
    }
}

/// A request and its response, for the log and the proxies.
pub struct Fanout {
    load: ClientLoad,
    shared: Rc<ClientContext>,
    pub request: ReceivedRequest,
    pub measurement: Measurement,
    pub kept: KeptBody,
    sender: watch::Sender<Option<Arc<CollectorResponse>>>,
    direct: CollectorResponseReceiver,
    /// The request was sent to the proxies, or rejected for them.
    is_requested: bool,
}

impl Fanout {
    /// Starts with a request that arrived on this client's connection.
    pub fn new(load: ClientLoad, request: ReceivedRequest, shared: Rc<ClientContext>) -> Self {
        let (sender, direct) = watch::channel(None);
        let (measurement, kept) = (Measurement::default(), KeptBody::Bytes(Vec::new(), None));
        Self { load, shared, request, measurement, kept, sender, direct, is_requested: false }
    }

    /// Keeps a part of the request's body for the proxies, while there is room.
    pub fn keep(&mut self, chunk: &[u8]) {
        let KeptBody::Bytes(bytes, held) = &mut self.kept else { return };
        // Released together with the body.
        let held = held.get_or_insert_with(|| self.shared.state.hold_body());
        if bytes.len() + chunk.len() > REQUEST_BODY_MAX_BYTES || !held.take(chunk.len() as u64) {
            self.kept = KeptBody::TooMuch;
        } else {
            bytes.extend_from_slice(chunk);
        }
    }

    /// Publishes the Collector's response for comparison, and logs it.
    pub fn end(mut self, sample: Option<ResponseSample>) {
        let measurement = self.measurement;
        let checksum = sample.as_ref().map(|sample| sample.body.checksum());
        let is_whole = sample.is_some();
        let took_ns = measurement.response_ns();
        let direct = CollectorResponse { status: measurement.status, sample, took_ns };
        // No proxy may be waiting.
        let _ = self.sender.send(Some(Arc::new(direct)));
        if is_whole {
            self.request_proxies();
        }
        self.shared.state.requested(0);
        let verdict = if is_whole { Verdict::NotCompared } else { Verdict::NoResponse };
        self.shared.state.record(ResponseEntry {
            summary: Arc::clone(&self.request.summary),
            target: 0,
            position: 0,
            measurement,
            checksum,
            verdict,
            header: None,
            direct_status: measurement.status,
        });
    }

    /// Sends the request, once, to all proxies that may get one more, in the request's order.
    pub fn request_proxies(&mut self) {
        if std::mem::replace(&mut self.is_requested, true) {
            return;
        }
        let shared = Rc::clone(&self.shared);
        let summary = &self.request.summary;
        let order = match shared.turns {
            Turns::Permuted => permutation(shared.seed, summary.number, shared.proxies),
            Turns::Fixed => (0..shared.proxies).collect(),
        };
        let kept = std::mem::replace(&mut self.kept, KeptBody::Partial);
        let is_all_there = matches!(kept, KeptBody::Bytes(..));
        let mut admitted = Vec::with_capacity(order.len());
        for (position, index) in (0..).zip(order) {
            let target = u16::from(index) + 1;
            if is_all_there && shared.state.admit(&self.load, target) {
                admitted.push((position, index));
                continue;
            }
            let verdict = if is_all_there { Verdict::Dropped } else { Verdict::NotCompared };
            shared.state.record(ResponseEntry {
                summary: Arc::clone(summary),
                target,
                position,
                measurement: Measurement { sent_ns: monotonic_ns(), ..Measurement::default() },
                checksum: None,
                verdict,
                header: None,
                direct_status: self.measurement.status,
            });
        }
        let KeptBody::Bytes(body, held) = kept else { return };
        if admitted.is_empty() {
            return;
        }
        let message = ProxyMessage {
            summary: Arc::clone(summary),
            head: self.request.for_proxies(),
            body: delimited(body, self.request.body),
            persists: self.request.persists,
            _held: held,
        };
        let (load, direct) = (self.load.clone(), self.direct.clone());
        let dispatch = ProxyDispatch { load, message: Arc::new(message), order: admitted, direct };
        // The proxies' thread ends after all clients.
        let _ = shared.to_proxies.send(ProxyCommand::Request(dispatch));
    }
}

/// Frames a body for the proxies: chunked in a single chunk if it was chunked.
fn delimited(body: Vec<u8>, framing: BodyFraming) -> Vec<u8> {
    if framing != BodyFraming::Chunked {
        return body;
    }
    let mut out = Vec::with_capacity(body.len() + CHUNK_HEAD_BYTES + LAST_CHUNK.len() + CHUNK_END.len());
    append_chunk(&mut out, &body);
    out.extend_from_slice(LAST_CHUNK);
    out
}
