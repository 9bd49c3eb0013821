//! How is one request answered from the Collector, and when are the proxies asked?
//!
//! The client's own way comes first: what arrives is written to it before anything else is done with it.

use std::io::{self, IoSlice};
use std::rc::Rc;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, ChunkError, LAST_CHUNK, chunk_head};
use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{ResponseHead, Version};
use assay_plane::body::{BodyError, BodyReader};
use assay_plane::clock::monotonic_ns;
use assay_plane::fields;
use assay_plane::upstream::Upstream;
use assay_plane::wire;
use assay_record::spe::AnswerError;
use assay_role::evaluation::When;

use super::answer;
use super::board::count;
use super::client::{Client, Shared};
use super::message::Order;
use super::rest::{Kept, Rest, Taken};
use crate::collector;
use crate::validate::{Digester, Sample};

/// So much of an answer is still read when its client has left, so that the proxies can be held against it.
const MOST_DRAINED: u64 = 256 << 20;

/// Why there is no answer from the Collector.
enum Trouble {
    /// The client's connection.
    Client(io::Error),
    /// The client's body makes no sense.
    BadBody(ChunkError),
    /// The Collector.
    Collector(AnswerError),
}

/// One request and its answer.
pub struct Exchange<'c> {
    client: &'c mut Client,
    shared: Rc<Shared>,
    first_ns: Option<u64>,
    rest: Rest,
}

impl<'c> Exchange<'c> {
    /// Of a client's request, whose body, if any, is still to come.
    pub fn new(client: &'c mut Client, order: Order) -> Self {
        let shared = Rc::clone(&client.shared);
        let rest = Rest::new(client.id, order, Rc::clone(&shared));
        Self { client, shared, first_ns: None, rest }
    }

    /// Answers it; whether another request may follow on this connection.
    pub async fn run(mut self) -> io::Result<bool> {
        let (upstream, length) = match self.ask().await {
            Ok(found) => found,
            Err(Trouble::Client(error)) => {
                count(&self.shared.board.client_gone);
                self.rest.measured.error = Some(AnswerError::ClientGone);
                self.rest.end(None);
                return Err(error);
            }
            Err(Trouble::BadBody(error)) => {
                count(&self.shared.board.refused);
                self.client.refuse(400, &error.to_string()).await?;
                return Ok(false);
            }
            Err(Trouble::Collector(error)) => {
                self.rest.measured.error = Some(error);
                self.rest.end(None);
                let status = if error == AnswerError::TimedOut { 504 } else { 502 };
                let words = format!("the Collector gave no usable answer ({})", error.name());
                self.client.refuse(status, &words).await?;
                return Ok(false);
            }
        };
        self.relay(upstream, length).await
    }

    /// Sends the request to the Collector and waits for the head of its answer: its length in the connection's input.
    async fn ask(&mut self) -> Result<(Upstream, usize), Trouble> {
        let shared = Rc::clone(&self.shared);
        let head = self.rest.order.for_collector();
        let may_repeat = !self.rest.order.has_body()
            && matches!(
                self.rest.order.about.method.as_str(),
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            );
        if may_repeat && let Some(upstream) = shared.pool.take(shared.collector) {
            match self.converse(upstream, &head).await {
                // It may just have been closed.
                Err(Trouble::Collector(AnswerError::Reset)) if self.first_ns.is_none() => {}
                found => return found,
            }
        }
        let connected = answer::connect(shared.collector, shared.limits.collector, &mut self.rest.measured);
        let upstream = connected.await.map_err(Trouble::Collector)?;
        self.converse(upstream, &head).await
    }

