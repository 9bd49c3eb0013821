//! Serving of a request from the Collector, before it is sent to the proxies.
//!
//! The client comes first: what arrives is written to it before anything else is done with it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;
use std::task::Poll;

use crate::spec::When;
use assay_base::clock::monotonic_ns;
use assay_http::chunked::{ChunkError, LAST_CHUNK};
use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{ResponseHead, Version};
use assay_net::body::{BodyError, BodyReader, Chunk};
use assay_net::fields;
use assay_net::interim;
use assay_net::upstream::{ReceivedHead, UNREQUESTED_UPGRADE, Upstream, UpstreamError};
use assay_record::spe::ResponseError;

use super::client::MultiplierClient;
use super::client_context::ClientContext;
use super::fanout::{DeferredDigest, Fanout, KeptBody};
use super::measurement;
use super::message::ReceivedRequest;
use super::pipeline::Ahead;
use super::shared_state::count;
use crate::collector;
use crate::validate::{BodyDigester, ResponseSample, Rules};

/// Bytes of a response still read after its client has left, so that proxies can be compared with it.
const DRAINED_MAX_BYTES: u64 = 256 << 20;

/// Reasons for which there is no response from the Collector.
enum CollectorExchangeError {
    Client(io::Error),
    /// Malformed body of the client.
    BadBody(ChunkError),
    Collector(UpstreamError),
}

/// Head of the Collector's response.
struct CollectorHead {
    status: u16,
    framing: BodyFraming,
    /// The connection can be reused after the body.
    persists: bool,
    bytes: Vec<u8>,
    /// Status line and end-to-end fields, as clients get them.
    client_head: Vec<u8>,
    digester: BodyDigester,
}

impl CollectorHead {
    fn new(received: &ReceivedHead<'_>, method: &str, rules: &Arc<Rules>) -> Self {
        let head = &received.head;
        let bytes = received.bytes;
        let mut client_head = Vec::with_capacity(bytes.len() + 64);
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        // Skip empty lines before the status line; keep the space before an empty reason, which is part of it (RFC 9112, 4).
        let lines = &bytes[bytes.iter().position(|byte| !is_line_end(byte)).unwrap_or(bytes.len())..];
        let length = lines.iter().position(is_line_end).unwrap_or(lines.len());
        client_head.extend_from_slice(&lines[..length]);
        client_head.extend_from_slice(b"\r\n");
        append_fields(&mut client_head, head);
        Self {
            status: head.status,
            framing: head.body(method),
            persists: head.persists(method),
            bytes: bytes.to_vec(),
            client_head,
            digester: BodyDigester::new(head, rules),
        }
    }
}

/// Appends the end-to-end fields as received. Only `Content-Length` is written anew if it was repeated, or listed in
/// `Connection`; and it is left out if there must be none.
fn append_fields(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let length = head.facts.content_length.filter(|_| head.status != 204);
    let text = length.map(|bytes| bytes.to_string());
    let mut is_written = false;
    fields::append_forwardable(out, head.headers(), |field| {
        if !field.is("content-length") {
            return is_collector_via(field);
        }
        let is_right = !is_written && text.as_ref().is_some_and(|text| text.as_bytes() == field.value);
        is_written |= is_right;
        !is_right
    });
    if let Some(bytes) = length.filter(|_| !is_written) {
        fields::append_number(out, "Content-Length", bytes);
    }
}

pub struct ClientExchange<'c> {
    client: &'c mut MultiplierClient,
    shared: Rc<ClientContext>,
    fanout: Fanout,
    /// The time at which the Collector began with the request is known.
    is_timed: bool,
    /// The client was slow to take the response.
    has_waited: bool,
}

impl<'c> ClientExchange<'c> {
    /// Starts the exchange of a request whose body, if any, is still to come.
    pub fn new(client: &'c mut MultiplierClient, request: ReceivedRequest) -> Self {
        let shared = Rc::clone(&client.shared);
        let fanout = Fanout::new(client.load.clone(), request, Rc::clone(&shared));
        Self { client, shared, fanout, is_timed: true, has_waited: false }
    }

