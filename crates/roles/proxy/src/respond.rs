//! Writing of responses to clients.
//!
//! A stored response is sent without copies: one vectored write of the stored head, the few fields that are made for this
//! response, and the chunks of the body.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;

use assay_cache::storage::MethodClass;
use assay_http::framing::BodyFraming;
use assay_http::range::{ContentRange, Span};
use assay_http::status::reason;

use crate::access_log::LogEntry;
use crate::cache_status::CacheStatus;
use crate::client_request::ClientRequest;
use crate::fetched::FetchedHead;
use crate::origin::OriginFailure;
use crate::ranges::{self, PartsLayout, RangeSelection};
use crate::response::ProxyResponse;
use crate::shared::ProxyShared;
use crate::store::StoredResponse;
use assay_net::body::Chunk;
use assay_net::exchange::{Exchange, unless_disconnected};
use assay_net::fields;
use assay_net::http_stream::HttpStream;
use assay_net::shared_body::{BodyEnd, BodyRead, SharedBodyReader};

const PARTIAL_CONTENT: &[u8] = b"HTTP/1.1 206 Partial Content\r\n";

/// A client connection, with buffers for its responses.
pub struct ProxyClient {
    pub shared: Rc<ProxyShared>,
    pub exchange: Exchange<HttpStream>,
    /// The request came from another cache.
    pub is_from_cache: bool,
    /// The request has passed this proxy before.
    pub has_passed_before: bool,
    /// Key of the last request; kept for its allocation.
    pub key: Vec<u8>,
    /// `None` without a log.
    pub log_entry: Option<LogEntry>,
    /// Fields made for one response, and the end of its head.
    tail: Vec<u8>,
    /// Empty after each write: else an idle connection would hold parts of a body that was evicted.
    batch: Vec<Chunk>,
}

impl ProxyClient {
    pub fn new(shared: Rc<ProxyShared>, exchange: Exchange<HttpStream>) -> Self {
        Self {
            exchange,
            shared,
            is_from_cache: false,
            has_passed_before: false,
            key: Vec::new(),
            log_entry: None,
            tail: Vec::with_capacity(256),
            batch: Vec::new(),
        }
    }

    /// Logs the request; `complete`: the client received the whole response.
    pub fn log_request(&mut self, complete: bool) {
        let (Some(entry), Some(log)) = (self.log_entry.take(), &self.shared.access_log) else { return };
        let unknown = IpAddr::from([0, 0, 0, 0]);
        let address = self.exchange.connection.stream.peer().unwrap_or(unknown);
        log.borrow_mut().write(&entry, address, complete);
    }

    fn record(&mut self, status: u16, cache_status: Option<CacheStatus>) {
        if let Some(entry) = &mut self.log_entry {
            (entry.status, entry.cache_status) = (status, cache_status);
        }
    }

    pub fn record_bytes(&mut self, bytes: u64) {
        if let Some(entry) = &mut self.log_entry {
            entry.bytes += bytes;
        }
    }

    pub async fn send_stored(
        &mut self,
        client_request: &ClientRequest<'_>,
        stored: &StoredResponse,
        cache_status: CacheStatus,
        now_ms: i64,
    ) -> io::Result<()> {
        let response = &stored.response;
        let age_s = Some(response.freshness.age_s(now_ms));
        if response.is_not_modified_for(&client_request.conditions) {
            return Box::pin(self.send_not_modified(response, cache_status, age_s)).await;
        }
        if client_request.class == MethodClass::Head {
            return Box::pin(self.send_stored_head(stored, cache_status, now_ms)).await;
        }
        match ranges::select(client_request, response, Some(stored.length)) {
            RangeSelection::Whole => {}
            RangeSelection::Unsatisfied { total } => {
                return Box::pin(self.send_unsatisfied(total, cache_status)).await;
            }
            RangeSelection::Parts(spans) => {
                return Box::pin(self.send_parts(stored, &spans, cache_status, age_s)).await;
            }
        }
        let framing = self.exchange.framing(response.status, Some(stored.length));
        self.write_tail(response.status, cache_status, age_s, framing);
        let body: &[Chunk] = if matches!(framing, BodyFraming::Length(_)) { &stored.body } else { &[] };
        self.exchange.write_chunks(&[response.head(), &self.tail], body).await
    }

