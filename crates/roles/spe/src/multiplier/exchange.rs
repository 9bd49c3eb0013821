//! One request, served from the Collector; and when it is sent to the proxies.
//!
//! The client's own way comes first: what arrives is written to it before anything else is done with it.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use crate::spec::When;
use assay_base::clock::monotonic_ns;
use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, ChunkError, LAST_CHUNK, chunk_head};
use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{ResponseHead, Version};
use assay_net::body::{BodyError, BodyReader};
use assay_net::exchange::Framing;
use assay_net::fields;
use assay_net::interim;
use assay_net::upstream::{Received, SWITCHING, Upstream, UpstreamError};
use assay_record::spe::ResponseError;

use super::board::count;
use super::client::Client;
use super::message::Order;
use super::pipeline::Ahead;
use super::response;
use super::rest::{Kept, Rest, Taken};
use super::shared::Shared;
use crate::collector;
use crate::validate::{Digester, Rules, Sample};

/// So much of a response is still read when its client has left, so that the proxies can be held against it.
const MOST_DRAINED: u64 = 256 << 20;

/// Why there is no response from the Collector.
enum Trouble {
    Client(io::Error),
    /// The client's body makes no sense.
    BadBody(ChunkError),
    /// The Collector.
    Collector(UpstreamError),
}

/// The head of the Collector's response.
struct Response {
    status: u16,
    framing: BodyFraming,
    /// The connection can be used again when the body was read.
    persists: bool,
    bytes: Vec<u8>,
    /// Its status line and its fields, but for what it says of the connection, as clients get them.
    passing: Vec<u8>,
    digester: Digester,
}

impl Response {
    fn new(received: &Received<'_>, method: &str, rules: &Arc<Rules>) -> Self {
        let head = &received.head;
        let bytes = received.bytes;
        let mut passing = Vec::with_capacity(bytes.len() + 64);
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        // Empty lines may have come before the status line; the space before an empty reason is part of it (RFC 9112, 4).
        let lines = &bytes[bytes.iter().position(|byte| !is_line_end(byte)).unwrap_or(bytes.len())..];
        let length = lines.iter().position(is_line_end).unwrap_or(lines.len());
        passing.extend_from_slice(&lines[..length]);
        passing.extend_from_slice(b"\r\n");
        append_fields(&mut passing, head);
        Self {
            status: head.status,
            framing: head.body(method),
            persists: head.persists(method),
            bytes: bytes.to_vec(),
            passing,
            digester: Digester::new(head, rules),
        }
    }
}

/// The fields of a response that go on, as they came. Only the length is written from what was understood where it was said twice, or
/// `Connection` names it; and where there can be none, it is left out.
fn append_fields(out: &mut Vec<u8>, head: &ResponseHead<'_>) {
    let length = head.facts.content_length.filter(|_| head.status != 204);
    let text = length.map(|bytes| bytes.to_string());
    let mut is_written = false;
    fields::append_passing(out, head.headers(), |field| {
        if !field.is("content-length") {
            return is_the_collectors(field);
        }
        let is_right = !is_written && text.as_ref().is_some_and(|text| text.as_bytes() == field.value);
        is_written |= is_right;
        !is_right
    });
    if let Some(bytes) = length.filter(|_| !is_written) {
        fields::append_number(out, "Content-Length", bytes);
    }
}

/// One request and its response.
pub struct Exchange<'c> {
    client: &'c mut Client,
    shared: Rc<Shared>,
    rest: Rest,
    /// When the Collector began with it is known.
    is_timed: bool,
    /// The client was slow to take the response.
    has_waited: bool,
}

impl<'c> Exchange<'c> {
    /// Of a client's request, whose body, if any, is still to come.
    pub fn new(client: &'c mut Client, order: Order) -> Self {
        let shared = Rc::clone(&client.shared);
        let rest = Rest::new(client.line.clone(), order, Rc::clone(&shared));
        Self { client, shared, rest, is_timed: true, has_waited: false }
    }