    /// Serves the request; `ahead`: it was sent already.
    pub async fn run(mut self, ahead: Option<Ahead>) -> io::Result<()> {
        let is_head = self.fanout.request.summary.method == "HEAD";
        match self.request(ahead).await {
            Ok((upstream, response)) => self.relay(upstream, response).await,
            Err(CollectorExchangeError::Client(error)) => {
                count(&self.shared.state.client_gone);
                self.fanout.measurement.error = Some(ResponseError::ClientGone);
                self.fanout.end(None);
                Err(error)
            }
            Err(CollectorExchangeError::BadBody(error)) => {
                count(&self.shared.state.refused);
                self.client.send_refusal(400, &error.to_string(), is_head).await
            }
            Err(CollectorExchangeError::Collector(error)) => {
                let error = ResponseError::from(error);
                self.fanout.measurement.error = Some(error);
                self.fanout.end(None);
                let status = if error == ResponseError::TimedOut { 504 } else { 502 };
                let text = format!("the Collector gave no usable response ({})", error.name());
                self.client.send_refusal(status, &text, is_head).await
            }
        }
    }

    /// Sends the request to the Collector and waits for the head of its response.
    async fn request(
        &mut self,
        ahead: Option<Ahead>,
    ) -> Result<(Box<Upstream>, CollectorHead), CollectorExchangeError> {
        let shared = Rc::clone(&self.shared);
        if let Some(Ahead { mut upstream, since_ns }) = ahead {
            self.fanout.measurement.sent_ns = since_ns.unwrap_or_else(monotonic_ns);
            self.is_timed = since_ns.is_some();
            match self.read_head(&mut upstream).await {
                Err(CollectorExchangeError::Collector(UpstreamError::Lost(_))) => self.client.pipeline.lose(),
                result => return result.map(|response| (upstream, response)),
            }
            self.is_timed = true;
        }
        let head = self.fanout.request.for_collector();
        let may_repeat = !self.fanout.request.has_body()
            && matches!(
                self.fanout.request.summary.method.as_str(),
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            );
        if may_repeat && let Some(mut upstream) = shared.pool.take(&shared.collector) {
            match self.round_trip(&mut upstream, &head).await {
                // The Collector may just have closed the pooled connection.
                Err(CollectorExchangeError::Collector(UpstreamError::Lost(_))) => self.client.pipeline.lose(),
                result => return result.map(|response| (upstream, response)),
            }
        }
        let (timeouts, measurement) = (shared.limits.collector, &mut self.fanout.measurement);
        let connected =
            measurement::connect(shared.collector, None, timeouts, &shared.resources, measurement);
        let mut upstream = connected.await.map_err(CollectorExchangeError::Collector)?;
        let response = self.round_trip(&mut upstream, &head).await?;
        Ok((upstream, response))
    }

    async fn round_trip(
        &mut self,
        upstream: &mut Upstream,
        head: &[u8],
    ) -> Result<CollectorHead, CollectorExchangeError> {
        let timeouts = self.shared.limits.collector;
        self.fanout.measurement.sent_ns = monotonic_ns();
        upstream.send(&[head], timeouts).await.map_err(CollectorExchangeError::Collector)?;
        if self.fanout.request.has_body()
            && let Some(response) = self.upload(upstream).await?
        {
            return Ok(response);
        }
        self.read_head(upstream).await
    }

    /// Waits for the head of the response, and forwards requests that the client pipelines meanwhile.
    async fn read_head(&mut self, upstream: &mut Upstream) -> Result<CollectorHead, CollectorExchangeError> {
        if self.shared.when == When::AtOnce {
            self.fanout.request_proxies();
        }
        let timeouts = self.shared.limits.collector;
        let mut may_be_more = self.client.look_ahead();
        loop {
            let unsent = self.client.pipeline.take_unsent();
            if !unsent.is_empty() {
                upstream.send(&[&unsent], timeouts).await.map_err(CollectorExchangeError::Collector)?;
            }
            let (request, name, rules) =
                (&self.fanout.request, self.shared.name.as_str(), &self.shared.rules);
            let exchange = &mut self.client.exchange;
            tokio::select! {
                biased;
                event = upstream.head(timeouts.response, |received| HeadEvent::new(&received, request, name, rules)) => {
                    if let Some(response) = self.pass_interim(upstream, event).await? {
                        return Ok(response);
                    }
                }
                // A client that has closed its sending side may still read.
                filled = exchange.connection.fill(exchange.limits.read), if may_be_more => {
                    may_be_more = matches!(filled, Ok(1..)) && self.client.look_ahead();
                }
            }
        }
    }