    async fn converse(&mut self, mut upstream: Upstream, head: &[u8]) -> Result<(Upstream, usize), Trouble> {
        let shared = Rc::clone(&self.shared);
        let limit = shared.limits.collector.reply;
        self.rest.measured.sent_ns = monotonic_ns();
        let sent = wire::write_all(&mut upstream.stream, &mut [IoSlice::new(head)], limit).await;
        sent.map_err(|error| Trouble::Collector(answer::of_io(&error)))?;
        if self.rest.order.has_body()
            && let Some(length) = self.upload(&mut upstream).await?
        {
            return Ok((upstream, length));
        }
        if shared.when == When::AtOnce {
            self.rest.ask_proxies();
        }
        loop {
            let found = answer::any_head(&mut upstream, &shared.scratch, limit, &mut self.first_ns).await;
            match found.map_err(Trouble::Collector)? {
                (length, 100 | 102..=199) => self.pass_interim(&mut upstream, length).await?,
                (_, 101) => return Err(Trouble::Collector(AnswerError::Garbage)),
                (length, _) => return Ok((upstream, length)),
            }
        }
    }

    /// Sends the body while listening for an answer that does not wait for it: the length of its head, if one came.
    async fn upload(&mut self, upstream: &mut Upstream) -> Result<Option<usize>, Trouble> {
        let shared = Rc::clone(&self.shared);
        let (limit, scratch) = (shared.limits.collector.reply, &shared.scratch);
        let mut body = BodyReader::new(self.rest.order.body);
        while !body.is_done() {
            tokio::select! {
                biased;
                head = answer::any_head(upstream, scratch, limit, &mut self.first_ns) => {
                    match head.map_err(Trouble::Collector)? {
                        (length, 100 | 102..=199) => self.pass_interim(upstream, length).await?,
                        (length, _) => {
                            // Decided without the body; the proxies are not asked half a question.
                            self.rest.kept = Kept::Partial;
                            self.client.leaves_unread = true;
                            return Ok(Some(length));
                        }
                    }
                }
                part = body.next(&mut self.client.stream, &mut self.client.input, scratch, shared.limits.client_read) => {
                    let Some(chunk) = part.map_err(of_client)? else { break };
                    send_part(upstream, &chunk, self.rest.order.body, &shared).await.map_err(Trouble::Collector)?;
                    self.rest.keep(&chunk);
                }
            }
        }
        if self.rest.order.body == BodyFraming::Chunked {
            let sent = wire::write_all(&mut upstream.stream, &mut [IoSlice::new(LAST_CHUNK)], limit).await;
            sent.map_err(|error| Trouble::Collector(answer::of_io(&error)))?;
        }
        Ok(None)
    }

    /// Words on the way go to those who know them.
    async fn pass_interim(&mut self, upstream: &mut Upstream, length: usize) -> Result<(), Trouble> {
        if self.rest.order.about.version == Version::Http11 {
            let bytes = &upstream.input.unread()[..length];
            self.client.write(&mut [IoSlice::new(bytes)]).await.map_err(Trouble::Client)?;
        }
        upstream.input.consume(length);
        self.first_ns = None;
        Ok(())
    }