    /// Serves it; `ahead` is where it was sent already.
    pub async fn run(mut self, ahead: Option<Ahead>) -> io::Result<()> {
        let is_head = self.rest.order.about.method == "HEAD";
        match self.request(ahead).await {
            Ok((upstream, response)) => self.relay(upstream, response).await,
            Err(Trouble::Client(error)) => {
                count(&self.shared.board.client_gone);
                self.rest.measured.error = Some(ResponseError::ClientGone);
                self.rest.end(None);
                Err(error)
            }
            Err(Trouble::BadBody(error)) => {
                count(&self.shared.board.refused);
                self.client.send_refusal(400, &error.to_string(), is_head).await
            }
            Err(Trouble::Collector(error)) => {
                let error = ResponseError::from(error);
                self.rest.measured.error = Some(error);
                self.rest.end(None);
                let status = if error == ResponseError::TimedOut { 504 } else { 502 };
                let words = format!("the Collector gave no usable response ({})", error.name());
                self.client.send_refusal(status, &words, is_head).await
            }
        }
    }

    /// Sends the request to the Collector and waits for the head of its response.
    async fn request(&mut self, ahead: Option<Ahead>) -> Result<(Box<Upstream>, Response), Trouble> {
        let shared = Rc::clone(&self.shared);
        if let Some(Ahead { mut upstream, since_ns }) = ahead {
            self.rest.measured.sent_ns = since_ns.unwrap_or_else(monotonic_ns);
            self.is_timed = since_ns.is_some();
            match self.hear(&mut upstream).await {
                Err(Trouble::Collector(UpstreamError::Lost(_))) => self.client.pipeline.lose(),
                found => return found.map(|response| (upstream, response)),
            }
            self.is_timed = true;
        }
        let head = self.rest.order.for_collector();
        let may_repeat = !self.rest.order.has_body()
            && matches!(
                self.rest.order.about.method.as_str(),
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            );
        if may_repeat && let Some(mut upstream) = shared.pool.take(&shared.collector) {
            match self.converse(&mut upstream, &head).await {
                // It may just have been closed.
                Err(Trouble::Collector(UpstreamError::Lost(_))) => self.client.pipeline.lose(),
                found => return found.map(|response| (upstream, response)),
            }
        }
        let (patience, measured) = (shared.limits.collector, &mut self.rest.measured);
        let connected = response::connect(shared.collector, None, patience, &shared.resources, measured);
        let mut upstream = connected.await.map_err(Trouble::Collector)?;
        let response = self.converse(&mut upstream, &head).await?;
        Ok((upstream, response))
    }

    async fn converse(&mut self, upstream: &mut Upstream, head: &[u8]) -> Result<Response, Trouble> {
        let patience = self.shared.limits.collector;
        self.rest.measured.sent_ns = monotonic_ns();
        upstream.send(&[head], patience).await.map_err(Trouble::Collector)?;
        if self.rest.order.has_body()
            && let Some(response) = self.upload(upstream).await?
        {
            return Ok(response);
        }
        self.hear(upstream).await
    }

    /// Waits for the head of the response, and sends on what the client pipelines meanwhile.
    async fn hear(&mut self, upstream: &mut Upstream) -> Result<Response, Trouble> {
        if self.shared.when == When::AtOnce {
            self.rest.request_proxies();
        }
        let patience = self.shared.limits.collector;
        let mut may_be_more = self.client.look_ahead();
        loop {
            let unsent = self.client.pipeline.take_unsent();
            if !unsent.is_empty() {
                upstream.send(&[&unsent], patience).await.map_err(Trouble::Collector)?;
            }
            let (order, how) = (&self.rest.order, (self.shared.name.as_str(), &self.shared.rules));
            let exchange = &mut self.client.exchange;
            tokio::select! {
                biased;
                heard = upstream.head(patience.response, |received| Heard::new(&received, order, how)) => {
                    if let Some(response) = self.pass_interim(upstream, heard).await? {
                        return Ok(response);
                    }
                }
                // One that has sent its last request may still read.
                came = exchange.connection.fill(exchange.limits.read), if may_be_more => {
                    may_be_more = matches!(came, Ok(1..)) && self.client.look_ahead();
                }
            }
        }
    }