    /// Responds to a HEAD from the store.
    pub async fn send_stored_head(
        &mut self,
        stored: &StoredResponse,
        cache_status: CacheStatus,
        now_ms: i64,
    ) -> io::Result<()> {
        let response = &stored.response;
        let age_s = Some(response.freshness.age_s(now_ms));
        let would_have = self.exchange.framing(response.status, Some(stored.length));
        let described_bytes = (would_have != BodyFraming::None).then_some(stored.length);
        self.send_head(response, cache_status, age_s, BodyFraming::None, described_bytes).await
    }

    /// Sends parts of a complete response.
    pub async fn send_parts(
        &mut self,
        stored: &StoredResponse,
        spans: &[Span],
        cache_status: CacheStatus,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let response = &stored.response;
        let layout = PartsLayout::new(spans, stored.length, response.content_type());
        let fields = self.write_parts_head(response, &layout, cache_status, age_s);
        let head = [PARTIAL_CONTENT, fields.as_deref().unwrap_or(response.field_lines()), &self.tail];
        let pieces = layout.pieces(spans, &stored.body);
        self.exchange.write(&[&head[..], &pieces].concat()).await
    }

    /// Sends one part of a response that is still arriving.
    pub async fn send_shared_body_part(
        &mut self,
        response: &ProxyResponse,
        total: u64,
        reader: &mut SharedBodyReader,
        span: Span,
        cache_status: CacheStatus,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let layout = PartsLayout::new(&[span], total, None);
        self.write_parts_head(response, &layout, cache_status, age_s);
        let head = [PARTIAL_CONTENT, response.field_lines(), &self.tail];
        self.exchange.write(&head).await?;
        let mut at = 0;
        while at < span.to {
            let taking = reader.read(&mut self.batch);
            if let BodyRead::End(_) = unless_disconnected(&self.exchange.connection, taking).await? {
                return Err(self.exchange.abort(BodyFraming::Length(layout.length)));
            }
            let pieces: Vec<&[u8]> = ranges::slices(&self.batch, at, span).collect();
            at += self.batch.iter().map(|chunk| chunk.len() as u64).sum::<u64>();
            self.exchange.write(&pieces).await?;
            self.batch.clear();
        }
        Ok(())
    }

    /// Writes the tail of a partial response; returns the fields to send before it if they differ from the response's.
    fn write_parts_head(
        &mut self,
        response: &ProxyResponse,
        layout: &PartsLayout,
        cache_status: CacheStatus,
        age_s: Option<u64>,
    ) -> Option<Vec<u8>> {
        self.record(206, Some(cache_status));
        self.write_tail_with(&layout.fields, cache_status, age_s, BodyFraming::Length(layout.length));
        layout.is_multipart.then(|| response.field_lines_without_type())
    }

    /// Sends a 416 response.
    pub async fn send_unsatisfied(&mut self, total: u64, cache_status: CacheStatus) -> io::Result<()> {
        let mut value = Vec::new();
        ContentRange::Unsatisfied { total }.write(&mut value);
        let mut line = b"HTTP/1.1 416 Range Not Satisfiable\r\n".to_vec();
        fields::append(&mut line, b"Content-Range", &value);
        self.write_tail(416, cache_status, None, BodyFraming::Length(0));
        self.exchange.write(&[&line, &self.tail]).await
    }

    pub async fn send_not_modified(
        &mut self,
        response: &ProxyResponse,
        cache_status: CacheStatus,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        self.write_tail(304, cache_status, age_s, BodyFraming::None);
        let parts = [b"HTTP/1.1 304 Not Modified\r\n", response.field_lines(), &self.tail];
        self.exchange.write(&parts).await
    }

