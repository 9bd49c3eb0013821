//! Responses, as they are written to a client.
//!
//! What is stored goes out as it lies: one vectored write of the stored head, the few fields that are made
//! for this response, and the chunks of the body.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use assay_cache::storage::MethodClass;
use assay_http::range::{ContentRange, Span};
use assay_http::status::reason;

use crate::access_log::Note;
use crate::client_request::ClientRequest;
use crate::fetched::Fetched;
use crate::handling::Handling;
use crate::origin::Failure;
use crate::part::{self, Layout, Selection};
use crate::response::Response;
use crate::shared::Shared;
use crate::store::Stored;
use assay_net::body::Chunk;
use assay_net::exchange::{Exchange, Framing, unless_gone};
use assay_net::fields;
use assay_net::flow::{End, Reader, Taken};
use assay_net::http_stream::HttpStream;

const PARTIAL_CONTENT: &[u8] = b"HTTP/1.1 206 Partial Content\r\n";

/// A client connection, with what it takes to send responses.
pub struct Client {
    pub shared: Rc<Shared>,
    pub exchange: Exchange<HttpStream>,
    /// The request came from another cache.
    pub is_from_cache: bool,
    /// It has been here before.
    pub was_here: bool,
    /// The key of the last request; kept for its memory.
    pub key: Vec<u8>,
    /// What the log gets about the current request; none where there is no log.
    pub noted: Option<Note>,
    /// The fields made for one response, and the end of its head.
    tail: Vec<u8>,
    batch: Vec<Chunk>,
}

impl Client {
    pub fn new(shared: Rc<Shared>, exchange: Exchange<HttpStream>) -> Self {
        Self {
            exchange,
            shared,
            is_from_cache: false,
            was_here: false,
            key: Vec::new(),
            noted: None,
            tail: Vec::with_capacity(256),
            batch: Vec::new(),
        }
    }

    /// Logs how the request was handled; `complete`: the client got all of the response.
    pub fn write_down(&mut self, complete: bool) {
        let (Some(note), Some(log)) = (self.noted.take(), &self.shared.access_log) else { return };
        let unknown = IpAddr::from([0, 0, 0, 0]);
        let address = self.exchange.connection.stream.peer().unwrap_or(unknown);
        log.borrow_mut().write(&note, address, complete);
    }

    fn note(&mut self, status: u16, handling: Option<Handling>) {
        if let Some(note) = &mut self.noted {
            (note.status, note.handling) = (status, handling);
        }
    }

    /// Notes bytes of the body.
    pub fn note_bytes(&mut self, bytes: u64) {
        if let Some(note) = &mut self.noted {
            note.bytes += bytes;
        }
    }

    /// Sends a stored response.
    pub async fn send_stored(
        &mut self,
        client_request: &ClientRequest<'_>,
        stored: &Stored,
        handling: Handling,
        now_ms: i64,
    ) -> io::Result<()> {
        let response = &stored.response;
        let age_s = Some(response.freshness.age_s(now_ms));
        if response.is_not_modified_for(&client_request.conditions) {
            return Box::pin(self.send_not_modified(response, handling, age_s)).await;
        }
        if client_request.class == MethodClass::Head {
            return Box::pin(self.send_stored_head(stored, handling, now_ms)).await;
        }
        match part::select(client_request, response, Some(stored.length)) {
            Selection::Whole => {}
            Selection::Unsatisfied { total } => {
                return Box::pin(self.send_unsatisfied(total, handling)).await;
            }
            Selection::Parts(spans) => {
                return Box::pin(self.send_parts(stored, &spans, handling, age_s)).await;
            }
        }
        let framing = self.exchange.framing(response.status, Some(stored.length));
        self.write_tail(response.status, handling, age_s, framing);
        let body: &[Chunk] = if matches!(framing, Framing::Length(_)) { &stored.body } else { &[] };
        self.exchange.write_with(&[response.head(), &self.tail], body).await
    }

    /// Responds to a HEAD from the store.
    pub async fn send_stored_head(
        &mut self,
        stored: &Stored,
        handling: Handling,
        now_ms: i64,
    ) -> io::Result<()> {
        let response = &stored.response;
        let framing = match self.exchange.framing(response.status, Some(stored.length)) {
            Framing::Length(bytes) => Framing::Described(bytes),
            framing => framing,
        };
        self.write_tail(response.status, handling, Some(response.freshness.age_s(now_ms)), framing);
        self.exchange.write(&[response.head(), &self.tail]).await
    }