    /// Sends the body while listening for a response that does not wait for it.
    async fn upload(&mut self, upstream: &mut Upstream) -> Result<Option<Response>, Trouble> {
        let patience = self.shared.limits.collector;
        let is_chunked = self.rest.order.body == BodyFraming::Chunked;
        while !self.client.exchange.is_read() {
            let (order, how) = (&self.rest.order, (self.shared.name.as_str(), &self.shared.rules));
            tokio::select! {
                biased;
                heard = upstream.head(patience.response, |received| Heard::new(&received, order, how)) => {
                    if let Some(response) = self.pass_interim(upstream, heard).await? {
                        // Decided without the body; the proxies do not get half a request.
                        self.rest.kept = Kept::Partial;
                        self.client.exchange.give_up();
                        return Ok(Some(response));
                    }
                }
                part = self.client.exchange.next_part() => {
                    let Some(chunk) = part.map_err(of_client)? else { break };
                    upstream.send_part(&chunk, is_chunked, patience).await.map_err(Trouble::Collector)?;
                    self.rest.keep(&chunk);
                }
            }
        }
        if is_chunked {
            let sent = upstream.send(&[LAST_CHUNK], patience).await;
            sent.map_err(Trouble::Collector)?;
        }
        Ok(None)
    }

    /// What was heard, if it is final. Interim responses go to clients that know them.
    async fn pass_interim(
        &mut self,
        upstream: &Upstream,
        heard: Result<Heard, UpstreamError>,
    ) -> Result<Option<Response>, Trouble> {
        match heard.map_err(Trouble::Collector)? {
            Heard::Final(response) => Ok(Some(*response)),
            Heard::Interim(bytes) => {
                if self.client.exchange.takes_interim() {
                    self.client.exchange.write(&[&bytes]).await.map_err(Trouble::Client)?;
                }
                Ok(None)
            }
            Heard::Switching => {
                Err(Trouble::Collector(UpstreamError::BadResponse(upstream.address, SWITCHING)))
            }
        }
    }

    /// Passes the response on as it comes, and takes its measure.
    async fn relay(mut self, mut upstream: Box<Upstream>, response: Response) -> io::Result<()> {
        let shared = Rc::clone(&self.shared);
        let first_ns = upstream.first_byte_ns.unwrap_or_else(monotonic_ns);
        let Response { status, framing, persists: upstream_persists, bytes: head_bytes, passing, digester } =
            response;
        self.rest.measured.status = Some(status);
        let first_byte_ns = first_ns.saturating_sub(self.rest.measured.sent_ns);
        self.rest.measured.first_byte_ns = self.is_timed.then_some(first_byte_ns);
        self.rest.measured.head_bytes = head_bytes.len() as u64;
        let out = Outgoing::new(&self.rest.order, framing);
        self.client.exchange.persists &= out.is_delimited && !shared.is_stopping.get();
        let mut pending = out.head(passing, self.client.exchange.persists, &self.rest.order);
        let mut body = BodyReader::new(framing);
        if body.is_done() || upstream.connection.input.unread().is_empty() {
            self.write(&[&pending]).await;
            pending.clear();
        }
        let mut taken = Taken::new(digester);
        let mut last_ns = first_ns;
        let limit = shared.limits.collector.response;
        while !body.is_done() {
            match body.next(&mut upstream.connection, limit).await {
                Ok(Some(chunk)) => {
                    last_ns = monotonic_ns();
                    self.write_chunk(&mut pending, &chunk, out.is_chunked, body.is_done()).await;
                    self.rest.measured.body_bytes += chunk.len() as u64;
                    taken.push(chunk);
                }
                Ok(None) => self.write_end(&mut pending, out.is_chunked).await,
                Err(error) => self.rest.measured.error = Some(error.into()),
            }
            let left = self.is_gone() && self.rest.measured.body_bytes > MOST_DRAINED;
            if self.rest.measured.error.is_some_and(|error| error != ResponseError::ClientGone) || left {
                break;
            }
        }
        self.rest.measured.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        let is_whole = body.is_done();
        let is_bodiless = self.rest.order.about.method == "HEAD" || status == 304;
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
            count(&shared.board.client_gone);
        }
        let rest = self.rest;
        // The client goes first: it may be waiting for this processor.
        shared.later.put_off(move || {
            let whole = is_whole.then_some(taken);
            rest.end(whole.map(|taken| Sample {
                status,
                is_bodiless,
                body: taken.finish(),
                head: head_bytes,
            }));
        });
        match is_whole && !is_gone {
            true => Ok(()),
            // A body that broke off must not look as if it were whole.
            false => Err(self.client.exchange.break_off(match out.is_delimited {
                true => Framing::None,
                false => Framing::UntilClose,
            })),
        }
    }

    fn is_gone(&self) -> bool {
        self.rest.measured.error == Some(ResponseError::ClientGone)
    }

    /// Sends to the client, unless it has left; one that cannot be written to has.
    async fn write(&mut self, pieces: &[&[u8]]) {
        if self.is_gone() {
            return;
        }
        let mut written = pin!(self.client.exchange.write(pieces));
        let at_once = poll_fn(|cx| Poll::Ready(written.as_mut().poll(cx))).await;
        let written = match at_once {
            Poll::Ready(written) => written,
            Poll::Pending => {
                self.has_waited = true;
                written.await
            }
        };
        if written.is_err() {
            self.rest.measured.error = Some(ResponseError::ClientGone);
        }
    }

    async fn write_chunk(&mut self, pending: &mut Vec<u8>, chunk: &[u8], is_chunked: bool, is_last: bool) {
        let mut room = [0; CHUNK_HEAD_BYTES];
        if is_chunked {
            let size = chunk_head(chunk.len() as u64, &mut room);
            let last = if is_last { LAST_CHUNK } else { &[] };
            self.write(&[pending.as_slice(), size, chunk, CHUNK_END, last]).await;
        } else {
            self.write(&[pending.as_slice(), chunk]).await;
        }
        pending.clear();
    }

    /// The end of a body that was not known with its last bytes.
    async fn write_end(&mut self, pending: &mut Vec<u8>, is_chunked: bool) {
        let last = if is_chunked { LAST_CHUNK } else { &[] };
        if !pending.is_empty() || !last.is_empty() {
            self.write(&[pending.as_slice(), last]).await;
        }
        pending.clear();
    }
}