    /// Sends the body while watching for an early response.
    async fn upload(
        &mut self,
        upstream: &mut Upstream,
    ) -> Result<Option<CollectorHead>, CollectorExchangeError> {
        let timeouts = self.shared.limits.collector;
        let is_chunked = self.fanout.request.body == BodyFraming::Chunked;
        while !self.client.exchange.is_body_read() {
            let (request, name, rules) =
                (&self.fanout.request, self.shared.name.as_str(), &self.shared.rules);
            tokio::select! {
                biased;
                event = upstream.head(timeouts.response, |received| HeadEvent::new(&received, request, name, rules)) => {
                    if let Some(response) = self.pass_interim(upstream, event).await? {
                        // An early response does not depend on the body; proxies must not get half a request.
                        self.fanout.kept = KeptBody::Partial;
                        self.client.exchange.close_after_response();
                        return Ok(Some(response));
                    }
                }
                part = self.client.exchange.next_part() => {
                    let Some(chunk) = part.map_err(client_error)? else { break };
                    upstream.send_part(&chunk, is_chunked, timeouts).await.map_err(CollectorExchangeError::Collector)?;
                    self.fanout.keep(&chunk);
                }
            }
        }
        if is_chunked {
            let sent = upstream.send(&[LAST_CHUNK], timeouts).await;
            sent.map_err(CollectorExchangeError::Collector)?;
        }
        Ok(None)
    }

    /// Relays interim responses to clients that understand them; returns a final head.
    async fn pass_interim(
        &mut self,
        upstream: &Upstream,
        event: Result<HeadEvent, UpstreamError>,
    ) -> Result<Option<CollectorHead>, CollectorExchangeError> {
        match event.map_err(CollectorExchangeError::Collector)? {
            HeadEvent::Final(response) => Ok(Some(*response)),
            HeadEvent::Interim(bytes) => {
                if self.client.exchange.accepts_interim() {
                    self.client.exchange.write(&[&bytes]).await.map_err(CollectorExchangeError::Client)?;
                }
                Ok(None)
            }
            HeadEvent::Switching => Err(CollectorExchangeError::Collector(UpstreamError::BadResponse(
                upstream.address,
                UNREQUESTED_UPGRADE,
            ))),
        }
    }

    /// Relays the response, and measures it.
    async fn relay(mut self, mut upstream: Box<Upstream>, response: CollectorHead) -> io::Result<()> {
        let shared = Rc::clone(&self.shared);
        let first_ns = upstream.first_byte_ns.unwrap_or_else(monotonic_ns);
        let CollectorHead {
            status,
            framing,
            persists: upstream_persists,
            bytes: head_bytes,
            client_head,
            digester,
        } = response;
        self.fanout.measurement.status = Some(status);
        let first_byte_ns = first_ns.saturating_sub(self.fanout.measurement.sent_ns);
        self.fanout.measurement.first_byte_ns = self.is_timed.then_some(first_byte_ns);
        self.fanout.measurement.head_bytes = head_bytes.len() as u64;
        let to_client = match framing {
            BodyFraming::Chunked if self.fanout.request.summary.version == Version::Http10 => {
                BodyFraming::UntilClose
            }
            framing => framing,
        };
        self.client.exchange.persists &= to_client != BodyFraming::UntilClose && !shared.is_stopping.get();
        let mut head = client_head;
        append_framing(&mut head, to_client, self.client.exchange.persists, &self.fanout.request);
        let mut body = BodyReader::new(framing);
        if body.is_done() || upstream.connection.input.unread().is_empty() {
            self.write(&mut head, &[], to_client, false).await;
        }
        let mut digest = DeferredDigest::new(digester);
        let mut last_ns = first_ns;
        let limit = shared.limits.collector.response;
        while !body.is_done() {
            match body.next(&mut upstream.connection, limit).await {
                Ok(Some(chunk)) => {
                    last_ns = monotonic_ns();
                    self.write(&mut head, slice::from_ref(&chunk), to_client, body.is_done()).await;
                    self.fanout.measurement.body_bytes += chunk.len() as u64;
                    digest.push(chunk);
                }
                // The last bytes were not known to be the last.
                Ok(None) => self.write(&mut head, &[], to_client, true).await,
                Err(error) => self.fanout.measurement.error = Some(error.into()),
            }
            let is_abandoned = self.is_gone() && self.fanout.measurement.body_bytes > DRAINED_MAX_BYTES;
            if self.fanout.measurement.error.is_some_and(|error| error != ResponseError::ClientGone)
                || is_abandoned
            {
                break;
            }
        }
        self.fanout.measurement.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        let is_whole = body.is_done();
        let is_bodiless = self.fanout.request.summary.method == "HEAD" || status == 304;
        if is_whole && upstream_persists && !self.client.exchange.leaves_unread {
            match self.client.pipeline.is_ahead() {
                true => self.client.pipeline.keep(upstream, (!self.has_waited).then_some(last_ns)),
                false => shared.pool.put_back(upstream),
            }
        } else {
            self.client.pipeline.lose();
        }
        let is_gone = self.is_gone();
        if is_gone {
            count(&shared.state.client_gone);
        }
        let fanout = self.fanout;
        // Deferred, as the client may be waiting for this processor.
        shared.deferred.defer(move || {
            let whole = is_whole.then_some(digest);
            fanout.end(whole.map(|digest| ResponseSample {
                status,
                is_bodiless,
                body: digest.finish(),
                head: head_bytes,
            }));
        });
        match is_whole && !is_gone {
            true => Ok(()),
            // A body that broke off must not look complete.
            false => Err(self.client.exchange.abort(to_client)),
        }
    }

