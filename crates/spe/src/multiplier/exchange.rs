//! How is one request answered from the Collector, and when are the proxies asked?
//!
//! The client's own way comes first: what arrives is written to it before anything else is done with it.

use std::io::{self, IoSlice};
use std::rc::Rc;
use std::sync::Arc;

use assay_http::chunked::{CHUNK_END, CHUNK_HEAD_BYTES, ChunkError, LAST_CHUNK, chunk_head};
use assay_http::field::Field;
use assay_http::framing::BodyFraming;
use assay_http::head::{ResponseHead, Version};
use assay_plane::body::{BodyError, BodyReader};
use assay_plane::clock::monotonic_ns;
use assay_plane::fields;
use assay_plane::upstream::Upstream;
use assay_plane::wire;
use assay_record::spe::{AnswerError, Verdict};
use tokio::sync::watch;

use super::answer;
use super::board::{Entry, Held, Measured, count};
use super::client::{Client, Shared};
use super::lanes::{Awaited, Direct, Question, ToProxies};
use super::message::{Message, Order};
use super::order::permuted;
use crate::collector;
use crate::spec::{Turns, When};
use crate::validate::{Digester, Sample};

/// Larger bodies of requests are not kept for the proxies, which then are not asked.
const MOST_BODY: usize = 1 << 20;
/// So much of an answer is still read when its client has left, so that the proxies can be held against it.
const MOST_DRAINED: u64 = 256 << 20;

/// The body of a request, as it is kept for the proxies.
enum Kept {
    /// All of it, and the room that it takes up.
    Bytes(Vec<u8>, Option<Held>),
    /// It is too large, or too much is held already.
    TooMuch,
    /// Not all of it came.
    Partial,
}

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
    order: Order,
    measured: Measured,
    first_ns: Option<u64>,
    kept: Kept,
    tell: watch::Sender<Option<Arc<Direct>>>,
    direct: Awaited,
    /// The proxies were asked, or it was decided that they are not to be.
    is_asked: bool,
}

impl<'c> Exchange<'c> {
    /// Of a client's request, whose body, if any, is still to come.
    pub fn new(client: &'c mut Client, order: Order) -> Self {
        let (tell, direct) = watch::channel(None);
        let shared = Rc::clone(&client.shared);
        let (measured, kept) = (Measured::default(), Kept::Bytes(Vec::new(), None));
        Self { client, shared, order, measured, first_ns: None, kept, tell, direct, is_asked: false }
    }