    /// Passes the answer on as it comes, and takes its measure.
    async fn relay(mut self, mut upstream: Upstream, length: usize) -> io::Result<bool> {
        let shared = Rc::clone(&self.shared);
        let first_ns = self.first_ns.unwrap_or_else(monotonic_ns);
        let head_bytes = upstream.input.unread()[..length].to_vec();
        let Ok(Some((head, _))) = ResponseHead::parse(&head_bytes) else {
            // It has been parsed before.
            return Err(io::ErrorKind::InvalidData.into());
        };
        let (method, status) = (self.rest.order.about.method.clone(), head.status);
        let (framing, upstream_persists) = (head.body(&method), head.persists(&method));
        upstream.input.consume(length);
        self.rest.measured.status = Some(status);
        self.rest.measured.first_byte_ns = Some(first_ns.saturating_sub(self.rest.measured.sent_ns));
        self.rest.measured.head_bytes = length as u64;
        let out = Outgoing::new(&self.rest.order, framing);
        let persists = out.persists && !self.client.leaves_unread && !shared.is_stopping.get();
        let mut pending = out.head(&head, &head_bytes, persists, &self.rest.order);
        let mut body = BodyReader::new(framing);
        if body.is_done() || upstream.input.unread().is_empty() {
            self.write(&[&pending]).await;
            pending.clear();
        }
        let mut taken = Taken::new(Digester::new(&head, &shared.rules));
        let mut last_ns = first_ns;
        let limit = shared.limits.collector.reply;
        while !body.is_done() {
            let next = body.next(&mut upstream.stream, &mut upstream.input, &shared.scratch, limit).await;
            match next {
                Ok(Some(chunk)) => {
                    last_ns = monotonic_ns();
                    self.write_chunk(&mut pending, &chunk, out.is_chunked, body.is_done()).await;
                    self.rest.measured.body_bytes += chunk.len() as u64;
                    taken.push(chunk);
                }
                Ok(None) => self.write_end(&mut pending, out.is_chunked).await,
                Err(error) => self.rest.measured.error = Some(answer::of_body(&error)),
            }
            let left = self.is_gone() && self.rest.measured.body_bytes > MOST_DRAINED;
            if self.rest.measured.error.is_some_and(|error| error != AnswerError::ClientGone) || left {
                break;
            }
        }
        self.rest.measured.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        let is_whole = body.is_done();
        let is_bodiless = method == "HEAD" || status == 304;
        if is_whole && upstream_persists && !self.client.leaves_unread {
            shared.pool.put_back(upstream);
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
        // A body that broke off must not look as if it were whole.
        Ok(persists && is_whole && !is_gone)
    }

    fn is_gone(&self) -> bool {
        self.rest.measured.error == Some(AnswerError::ClientGone)
    }

    /// Sends to the client, unless it has left; one that cannot be written to has.
    async fn write(&mut self, pieces: &[&[u8]]) {
        if self.is_gone() {
            return;
        }
        let mut slices = [IoSlice::new(&[]); 5];
        for (slice, piece) in slices.iter_mut().zip(pieces) {
            *slice = IoSlice::new(piece);
        }
        if self.client.write(&mut slices).await.is_err() {
            self.rest.measured.error = Some(AnswerError::ClientGone);
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

/// How an answer goes to the client.
struct Outgoing {
    is_chunked: bool,
    persists: bool,
}

impl Outgoing {
    fn new(order: &Order, framing: BodyFraming) -> Self {
        let is_new = order.about.version == Version::Http11;
        let is_chunked = framing == BodyFraming::Chunked && is_new;
        let is_delimited = is_chunked || matches!(framing, BodyFraming::None | BodyFraming::Length(_));
        Self { is_chunked, persists: order.persists && is_delimited }
    }

    /// The Collector's head, but for what it says of the connection.
    fn head(&self, head: &ResponseHead<'_>, bytes: &[u8], persists: bool, order: &Order) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 64);
        let line_end = memchr::memchr(b'\n', bytes).map_or(bytes.len(), |at| at + 1);
        out.extend_from_slice(bytes[..line_end].trim_ascii_end());
        out.extend_from_slice(b"\r\n");
        fields::append_passing(&mut out, head.headers(), is_the_collectors);
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

async fn send_part(
    upstream: &mut Upstream,
    chunk: &[u8],
    framing: BodyFraming,
    shared: &Shared,
) -> Result<(), AnswerError> {
    let limit = shared.limits.collector.reply;
    let mut room = [0; CHUNK_HEAD_BYTES];
    let size: &[u8] =
        if framing == BodyFraming::Chunked { chunk_head(chunk.len() as u64, &mut room) } else { &[] };
    let end: &[u8] = if framing == BodyFraming::Chunked { CHUNK_END } else { &[] };
    let mut slices = [IoSlice::new(size), IoSlice::new(chunk), IoSlice::new(end)];
    wire::write_all(&mut upstream.stream, &mut slices, limit).await.map_err(|error| answer::of_io(&error))
}