/// What comes from the Collector before a body.
enum Heard {
    Interim(Vec<u8>),
    Final(Box<Response>),
    Switching,
}

impl Heard {
    fn new(received: &Received<'_>, order: &Order, (name, rules): (&str, &Arc<Rules>)) -> Self {
        match received.head.status {
            101 => Heard::Switching,
            _ if received.head.is_interim() => {
                let mut interim = Vec::with_capacity(received.bytes.len() + 32);
                interim::append(&mut interim, &received.head, name);
                Heard::Interim(interim)
            }
            _ => Heard::Final(Box::new(Response::new(received, &order.about.method, rules))),
        }
    }
}

/// How a response goes to the client.
struct Outgoing {
    is_chunked: bool,
    /// Its end can be told without that of the connection.
    is_delimited: bool,
}

impl Outgoing {
    fn new(order: &Order, framing: BodyFraming) -> Self {
        let is_chunked = framing == BodyFraming::Chunked && order.about.version == Version::Http11;
        let is_delimited = is_chunked || matches!(framing, BodyFraming::None | BodyFraming::Length(_));
        Self { is_chunked, is_delimited }
    }

    /// The Collector's head, up to its end.
    fn head(&self, passing: Vec<u8>, persists: bool, order: &Order) -> Vec<u8> {
        let mut out = passing;
        if self.is_chunked {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
        }
        out.extend_from_slice(match (persists, order.about.version) {
            (false, _) => &b"Connection: close\r\n"[..],
            // An HTTP/1.0 client waits to be told.
            (true, Version::Http10) if order.old_style => b"Proxy-Connection: keep-alive\r\n",
            (true, Version::Http10) => b"Connection: keep-alive\r\n",
            (true, Version::Http11) => b"",
        });
        out.extend_from_slice(b"\r\n");
        out
    }
}

/// What the Collector says of itself is not for clients: they see what the origin said.
fn is_the_collectors(field: &Field<'_>) -> bool {
    field.is("via")
        && field.value.rsplit(|byte| *byte == b' ').next() == Some(collector::NAME.as_bytes())
        && !field.value.contains(&b',')
}

fn of_client(error: BodyError) -> Trouble {
    match error {
        BodyError::Truncated => Trouble::Client(io::ErrorKind::UnexpectedEof.into()),
        BodyError::Io(error) => Trouble::Client(error),
        BodyError::Coding(error) => Trouble::BadBody(error),
    }
}