    /// Sends a response that is still arriving.
    pub async fn send_shared_body(
        &mut self,
        fetched: &FetchedHead,
        reader: &mut SharedBodyReader,
        cache_status: CacheStatus,
        age_s: Option<u64>,
    ) -> io::Result<()> {
        let framing = self.exchange.framing(fetched.response.status, fetched.length);
        self.write_tail(fetched.response.status, cache_status, age_s, framing);
        let mut is_first = true;
        loop {
            let taken = match is_first {
                // The head does not wait for the body.
                true => reader.try_read(&mut self.batch),
                false => {
                    let taking = reader.read(&mut self.batch);
                    Some(unless_disconnected(&self.exchange.connection, taking).await?)
                }
            };
            let end = match taken {
                Some(BodyRead::End(end)) => Some(end),
                Some(BodyRead::Chunks) => reader.end(),
                None => None,
            };
            if !matches!(framing, BodyFraming::Length(_)) {
                self.record_bytes(self.batch.iter().map(|chunk| chunk.len() as u64).sum());
            }
            let head: [&[u8]; 2] = if is_first { [fetched.response.head(), &self.tail] } else { [&[], &[]] };
            is_first = false;
            let is_last = end == Some(BodyEnd::Complete);
            self.exchange.write_body(&head, &self.batch, framing, is_last).await?;
            self.batch.clear();
            match end {
                None => {}
                Some(BodyEnd::Complete) => return Ok(()),
                Some(BodyEnd::Broken) => return Err(self.exchange.abort(framing)),
            }
        }
    }

    /// Sends the head of a response whose body follows in parts, or that has none and states the length that one to a GET would have
    /// (RFC 9110, 9.3.2).
    pub async fn send_head(
        &mut self,
        response: &ProxyResponse,
        cache_status: CacheStatus,
        age_s: Option<u64>,
        framing: BodyFraming,
        described_bytes: Option<u64>,
    ) -> io::Result<()> {
        let mut length_line = Vec::new();
        if let Some(bytes) = described_bytes {
            fields::append_number(&mut length_line, "Content-Length", bytes);
        }
        self.record(response.status, Some(cache_status));
        self.write_tail_with(&length_line, cache_status, age_s, framing);
        self.exchange.write(&[response.head(), &self.tail]).await
    }

    /// Sends a part of the body, or, without chunks, its end.
    pub async fn send_body(&mut self, chunks: &[Chunk], framing: BodyFraming) -> io::Result<()> {
        if !matches!(framing, BodyFraming::Length(_)) {
            self.record_bytes(chunks.iter().map(|chunk| chunk.len() as u64).sum());
        }
        self.exchange.write_body(&[], chunks, framing, chunks.is_empty()).await
    }

    pub async fn send_options(&mut self) -> io::Result<()> {
        self.record(200, None);
        self.tail.clear();
        self.write_framing(BodyFraming::Length(0));
        let line = b"HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n";
        self.exchange.write(&[line, &self.tail]).await
    }

    pub async fn send_error(
        &mut self,
        status: u16,
        text: &str,
        cache_status: Option<CacheStatus>,
        is_head: bool,
    ) -> io::Result<()> {
        self.send_error_with(&[], status, text, cache_status, is_head).await
    }

    /// Sends the error for a failure of the origin, with `Proxy-Status` (RFC 9209).
    pub async fn send_failure(
        &mut self,
        failure: &OriginFailure,
        cache_status: CacheStatus,
        is_head: bool,
    ) -> io::Result<()> {
        let text = failure.to_string();
        let mut line = Vec::with_capacity(128);
        failure.append_proxy_status(&self.shared.name, &mut line);
        self.send_error_with(&line, failure.status(), &text, Some(cache_status), is_head).await
    }

    async fn send_error_with(
        &mut self,
        fields: &[u8],
        status: u16,
        text: &str,
        cache_status: Option<CacheStatus>,
        is_head: bool,
    ) -> io::Result<()> {
        let body = format!("{status} {}: {text}\n", reason(status));
        self.record(status, cache_status);
        self.tail.clear();
        let line = format!("HTTP/1.1 {status} {}\r\nContent-Type: text/plain\r\n", reason(status));
        if let Some(cache_status) = cache_status {
            cache_status.append(&self.shared.name, &mut self.tail);
        }
        self.write_framing(BodyFraming::Length(body.len() as u64));
        let body = if is_head { &[] } else { body.as_bytes() };
        let parts = [line.as_bytes(), fields, &self.tail, body];
        self.exchange.write(&parts).await
    }

    fn write_tail(
        &mut self,
        status: u16,
        cache_status: CacheStatus,
        age_s: Option<u64>,
        framing: BodyFraming,
    ) {
        self.record(status, Some(cache_status));
        self.write_tail_with(&[], cache_status, age_s, framing);
    }