    /// Sends parts of a complete response.
    pub async fn send_parts(
        &mut self,
        stored: &Stored,
        spans: &[Span],
        handling: Handling,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let response = &stored.response;
        let layout = Layout::new(spans, stored.length, response.content_type());
        let fields = self.write_parts_head(response, &layout, handling, age_s);
        let head = [PARTIAL_CONTENT, fields.as_deref().unwrap_or(response.field_lines()), &self.tail];
        let pieces = layout.pieces(spans, &stored.body);
        self.exchange.write(&[&head[..], &pieces].concat()).await
    }

    /// Sends one part of a response that is still arriving, as it arrives.
    pub async fn send_part_of_flow(
        &mut self,
        (response, total): (&Response, u64),
        reader: &mut Reader,
        span: Span,
        handling: Handling,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let layout = Layout::new(&[span], total, None);
        self.write_parts_head(response, &layout, handling, age_s);
        let head = [PARTIAL_CONTENT, response.field_lines(), &self.tail];
        self.exchange.write(&head).await?;
        let mut at = 0;
        while at < span.to {
            self.batch.clear();
            let taking = reader.take(&mut self.batch);
            if let Taken::End(_) = unless_gone(&self.exchange.connection, taking).await? {
                return Err(self.exchange.break_off(Framing::Length(layout.length)));
            }
            let pieces: Vec<&[u8]> = part::slices(&self.batch, at, span).collect();
            at += self.batch.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            self.exchange.write(&pieces).await?;
        }
        Ok(())
    }

    /// Writes the tail of a response with parts; gives the fields that go before it, if they are not the response's.
    fn write_parts_head(
        &mut self,
        response: &Response,
        layout: &Layout,
        handling: Handling,
        age_s: Option<u64>,
    ) -> Option<Vec<u8>> {
        self.note(206, Some(handling));
        self.write_tail_with(&layout.fields, handling, age_s, Framing::Length(layout.length));
        layout.is_multipart.then(|| response.field_lines_without_type())
    }

    /// Responds to a request for parts that the object does not have.
    pub async fn send_unsatisfied(&mut self, total: u64, handling: Handling) -> io::Result<()> {
        let mut value = Vec::new();
        ContentRange::Unsatisfied { total }.write(&mut value);
        let mut line = b"HTTP/1.1 416 Range Not Satisfiable\r\n".to_vec();
        fields::append(&mut line, b"Content-Range", &value);
        self.write_tail(416, handling, None, Framing::Length(0));
        self.exchange.write(&[&line, &self.tail]).await
    }

    /// Sends a 304 response.
    pub async fn send_not_modified(
        &mut self,
        response: &Response,
        handling: Handling,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        self.write_tail(304, handling, age_s, Framing::None);
        let parts = [b"HTTP/1.1 304 Not Modified\r\n", response.field_lines(), &self.tail];
        self.exchange.write(&parts).await
    }

    /// Sends a response that is still arriving, as it arrives.
    pub async fn send_flow(
        &mut self,
        fetched: &Fetched,
        reader: &mut Reader,
        handling: Handling,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let framing = self.exchange.framing(fetched.response.status, fetched.length);
        self.write_tail(fetched.response.status, handling, age_s, framing);
        let mut is_first = true;
        loop {
            self.batch.clear();
            let taken = match is_first {
                // The head does not wait for the body.
                true => reader.try_take(&mut self.batch),
                false => {
                    let taking = reader.take(&mut self.batch);
                    Some(unless_gone(&self.exchange.connection, taking).await?)
                }
            };
            let end = match taken {
                Some(Taken::End(end)) => Some(end),
                Some(Taken::Chunks) => reader.end(),
                None => None,
            };
            if !matches!(framing, Framing::Length(_)) {
                self.note_bytes(self.batch.iter().map(|chunk| chunk.len() as u64).sum());
            }
            let head: [&[u8]; 2] = if is_first { [fetched.response.head(), &self.tail] } else { [&[], &[]] };
            is_first = false;
            let is_last = end == Some(End::Complete);
            self.exchange.write_body(&head, &self.batch, framing, is_last).await?;
            match end {
                None => {}
                Some(End::Complete) => return Ok(()),
                Some(End::Broken) => return Err(self.exchange.break_off(framing)),
            }
        }
    }