    fn is_gone(&self) -> bool {
        self.fanout.measurement.error == Some(ResponseError::ClientGone)
    }

    /// Writes `head` once, and a part of the body, to the client unless it has left. A failed write means that it has.
    async fn write(&mut self, head: &mut Vec<u8>, chunks: &[Chunk], framing: BodyFraming, is_last: bool) {
        let head = std::mem::take(head);
        let is_nothing = head.is_empty() && chunks.is_empty() && framing != BodyFraming::Chunked;
        if is_nothing || self.is_gone() {
            return;
        }
        let head: [&[u8]; 1] = [&head];
        let mut written = pin!(self.client.exchange.write_body(&head, chunks, framing, is_last));
        let at_once = poll_fn(|cx| Poll::Ready(written.as_mut().poll(cx))).await;
        let written = match at_once {
            Poll::Ready(written) => written,
            Poll::Pending => {
                self.has_waited = true;
                written.await
            }
        };
        if written.is_err() {
            self.fanout.measurement.error = Some(ResponseError::ClientGone);
        }
    }
}

/// Head received from the Collector.
enum HeadEvent {
    Interim(Vec<u8>),
    Final(Box<CollectorHead>),
    Switching,
}

impl HeadEvent {
    fn new(received: &ReceivedHead<'_>, request: &ReceivedRequest, name: &str, rules: &Arc<Rules>) -> Self {
        match received.head.status {
            101 => HeadEvent::Switching,
            _ if received.head.is_interim() => {
                let mut interim = Vec::with_capacity(received.bytes.len() + 32);
                interim::append(&mut interim, &received.head, name);
                HeadEvent::Interim(interim)
            }
            _ => HeadEvent::Final(Box::new(CollectorHead::new(received, &request.summary.method, rules))),
        }
    }
}

/// Completes the head of the response to `request`.
fn append_framing(head: &mut Vec<u8>, framing: BodyFraming, persists: bool, request: &ReceivedRequest) {
    if framing == BodyFraming::Chunked {
        head.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    }
    head.extend_from_slice(match (persists, request.summary.version) {
        (false, _) => &b"Connection: close\r\n"[..],
        // HTTP/1.0 needs an explicit keep-alive.
        (true, Version::Http10) if request.old_style => b"Proxy-Connection: keep-alive\r\n",
        (true, Version::Http10) => b"Connection: keep-alive\r\n",
        (true, Version::Http11) => b"",
    });
    head.extend_from_slice(b"\r\n");
}

/// Whether a field is the Collector's `Via`, which clients must not see.
fn is_collector_via(field: &Field<'_>) -> bool {
    field.is("via")
        && field.value.rsplit(|byte| *byte == b' ').next() == Some(collector::NAME.as_bytes())
        && !field.value.contains(&b',')
}

fn client_error(error: BodyError) -> CollectorExchangeError {
    match error {
        BodyError::Truncated => CollectorExchangeError::Client(io::ErrorKind::UnexpectedEof.into()),
        BodyError::Io(error) => CollectorExchangeError::Client(error),
        BodyError::Coding(error) => CollectorExchangeError::BadBody(error),
    }
}