    /// Writes the tail with additional field lines.
    fn write_tail_with(
        &mut self,
        lines: &[u8],
        cache_status: CacheStatus,
        age_s: Option<u64>,
        framing: BodyFraming,
    ) {
        let mut tail = std::mem::take(&mut self.tail);
        tail.clear();
        tail.extend_from_slice(lines);
        self.append_tail(&mut tail, cache_status, age_s, framing);
        self.tail = tail;
    }

    /// Appends the fields made for this response, up to the end of the head, and records the status for the log.
    pub fn append_recorded_tail(
        &mut self,
        out: &mut Vec<u8>,
        status: u16,
        cache_status: CacheStatus,
        age_s: Option<u64>,
        framing: BodyFraming,
    ) {
        self.record(status, Some(cache_status));
        self.append_tail(out, cache_status, age_s, framing);
    }

    fn append_tail(
        &mut self,
        out: &mut Vec<u8>,
        cache_status: CacheStatus,
        age_s: Option<u64>,
        framing: BodyFraming,
    ) {
        if let Some(seconds) = age_s {
            fields::append_number(out, "Age", seconds);
        }
        cache_status.append(&self.shared.name, out);
        self.append_framing(out, framing);
    }

    fn write_framing(&mut self, framing: BodyFraming) {
        let mut tail = std::mem::take(&mut self.tail);
        self.append_framing(&mut tail, framing);
        self.tail = tail;
    }

    /// Appends the hop-by-hop fields, and the empty line that ends the head.
    fn append_framing(&mut self, out: &mut Vec<u8>, framing: BodyFraming) {
        if let BodyFraming::Length(bytes) = framing {
            self.record_bytes(bytes);
        }
        self.exchange.append_framing(out, framing);
    }
}

#[cfg(test)]
mod tests {
    use assay_http::head::ResponseHead;
    use assay_net::byte_stream::ByteStream;
    use assay_net::shared_body::SharedBody;
    use tokio::net::{TcpListener, TcpStream};

    use super::*;
    use crate::cache_status::{ForwardReason, ResponseSource};
    use crate::peers::Peers;
    use crate::response::ResponseTimes;
    use crate::shared::{Clock, ProxyLimits};
    use crate::spec::{ProxySpec, Storing};

    #[test]
    fn a_connection_holds_nothing_of_a_body_that_it_has_sent() {
        assay_testbed::run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let _client = TcpStream::connect(address).await.unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let spec = ProxySpec {
                tls: None,
                origin_tls: None,
                origin_http2: false,
                name: "assay".into(),
                listen: address,
                threads: 1,
                cpus: Vec::new(),
                memory_bytes: 1 << 20,
                stale_if_error_s: 0,
                access_log: None,
                origins: Vec::new(),
                cooperation: None,
                prefetch: None,
                storing: Storing::default(),
            };
            let limits = ProxyLimits::default();
            let peers = Peers::new(None).unwrap();
            let shared = ProxyShared::new(&spec, peers, Clock::System, limits, address, None, None);
            let stream = HttpStream::Socket(ByteStream::new(stream, None));
            let exchange = Exchange::new(stream, &shared.resources, limits.of_clients());
            let mut client = ProxyClient::new(Rc::new(shared), exchange);
            let (head, _) = ResponseHead::parse(b"HTTP/1.1 200 OK\r\n\r\n").unwrap().unwrap();
            let times = ResponseTimes { requested_ms: 0, received_ms: 0 };
            let fetched = FetchedHead {
                response: Rc::new(ProxyResponse::from_origin(&head, "assay", times).unwrap()),
                length: Some(3),
                is_shared: false,
                source: ResponseSource::Origin,
                variant: Vec::new(),
            };
            let status = CacheStatus::bypass(ForwardReason::Miss);
            let part = Chunk::from(&b"abc"[..]);
            let flow = || {
                let (flow, reader) = SharedBody::new();
                flow.append(Rc::clone(&part));
                flow.finish(BodyEnd::Complete);
                reader
            };
            let mut reader = flow();
            client.send_shared_body(&fetched, &mut reader, status, None).await.unwrap();
            drop(reader);
            assert_eq!(Rc::strong_count(&part), 1);
            let (mut reader, span) = (flow(), Span { from: 1, to: 3 });
            let response = &fetched.response;
            client.send_shared_body_part(response, 3, &mut reader, span, status, None).await.unwrap();
            drop(reader);
            assert_eq!(Rc::strong_count(&part), 1);
        });
    }
}