    /// Answers it; whether another request may follow on this connection.
    pub async fn run(mut self) -> io::Result<bool> {
        let (upstream, length) = match self.ask().await {
            Ok(found) => found,
            Err(Trouble::Client(error)) => {
                count(&self.shared.board.client_gone);
                self.measured.error = Some(AnswerError::ClientGone);
                self.end(None);
                return Err(error);
            }
            Err(Trouble::BadBody(error)) => {
                count(&self.shared.board.refused);
                self.client.refuse(400, &error.to_string()).await?;
                return Ok(false);
            }
            Err(Trouble::Collector(error)) => {
                self.measured.error = Some(error);
                self.end(None);
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
        let head = self.order.for_collector();
        let may_repeat = !self.order.has_body()
            && matches!(
                self.order.about.method.as_str(),
                "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"
            );
        if may_repeat && let Some(upstream) = shared.pool.take(shared.collector) {
            match self.converse(upstream, &head).await {
                // It may just have been closed.
                Err(Trouble::Collector(AnswerError::Reset)) if self.first_ns.is_none() => {}
                found => return found,
            }
        }
        let connected = answer::connect(shared.collector, shared.limits.collector, &mut self.measured);
        let upstream = connected.await.map_err(Trouble::Collector)?;
        self.converse(upstream, &head).await
    }

    async fn converse(&mut self, mut upstream: Upstream, head: &[u8]) -> Result<(Upstream, usize), Trouble> {
        let shared = Rc::clone(&self.shared);
        let limit = shared.limits.collector.reply;
        self.measured.sent_ns = monotonic_ns();
        let sent = wire::write_all(&mut upstream.stream, &mut [IoSlice::new(head)], limit).await;
        sent.map_err(|error| Trouble::Collector(answer::of_io(&error)))?;
        if self.order.has_body()
            && let Some(length) = self.upload(&mut upstream).await?
        {
            return Ok((upstream, length));
        }
        if shared.when == When::AtOnce {
            self.ask_proxies();
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
        let mut body = BodyReader::new(self.order.body);
        while !body.is_done() {
            tokio::select! {
                biased;
                head = answer::any_head(upstream, scratch, limit, &mut self.first_ns) => {
                    match head.map_err(Trouble::Collector)? {
                        (length, 100 | 102..=199) => self.pass_interim(upstream, length).await?,
                        (length, _) => {
                            // Decided without the body; the proxies are not asked half a question.
                            self.kept = Kept::Partial;
                            self.client.leaves_unread = true;
                            return Ok(Some(length));
                        }
                    }
                }
                part = body.next(&mut self.client.stream, &mut self.client.input, scratch, shared.limits.client_read) => {
                    let Some(chunk) = part.map_err(of_client)? else { break };
                    send_part(upstream, &chunk, self.order.body, &shared).await.map_err(Trouble::Collector)?;
                    self.keep(&chunk);
                }
            }
        }
        if self.order.body == BodyFraming::Chunked {
            let sent = wire::write_all(&mut upstream.stream, &mut [IoSlice::new(LAST_CHUNK)], limit).await;
            sent.map_err(|error| Trouble::Collector(answer::of_io(&error)))?;
        }
        Ok(None)
    }

    /// Keeps a part of the body for the proxies, while there is room.
    fn keep(&mut self, chunk: &[u8]) {
        let Kept::Bytes(bytes, room) = &mut self.kept else { return };
        if room.is_none() {
            // All that this body may become: what is taken is given back with it.
            *room = self.shared.board.hold(MOST_BODY as u64);
        }
        if room.is_none() || bytes.len() + chunk.len() > MOST_BODY {
            self.kept = Kept::TooMuch;
        } else {
            bytes.extend_from_slice(chunk);
        }
    }

    /// Words on the way go to those who know them.
    async fn pass_interim(&mut self, upstream: &mut Upstream, length: usize) -> Result<(), Trouble> {
        if self.order.about.version == Version::Http11 {
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
        let (method, status) = (self.order.about.method.clone(), head.status);
        let (framing, upstream_persists) = (head.body(&method), head.persists(&method));
        upstream.input.consume(length);
        self.measured.status = Some(status);
        self.measured.first_byte_ns = Some(first_ns.saturating_sub(self.measured.sent_ns));
        self.measured.head_bytes = length as u64;
        let out = Outgoing::new(&self.order, framing);
        let persists = out.persists && !self.client.leaves_unread && !shared.is_stopping.get();
        let mut pending = out.head(&head, &head_bytes, persists, &self.order);
        let mut body = BodyReader::new(framing);
        if body.is_done() || upstream.input.unread().is_empty() {
            self.write(&[&pending]).await;
            pending.clear();
        }
        let mut digester = Digester::new(&head, &shared.rules);
        let mut last_ns = first_ns;
        let limit = shared.limits.collector.reply;
        while !body.is_done() {
            let next = body.next(&mut upstream.stream, &mut upstream.input, &shared.scratch, limit).await;
            match next {
                Ok(Some(chunk)) => {
                    last_ns = monotonic_ns();
                    self.write_chunk(&mut pending, &chunk, out.is_chunked, body.is_done()).await;
                    digester.push(&chunk);
                    self.measured.body_bytes += chunk.len() as u64;
                }
                Ok(None) => self.write_end(&mut pending, out.is_chunked).await,
                Err(error) => self.measured.error = Some(answer::of_body(&error)),
            }
            let left = self.is_gone() && self.measured.body_bytes > MOST_DRAINED;
            if self.measured.error.is_some_and(|error| error != AnswerError::ClientGone) || left {
                break;
            }
        }
        self.measured.transfer_ns = Some(last_ns.saturating_sub(first_ns));
        let is_whole = body.is_done();
        let is_bodiless = method == "HEAD" || status == 304;
        let sample = is_whole.then(|| Sample {
            status,
            is_bodiless,
            body: digester.finish(),
            head: head_bytes.clone(),
        });
        if is_whole && upstream_persists && !self.client.leaves_unread {
            shared.pool.put_back(upstream);
        }
        let (is_gone, is_whole) = (self.is_gone(), sample.is_some());
        self.end(sample);
        if is_gone {
            count(&shared.board.client_gone);
        }
        // A body that broke off must not look as if it were whole.
        Ok(persists && is_whole && !is_gone)
    }

    fn is_gone(&self) -> bool {
        self.measured.error == Some(AnswerError::ClientGone)
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
            self.measured.error = Some(AnswerError::ClientGone);
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

    /// The answer is over: tells of it, and lets the proxies be held against it.
    fn end(&mut self, sample: Option<Sample>) {
        let measured = self.measured;
        let checksum = sample.as_ref().map(|sample| sample.body.checksum());
        let is_whole = sample.is_some();
        let took_ns = measured.response_ns();
        let direct = Direct { status: measured.status, sample, took_ns };
        // Nobody may be waiting for it.
        let _ = self.tell.send(Some(Arc::new(direct)));
        if is_whole {
            self.ask_proxies();
        }
        self.shared.board.asked(0);
        let verdict = if is_whole { Verdict::NotCompared } else { Verdict::NoAnswer };
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

    /// Asks all proxies that may be asked, in this request's order; once.
    fn ask_proxies(&mut self) {
        if std::mem::replace(&mut self.is_asked, true) {
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
        let mut asked = Vec::with_capacity(order.len());
        for (place, index) in (0..).zip(order) {
            let target = u16::from(index) + 1;
            if is_all_there && shared.board.admit(target) {
                asked.push((place, index));
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
        if asked.is_empty() {
            return;
        }
        let message = Message {
            about: Arc::clone(about),
            head: self.order.for_proxies(),
            body: delimited(body, self.order.body),
            persists: self.order.persists,
            _room: room,
        };
        let (client, direct) = (self.client.id, self.direct.clone());
        let question = Question { client, message: Arc::new(message), order: asked, direct };
        // That thread ends after all clients.
        let _ = shared.to_proxies.send(ToProxies::Ask(question));
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