    /// Sends the head of a response whose body follows part by part.
    pub async fn send_head(
        &mut self,
        response: &Response,
        handling: Handling,
        framing: Framing,
    ) -> io::Result<()> {
        let age_s = response.has_age.then(|| response.freshness.age_s(self.shared.clock.now_ms()));
        self.write_tail(response.status, handling, age_s, framing);
        self.exchange.write(&[response.head(), &self.tail]).await
    }

    /// Sends a part of the body, or, without chunks, its end.
    pub async fn send_body(&mut self, chunks: &[Chunk], framing: Framing) -> io::Result<()> {
        if !matches!(framing, Framing::Length(_)) {
            self.note_bytes(chunks.iter().map(|chunk| chunk.len() as u64).sum());
        }
        self.exchange.write_body(&[], chunks, framing, chunks.is_empty()).await
    }

    /// Responds to OPTIONS with the methods of the proxy itself.
    pub async fn send_options(&mut self) -> io::Result<()> {
        self.note(200, None);
        self.tail.clear();
        self.write_framing(Framing::Length(0));
        let line = b"HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n";
        self.exchange.write(&[line, &self.tail]).await
    }

    /// Sends an error of our own.
    pub async fn send_error(
        &mut self,
        status: u16,
        text: &str,
        handling: Option<Handling>,
        is_head: bool,
    ) -> io::Result<()> {
        self.send_error_with(&[], (status, text), handling, is_head).await
    }

    /// Sends the error that a failure of the origin comes to, and says in `Proxy-Status` (RFC 9209) what went wrong.
    pub async fn send_failure(
        &mut self,
        failure: &Failure,
        handling: Handling,
        is_head: bool,
    ) -> io::Result<()> {
        let text = failure.to_string();
        let mut line = Vec::with_capacity(128);
        failure.append_proxy_status(&self.shared.name, &mut line);
        self.send_error_with(&line, (failure.status(), &text), Some(handling), is_head).await
    }

    async fn send_error_with(
        &mut self,
        fields: &[u8],
        (status, text): (u16, &str),
        handling: Option<Handling>,
        is_head: bool,
    ) -> io::Result<()> {
        let body = format!("{status} {}: {text}\n", reason(status));
        self.note(status, handling);
        self.tail.clear();
        let line = format!("HTTP/1.1 {status} {}\r\nContent-Type: text/plain\r\n", reason(status));
        if let Some(handling) = handling {
            handling.append(&self.shared.name, &mut self.tail);
        }
        self.write_framing(Framing::Length(body.len() as u64));
        let body = if is_head { &[] } else { body.as_bytes() };
        let parts = [line.as_bytes(), fields, &self.tail, body];
        self.exchange.write(&parts).await
    }

    fn write_tail(&mut self, status: u16, handling: Handling, age_s: Option<u64>, framing: Framing) {
        self.note(status, Some(handling));
        self.write_tail_with(&[], handling, age_s, framing);
    }

    /// With field lines of one's own.
    fn write_tail_with(&mut self, lines: &[u8], handling: Handling, age_s: Option<u64>, framing: Framing) {
        let mut tail = std::mem::take(&mut self.tail);
        tail.clear();
        tail.extend_from_slice(lines);
        self.append_tail(&mut tail, handling, age_s, framing);
        self.tail = tail;
    }

    /// Appends what is made for this response to the head of a response that came, up to its end; noted as such.
    pub fn append_noted_tail(
        &mut self,
        out: &mut Vec<u8>,
        (status, handling): (u16, Handling),
        age_s: Option<u64>,
        framing: Framing,
    ) {
        self.note(status, Some(handling));
        self.append_tail(out, handling, age_s, framing);
    }

    fn append_tail(&mut self, out: &mut Vec<u8>, handling: Handling, age_s: Option<u64>, framing: Framing) {
        if let Some(seconds) = age_s {
            fields::append_number(out, "Age", seconds);
        }
        handling.append(&self.shared.name, out);
        self.append_framing(out, framing);
    }

    fn write_framing(&mut self, framing: Framing) {
        let mut tail = std::mem::take(&mut self.tail);
        self.append_framing(&mut tail, framing);
        self.tail = tail;
    }

    /// The fields of this connection, and the empty line that ends the head.
    fn append_framing(&mut self, out: &mut Vec<u8>, framing: Framing) {
        if let Framing::Length(bytes) = framing {
            self.note_bytes(bytes);
        }
        self.exchange.append_framing(out, framing);
    }
}
